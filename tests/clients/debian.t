#!/bin/sh
# Programs and libraries of Debian 12, as installed, under t0-soft run.
. tests/clients/clients.sh

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
plan_done
