#!/bin/sh
# t0-soft run with several processes: fork and spawn, containers, and the
# variables by which AMD's runtime chooses among cards.
#
# The oracle is the kernel: a descriptor of /dev/kfd belongs to the process that
# opened it (EBADF elsewhere), and a node is the same file wherever it is
# mounted.
. tests/soft-run.sh
run() {
	timeout -k 5 60 "$soft" run --quiet "$@"
}

# ---------------------------------------------------- Python's processes
cat >"$tmp/many.py" <<'PY'
import errno, fcntl, multiprocessing, os, struct, sys

GET_VERSION = 0x80084b01

def version(fd):
    answer = bytearray(8)
    fcntl.ioctl(fd, GET_VERSION, answer)
    return struct.unpack("II", answer)

def opens(_):
    fd = os.open("/dev/kfd", os.O_RDWR | os.O_CLOEXEC)
    return version(fd)

def inherited(fd):
    try:
        version(fd)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "works"

if __name__ == "__main__":
    how = multiprocessing.get_context(sys.argv[1])
    fd = os.open("/dev/kfd", os.O_RDWR)
    print("parent", *version(fd))
    if sys.argv[1] == "fork":
        with how.Pool(1) as pool:
            print("inherited", pool.apply(inherited, (fd,)))
    with how.Pool(3) as pool:
        print("children", set(pool.map(opens, range(6))))
    print("parent", *version(fd))
PY
if command -v python3 >/dev/null; then
	exits 0 'multiprocessing by fork' run --kfd-minor 17 -- \
		python3 "$tmp/many.py" fork
	is "$(cat "$tmp/out")" 'parent 1 17
inherited EBADF
children {(1, 17)}
parent 1 17' 'children have devices of their own, the descriptor is the parent'\''s'
	exits 0 'multiprocessing by spawn' run --kfd-minor 17 -- \
		python3 "$tmp/many.py" spawn
	is "$(cat "$tmp/out")" 'parent 1 17
children {(1, 17)}
parent 1 17' 'and so have programs that were started anew'
else
	diag 'SKIPPED: python3 is not installed; scripts/setup test would do it'
	skip 'python3 is not installed'
fi

# ----------------------------------------------------------- containers
# A file system with the nodes under other names, as containers make it.
cat >"$tmp/contain.sh" <<'SH'
set -e
mkdir "$1/kfd.d" "$1/sys.d"
touch "$1/kfd.d/kfd"
LD_PRELOAD= mount --bind "$T0_SOFT_ROOT/dev/kfd" "$1/kfd.d/kfd"
LD_PRELOAD= mount --bind "$T0_SOFT_ROOT/sys/devices/virtual/kfd" "$1/sys.d"
LD_PRELOAD= mount -o remount,bind,ro "$1/sys.d"
if (: >"$1/sys.d/kfd/topology/generation_id") 2>/dev/null; then exit 9; fi
stat -c '%F %t:%T' "$1/kfd.d/kfd"
cat "$1/sys.d/kfd/topology/nodes/1/gpu_id"
[ -z "$2" ] || python3 -c 'import fcntl, os, sys
b = bytearray(8)
fcntl.ioctl(os.open(sys.argv[1], os.O_RDWR), 0x80084b01, b)
print(b[0], b[4])' "$1/kfd.d/kfd"
SH
if unshare -m true 2>/dev/null; then
	py=$(command -v python3)
	exits 0 'nodes that are mounted elsewhere, sysfs read-only' run --kfd-minor 17 -- \
		unshare -m sh "$tmp/contain.sh" "$tmp" "$py"
	is "$(cat "$tmp/out")" "character special file 1ff:0
41852${py:+
1 17}" 'are the same device'
else
	diag 'SKIPPED: no mount namespace can be made here; root can'
	skip 'no mount namespace can be made here' 2
fi

# -------------------------------------------------- which card, and what
exits 0 'all cards are there' run -- "$T0_BUILD/t0-device" info --device kfd
exits 0 'by its number' run -- env ROCR_VISIBLE_DEVICES=0 \
	"$T0_BUILD/t0-device" info --device kfd
exits 0 'by its unique id' run -- \
	env ROCR_VISIBLE_DEVICES=GPU-7430736f66743030 \
	"$T0_BUILD/t0-device" info --device kfd
exits 77 'by a number that there is not' run -- env ROCR_VISIBLE_DEVICES=1 \
	"$T0_BUILD/t0-device" info --device kfd
exits 77 'an empty list hides all' run -- env ROCR_VISIBLE_DEVICES= \
	"$T0_BUILD/t0-device" info --device kfd
exits 77 'taken for a gfx1036 it is not ours' run -- \
	env HSA_OVERRIDE_GFX_VERSION=10.3.6 \
	"$T0_BUILD/t0-device" info --device kfd
has "$tmp/err" 'gfx1036' 'which is said'
exits 0 'a variable of the node wins' run -- \
	env HSA_OVERRIDE_GFX_VERSION=10.3.6 HSA_OVERRIDE_GFX_VERSION_1=11.0.0 \
	"$T0_BUILD/t0-device" info --device kfd
plan_done
