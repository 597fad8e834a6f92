#!/bin/sh
# The newest HSA and HIP runtimes that Debian has, unmodified and with their own
# C library: what they say of the card, HIP source compiled by them, and code
# objects of Triton.
. tests/clients/clients.sh

fetched debian
command -v cc >/dev/null || skip_all 'no C compiler is installed'
libraries=$part/usr/lib/x86_64-linux-gnu

# of_debian PROGRAM...: with the libraries fetched, and their dynamic linker.
# shellcheck disable=SC2317 # exits calls it
of_debian() {
	timeout -k 5 120 "$soft" run -- "$libraries/ld-linux-x86-64.so.2" \
		--library-path "$libraries" "$@"
}

exits 0 'rocminfo runs' of_debian "$part/usr/bin/rocminfo"
sed 's/  */ /g; s/^ //; s/ $//' "$tmp/out" >"$tmp/info"
for fact in 'Name: gfx1100' 'Name: amdgcn-amd-amdhsa--gfx1100' \
	'Compute Unit: 96' 'Wavefront Size: 32(0x20)' 'Chip ID: 29772(0x744c)' \
	'Size: 25149440(0x17fc000) KB' 'Max Waves Per CU: 32(0x20)'; do
	is "$(grep -xF "$fact" "$tmp/info" | head -n 1)" "$fact" "it sees: $fact"
done

ok 'a HIP program compiles' cc -O1 -o "$tmp/hip" tests/data/clients/hip.c \
	-lm -ldl
exits 0 'it runs' of_debian "$tmp/hip"
checks "$tmp/out"
is "$(grep 't0-soft' "$tmp/err")" '' 'nothing was refused'
exits 134 'a stray store ends it' of_debian "$tmp/hip" fault
has "$tmp/err" 'Memory access fault by GPU node-1' 'as on the card'
has "$tmp/err" 't0-soft: fault: queue' 'and the device says more'
has "$tmp/err" 'write at 0x123456789000: not mapped' 'where it was'

python=$T0_SRC/build/clients/triton/bin/python
if [ -e "$T0_SRC/build/clients/triton.stamp" ]; then
	exits 0 'Triton compiles kernels' env TRITON_CACHE_DIR="$tmp/cache" \
		"$python" tests/data/clients/triton-kernels.py "$tmp"
	exits 0 'HIP runs them' of_debian "$tmp/hip" triton "$tmp"
	checks "$tmp/out"
else
	diag 'SKIPPED: Triton is not there; make test-clients fetches it'
	skip 'Triton is not there: make test-clients fetches it'
fi
plan_done
