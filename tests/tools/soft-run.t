#!/bin/sh
# t0-soft run: programs of others, and our own, see the gfx1100 in software as
# a card of this machine.
. tests/soft-run.sh
# ------------------------------------------------------------ the tool
exits 2 'without a program it says what it wants' "$soft" run
has "$tmp/err" 'wanted -- PROGRAM' 'namely one'
exits 2 'a program that is not there is trouble' run -- no-such-program
has "$tmp/err" 'no-such-program: no such program' 'which it names'
exits 2 'KFD versions are 1.1 to 1.19' run --kfd-minor 20 -- true
exits 0 'a program that ends well' run -- true
exits 7 'its exit status is passed on' run -- sh -c 'exit 7'
# shellcheck disable=SC2016 # the shell inside expands it
exits 143 'and so is the signal that ended it' run -- sh -c 'kill -TERM $$'

# ----------------------------------------------------------- the files
exits 0 'nodes are character devices' run -- stat -c '%F %t:%T' /dev/kfd \
	/dev/dri/card0 /dev/dri/renderD128
is "$(tr '\n' ' ' <"$tmp/out")" \
	'character special file 1ff:0 character special file e2:0 character special file e2:80 ' \
	'with the numbers of DRM'
exits 0 'sysfs is there' run -- cat /sys/class/kfd/kfd/topology/nodes/1/gpu_id
is "$(cat "$tmp/out")" 41852 'with the card as node 1'
exits 0 'links lead to it' run -- cat /sys/class/drm/renderD128/device/device
is "$(cat "$tmp/out")" 0x744c 'by its device id'
exits 0 'real paths are those of sysfs' run -- \
	realpath /sys/dev/char/226:128/device
is "$(cat "$tmp/out")" \
	/sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0 'not of a temporary folder'
exits 0 'folders are listed' run -- ls /dev/dri
is "$(tr '\n' ' ' <"$tmp/out")" 'card0 renderD128 ' 'with both nodes'
exits 0 'programs started by programs see it too' run -- \
	sh -c 'sh -c "ls /sys/class/drm"'
is "$(tr '\n' ' ' <"$tmp/out")" 'card0 renderD128 ' 'as the first one did'
exits 0 'the blocks of the chip are listed' run -- cat \
	/sys/class/drm/renderD128/device/ip_discovery/die/0/11/0/major \
	/sys/class/drm/renderD128/device/ip_discovery/die/0/SDMA0/0/major \
	/sys/class/drm/renderD128/device/ip_discovery/die/0/GC/0/base_addr
is "$(tr '\n' ' ' <"$tmp/out")" \
	'11 6 0x00001260 0x0000A000 0x0001C000 0x02402C00 ' \
	'with versions and bases, by number and by name'
exits 0 'other files are those of the machine' run -- cat /etc/hostname
is "$(cat "$tmp/out")" "$(cat /etc/hostname)" 'unchanged'
is "$(find "$TMPDIR" -name 't0-soft-*')" '' 'no folder is left behind'

# -------------------------------------------------------- our own tools
dev=$T0_BUILD/t0-device
exits 0 'the runtime finds the card through libc' run -- "$dev" info --csv \
	-q --device kfd
grep -vE '^(device|driver|KFD version|device clock|edge|GTT|gtt|VRAM avail)' \
	"$tmp/out" >"$tmp/kfd"
"$dev" info --csv -q --device soft |
	grep -vE '^(device|driver|KFD version|device clock|edge|GTT|gtt|VRAM avail)' \
		>"$tmp/soft"
ok 'and reads of it what the device itself says' cmp "$tmp/kfd" "$tmp/soft"
has "$tmp/out" 'origin of figures,emulated' 'not as hardware'
exits 0 'a kernel runs on it' run -- "$T0_BUILD/t0-run" -q --device kfd \
	tests/data/kernels/saxpy.co saxpy -g 64 -b 64 f32:2 \
	buf:64:f32=iota out:64:f32=1 u32:64
has "$tmp/out" '1 3 5 7 9 11 13 15' 'with the right answer'
exits 0 'with a small BAR, too' run --small-bar -- "$dev" info --csv -q \
	--device kfd
has "$tmp/out" 'no (small BAR)' 'which it says'

# ---------------------------------------------------- what is refused
if command -v python3 >/dev/null; then
	# Functions looked up in libc's own handle: nothing else of it is.
	cat >"$tmp/client.py" <<-'EOF'
		import ctypes, mmap
		libc = ctypes.CDLL("libc.so.6", use_errno=True)
		libc.mmap.restype = libc.dlsym.restype = ctypes.c_void_p
		fd = libc.open(b"/dev/kfd", 2)
		version = (ctypes.c_uint32 * 2)()
		print(libc.ioctl(fd, 0x80084b01, version), *version)
		memory = libc.mmap(None, 8192, 3, 1, fd, ctypes.c_long(3 << 62 | 0xa37c << 46))
		print(memory not in (None, 2**64 - 1))
		print(libc.ioctl(fd, 0xc0584b02, (ctypes.c_uint32 * 22)()))
		same = libc.dlsym(ctypes.c_void_p(libc._handle), b"ioctl")
		print(same == ctypes.cast(libc.ioctl, ctypes.c_void_p).value)
		print(libc.getpid() > 0, ctypes.CDLL(None).open is not None)
	EOF
	exits 0 'who looks functions up in libc finds the device, too' run \
		--log "$tmp/log" -- python3 "$tmp/client.py"
	is "$(tr '\n' ' ' <"$tmp/out")" '0 1 14 True -1 True True True ' \
		'by open, ioctl, mmap and dlsym'
	has "$tmp/log" 't0-soft: refused: ioctl CREATE_QUEUE: gpu_id is 0' \
		'what is refused stands in the log'
	is "$(cat "$tmp/err")" '' 'and not on standard error'
fi
exits 2 'a log that cannot be written is trouble' run --log /nowhere/log -- true
has "$tmp/err" '/nowhere/log' 'which is named'

# ------------------------------------------------- calls of every kind
if ok 'a client that makes calls of every kind compiles' gcc -Wall \
	-D_GNU_SOURCE -o "$tmp/hooks" tests/data/clients/hooks.c -pthread; then
	run -- "$tmp/hooks" >"$tmp/out" 2>"$tmp/err"
	while read -r result name; do
		is "$result" good "$name"
	done <"$tmp/out"
fi
plan_done
