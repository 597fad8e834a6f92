#!/bin/sh
# t0-isa verify: what it prints, its exit codes and its options.
. tests/tap.sh

isa=$T0_BUILD/t0-isa
data=tests/data

exits 0 'a right kernel is a yes' "$isa" verify $data/kernels/saxpy.co
has "$tmp/out" 'saxpy: 0 findings in' 'and says what was looked at'

# s_load_b64 s[2:3], s[0:1], 0; s_mov_b32 s4, s2 (no wait); s_endpgm
fault='80 00 04 f4 00 00 00 f8 02 00 84 be 00 00 b0 bf'
echo "$fault" >"$tmp/hex"
exits 1 'a fault is a no' "$isa" verify --hex "$tmp/hex"
has "$tmp/out" '0x8: wait-lgkmcnt:' 'the address and the rule are named'
has "$tmp/out" 's_mov_b32 s4, s2' 'and the instruction'
has "$tmp/out" 's2 is still being loaded by the s_load_b64 at 0x0' \
	'and what it waits for'
has "$tmp/out" 'path: 0x0' 'and the path'
has "$tmp/out" 'remedy: put s_waitcnt' 'and what to do'
exits 0 'a rule is silenced by its name' "$isa" verify --hex \
	--allow wait-lgkmcnt "$tmp/hex"
exits 2 'an unknown rule is refused' "$isa" verify --hex --allow wait \
	"$tmp/hex"
has "$tmp/err" "no rule is named 'wait'; wanted one of wait-vmcnt" \
	'with the names there are'
exits 1 'JSON has the finding' "$isa" verify --json --hex "$tmp/hex"
has "$tmp/out" '"rule": "wait-lgkmcnt", "address": 8,' 'with keys'
exits 1 'CSV has it' "$isa" verify --csv --hex - <"$tmp/hex"
has "$tmp/out" ',wait-lgkmcnt,8,"s_mov_b32 s4, s2",' 'from stdin, too'

exits 1 'all kernels of an object are verified' "$isa" verify \
	$data/kernels/fault.co
has "$tmp/out" 'forever: 0 findings' 'a loop that reads memory may end'
has "$tmp/out" 'illegal: 1 finding' 'an illegal instruction is found'
exits 0 'or the one that is named' "$isa" verify -k forever \
	$data/kernels/fault.co
exits 2 'a kernel that is not there is an error' "$isa" verify -k none \
	$data/kernels/fault.co
exits 2 'no file is an error' "$isa" verify
exits 2 'a file that is no object is an error' "$isa" verify "$tmp/hex"
plan_done
