#!/bin/sh
# t0-soft run --cards: programs see several cards.
#
# Oracles: the kernel (nodes, device numbers, links) and, where it is installed,
# AMD's own runtime, which must find as many agents and choose among them by
# ROCR_VISIBLE_DEVICES as ours does.
. tests/soft-run.sh
dev=$T0_BUILD/t0-device

# ------------------------------------------------------------ the option
for n in 0 9 x; do
	exits 2 "$n cards" run --cards $n -- true
	has "$tmp/err" "cards" 'are refused by name'
done

# ------------------------------------------------------------- the files
for how in '' --trap; do
	[ -z "$how" ] || [ -e "$T0_BUILD/soft-trap" ] || continue
	exits 0 "two cards, $how: nodes" run $how --cards 2 -- stat -c '%F %t:%T' \
		/dev/dri/card0 /dev/dri/card1 /dev/dri/renderD128 \
		/dev/dri/renderD129
	is "$(tr '\n' ' ' <"$tmp/out")" 'character special file e2:0 character special file e2:1 character special file e2:80 character special file e2:81 ' \
		'have the numbers of DRM'
	exits 1 'a third card' run $how --cards 2 -- cat /dev/dri/renderD130
	has "$tmp/err" 'No such file' 'is not there'
	exits 0 'each' run $how --cards 2 -- cat /sys/dev/char/226:129/device/uevent
	has "$tmp/out" 'PCI_SLOT_NAME=0000:13:00.0' 'has an address of its own'
	exits 0 'the runtime' run $how --cards 3 -- "$dev" list --csv
	is "$(grep -c '^[0-9]*,kfd:[012],.*,emulated,yes,' "$tmp/out")" 3 \
		'finds three, and knows what they are'
	exits 0 'a kernel on the second' run $how --cards 2 -- \
		"$T0_BUILD/t0-run" -q --device kfd:1 \
		tests/data/kernels/saxpy.co saxpy -g 64 -b 64 f32:2 \
		buf:64:f32=iota out:64:f32=1 u32:64
	has "$tmp/out" '1 3 5 7 9 11 13 15' 'computes'
done
exits 0 'real paths' run --cards 2 -- realpath /sys/dev/char/226:129/device
is "$(cat "$tmp/out")" \
	/sys/devices/pci0000:00/0000:00:01.0/0000:13:00.0 'are those of sysfs'
exits 0 'sensors of each card' run --cards 2 -- sh -c \
	'cat /sys/class/drm/card[01]/device/hwmon/hwmon[01]/name'
is "$(tr '\n' ' ' <"$tmp/out")" 'amdgpu amdgpu ' 'are its own'

# ----------------------------------------- a process for each card
# Each takes its card's VM; the parent's descriptors are of no use to them.
cat >"$tmp/each.py" <<'PY'
import errno, fcntl, multiprocessing, os, struct, sys

ACQUIRE_VM, AVAILABLE = 0x40084b15, 0xc0104b23

def call(fd, nr, fmt, *args):
    b = bytearray(struct.pack(fmt, *args))
    try:
        fcntl.ioctl(fd, nr, b)
    except OSError as e:
        return errno.errorcode[e.errno]
    return struct.unpack(fmt, b)

def take(card, kfd=None):
    node = "/sys/class/kfd/kfd/topology/nodes/%d/gpu_id" % (card + 1)
    with open(node) as f:
        gpu = int(f.read())
    old = call(kfd, AVAILABLE, "QII", 0, gpu, 0) if kfd is not None else None
    kfd = os.open("/dev/kfd", os.O_RDWR)
    drm = os.open("/dev/dri/renderD%d" % (128 + card), os.O_RDWR)
    wrong = call(kfd, ACQUIRE_VM, "II", drm, gpu + 1)
    right = call(kfd, ACQUIRE_VM, "II", drm, gpu)
    free = call(kfd, AVAILABLE, "QII", 0, gpu, 0)
    return old, wrong, right == (drm, gpu), free[0] >> 20

if __name__ == "__main__":
    how = multiprocessing.get_context(sys.argv[1])
    mine = take(0)
    with how.Pool(2) as pool:
        fd = os.open("/dev/kfd", os.O_RDWR) if sys.argv[1] == "fork" else None
        work = [pool.apply_async(take, (i,)) for i in (0, 1)]
        print(mine, *[w.get() for w in work])
    if fd is not None:
        with how.Pool(1) as pool:
            print(pool.apply(take, (1, fd)))
PY
if command -v python3 >/dev/null; then
	for how in spawn fork; do
		exits 0 "multiprocessing by $how, two cards" run -q --cards 2 \
			--vram 1073741824 --log /dev/null -- \
			python3 "$tmp/each.py" $how
		is "$(sed -n 1p "$tmp/out")" "(None, 'EINVAL', True, 1024) (None, 'EINVAL', True, 1024) (None, 'EINVAL', True, 1024)" \
			'each process has its card'
	done
	is "$(sed -n 2p "$tmp/out")" "('EBADF', 'EINVAL', True, 1024)" \
		'whose parent'\''s descriptor is of no use'
else
	diag 'SKIPPED: python3 is not installed; scripts/setup test would do it'
	skip 'python3 is not installed'
fi

# ------------------------------------------------------- AMD's runtime
# Debian's is older than the chip: HSA_OVERRIDE_GFX_VERSION makes it go on.
rocm() {
	run --log /dev/null --cards 3 -- env "$@" HSA_OVERRIDE_GFX_VERSION=10.3.0 \
		rocminfo 2>/dev/null | sed -n 's/^  Node: *\([0-9]*\) *$/\1/p' |
		sed 1d | tr '\n' ' '
}
# ours: which of the three our runtime calls kfd:0, kfd:1 and so on.
ours() {
	for i in 0 1 2; do
		run -q --cards 3 -- env "$@" "$dev" info -q --csv --device kfd:$i \
			2>/dev/null | sed -n 's/^topology node,\([0-9]*\),.*/\1/p'
	done | tr '\n' ' '
}
if command -v rocminfo >/dev/null; then
	is "$(rocm A=)" '1 2 3 ' 'rocminfo has an agent for each card'
else
	diag 'SKIPPED: rocminfo is not installed; scripts/setup test would do it'
	skip 'rocminfo is not installed'
fi
# What AMD's runtime (5.2.3 of Debian 12) makes of each list.
while IFS='|' read -r list nodes; do
	is "$(ours ROCR_VISIBLE_DEVICES="$list")" "$nodes" \
		"ROCR_VISIBLE_DEVICES='$list'"
	[ "$list" = 0,,1 ] || ! command -v rocminfo >/dev/null ||
		is "$(rocm ROCR_VISIBLE_DEVICES="$list")" "$nodes" \
			"... as AMD's runtime"
done <<'EOF'
1|2 
1,0|2 1 
2,1,0|3 2 1 
0,0,1|1 
0,5,1|1 
0,-1|1 
5|
|
GPU-7430736f66743031,0|2 1 
gpu-7430736F66743031|2 
1,GPU-7430736f66743031,0|2 
GPU-dead,0|
GPU-743073|
GPU-007430736f66743031|
0x2, 1 |3 2 
08,1|
1a|
1 0|
1,|2 
0,,1|1 
EOF
plan_done
