#!/bin/sh
# t0-soft run: programs of others, and our own, see the gfx1100 in software as
# a card of this machine.
. tests/tap.sh

soft=$T0_BUILD/t0-soft
[ -e "$T0_BUILD/libt0-soft-preload.so" ] ||
	skip_all 'this build mode has no adapter (sanitizers cannot be preloaded)'
unset T0_SOFT_ROOT T0_DEVICE
if [ -w /dev/shm ]; then
	TMPDIR=$(mktemp -d -p /dev/shm) || exit 2
	trap 'rm -rf "$tmp" "$TMPDIR"' EXIT
else
	TMPDIR=$tmp
fi
export TMPDIR

run() {
	timeout -k 5 60 "$soft" run "$@"
}
# need PROGRAM: is it installed?
need() {
	command -v "$1" >/dev/null && return
	diag "SKIPPED: $1 is not installed; scripts/setup test would do it"
	skip "$1 is not installed"
	return 1
}

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

# ----------------------------------------------------- programs of others
if need rocm-smi; then
	exits 0 'rocm-smi runs' run -- rocm-smi --showid --showmeminfo vram \
		--showpower --showclocks --showbus
	is "$(grep -c 'GPU ID:' "$tmp/out")" 1 'it shows one GPU'
	has "$tmp/out" 'GPU ID: 0x744c' 'with the device id of the card'
	has "$tmp/out" 'VRAM Total Memory (B): 25753026560' 'and its VRAM'
	has "$tmp/out" 'Average Graphics Package Power (W): 18.0' 'idle power'
	has "$tmp/out" 'PCI Bus: 0000:03:00.0' 'and its place on the bus'
	has "$tmp/out" 'sclk clock level: 0: (500Mhz)' 'and its clock'
	exits 0 'its short form runs' run -- rocm-smi
	has "$tmp/out" '500Mhz' 'and has a line for the card'
fi
if need radeontop; then
	exits 0 'radeontop takes a sample' run -- radeontop -d - -l 1
	has "$tmp/out" 'bus 03, gpu 0.00%' 'of the idle card'
	has "$tmp/out" 'sclk 21.09% 0.500ghz' 'at its lowest clock'
fi
if need rocminfo; then
	# Version 5.2.3 knows no gfx11: it is told that this is a gfx1035.
	exits 0 'rocminfo runs' env HSA_OVERRIDE_GFX_VERSION=10.3.5 \
		timeout 60 "$soft" run -- rocminfo
	has "$tmp/out" 'Compute Unit:            96' 'it shows 96 CUs'
	has "$tmp/out" '25149440(0x17fc000) KB' 'and 24 GB'
	is "$(grep -c 'Device Type:  *GPU' "$tmp/out")" 1 'in one GPU'
fi

# ------------------------------------------------------------- libhsakmt
if ! [ -e /usr/include/hsakmt.h ] || ! command -v gcc >/dev/null; then
	diag 'SKIPPED: libhsakmt-dev is not installed; scripts/setup test would do it'
	skip 'libhsakmt-dev is not installed'
elif ok 'a client of libhsakmt compiles' gcc -Wall -o "$tmp/hsakmt" \
	tests/data/clients/hsakmt.c -lhsakmt; then
	exits 0 'it runs' run -- "$tmp/hsakmt"
	for fact in 'version 1.14' 'gfx 11.0.0' 'cu 96' 'caches 206' \
		'vram 25753026560' 'gpus 1' 'vram reads 42' 'signal 0' \
		'read index 1' 'clock runs' closed; do
		is "$(grep -x "$fact" "$tmp/out")" "$fact" "it sees: $fact"
	done
	exits 1 'a newer kernel refuses the queue of libhsakmt 5.2.3' run \
		--kfd-minor 17 -- "$tmp/hsakmt"
	has "$tmp/out" hsaKmtCreateQueue 'as its save area is too small'
fi
# ----------------------------------------------------------- HSA runtime
# Version 5.2.3 is told that this is a gfx1030: queues, signals, copies by SDMA
# and dispatches are the same; its own blit kernels would be gfx10 code, so the
# loader and fills are used only where the runtime itself says gfx11.
if ! [ -e /usr/include/hsa/hsa.h ] || ! command -v gcc >/dev/null; then
	diag 'SKIPPED: libhsa-runtime-dev is not installed; scripts/setup test would do it'
	skip 'libhsa-runtime-dev is not installed'
elif ok 'a client of the HSA runtime compiles' gcc -Wall -o "$tmp/hsa" \
	tests/data/clients/hsa.c -lhsa-runtime64; then
	if run -- "$tmp/hsa" tests/data/clients/hsa.co >"$tmp/out" \
		2>"$tmp/err"; then
		has "$tmp/out" loaded 'its loader takes a code object'
		has "$tmp/out" 'filled 1234 1234' 'its blit kernels run'
	else
		is "$(cat "$tmp/out")" 'gpus 0' 'this runtime knows no gfx1100'
		diag 'SKIPPED: its loader and its blit kernels, which would be gfx10 code'
		skip 'this HSA runtime knows no gfx11'
		exits 0 'as a gfx1030 it runs' env \
			HSA_OVERRIDE_GFX_VERSION=10.3.0 timeout 60 "$soft" \
			run -- "$tmp/hsa" tests/data/clients/hsa.co
	fi
	for fact in 'cu 96' 'gpus 1' 'dispatch 0' 'barrier 0' 'wrong 0' \
		'time runs' closed; do
		is "$(grep -x "$fact" "$tmp/out")" "$fact" "HSA sees: $fact"
	done
	is "$(grep -c '^copy 0' "$tmp/out")" 3 'copies end'
fi
if ok 'a client that makes calls of every kind compiles' gcc -Wall \
	-D_GNU_SOURCE -o "$tmp/hooks" tests/data/clients/hooks.c -pthread; then
	run -- "$tmp/hooks" >"$tmp/out" 2>&1
	while read -r result name; do
		is "$result" good "$name"
	done <"$tmp/out"
fi
plan_done
