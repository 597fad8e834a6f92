#!/bin/sh
# What a database says of costs, and what discovery found lacking, reaches all
# who compile; a database that says what cost.def says changes nothing.
. tests/tap.sh
unset T0_DB T0_DEVICE
export T0_CACHE=''
cc=$(realpath "$T0_BUILD/t0-cc") r=$(realpath "$T0_BUILD/t0-results")
sim=$(realpath "$T0_BUILD/t0-sim") tune=$(realpath "$T0_BUILD/t0-tune")
qwen=$(realpath "$T0_BUILD/t0-qwen3")
cd "$tmp" || exit 2

# database FILE ORIGIN: lines "NAME METRIC UNIT VALUE" of stdin as costs.
database() {
	rm -f "$1"*
	awk -F '[\t ]' -v origin="$2" 'BEGIN {
		print "{\"t0\":{\"export\":1,\"schema\":6}}"
		printf "{\"run\":{\"uuid\":\"r\",\"tool\":\"t0-probe latency\"," \
			"\"argv\":\"\",\"inputs\":\"{}\",\"conditions\":\"{}\"," \
			"\"seed\":1,\"start_ns\":1,\"end_ns\":2,\"state\":" \
			"\"complete\",\"exit_code\":0,\"reason\":\"\"," \
			"\"owner\":\"\",\"host\":{\"machine\":\"m\",\"cpu\":" \
			"\"c\",\"kernel\":\"k\",\"cores\":1,\"mem_bytes\":1}," \
			"\"device\":{\"name\":\"a card\",\"gfx\":\"gfx1100\"," \
			"\"uid\":\"1\",\"pci\":\"\",\"driver\":\"kfd\"," \
			"\"firmware\":\"\",\"facts\":\"{}\",\"origin\":\"%s\"," \
			"\"cu_count\":96,\"vram_bytes\":1},\"build\":{" \
			"\"version\":\"1\",\"git_commit\":\"c\",\"dirty\":0," \
			"\"compiler\":\"cc\",\"flags\":\"\",\"binary\":\"b\"}}}\n",
			origin
	}
	$2 == "slot" {
		printf "{\"slot\":{\"encoding\":\"%s\",\"opcode\":%d,\"form\":" \
			"\"\",\"mnemonic\":\"%s\",\"verdict\":\"%s\"," \
			"\"signature\":\"\",\"reason\":\"\",\"expected\":" \
			"\"executes\",\"oracle\":null,\"emulated_ok\":%s," \
			"\"difference\":\"\",\"errata\":\"\"}}\n", $3, NR, $1,
			$4, $5
		next
	}
	{
		printf "{\"result\":{\"case\":{\"area\":\"cost\",\"name\":" \
			"\"%s\",\"params\":\"{}\"},\"metric\":\"%s\",\"unit\":" \
			"\"%s\",\"value\":%s,\"lo\":null,\"hi\":null,\"n\":9," \
			"\"clock_hz\":null,\"better\":\"lower\",\"origin\":" \
			"\"%s\",\"source\":\"\",\"samples\":[]}}\n", $1, $2, $3,
			$4 ~ /[.e]/ ? $4 : $4 ".0", origin
	}' | "$r" import --quiet --db "$1" -
}
kernels=$("$cc" --list --json | sed -n 's/.*"kernel": "\([^"]*\)".*/\1/p')
"$r" import --quiet --db empty.db - <<'HEAD'
{"t0":{"export":1,"schema":6}}
HEAD
"$sim" costs --costs default --quiet --csv | tr -d '\r' |
	awk -F, 'NR > 1 { print $1 "\tvalue\t" $3 "\t" $2 }' | tr -d '"' >defaults
database same.db hardware <defaults
ok 'every cost is in the database' [ "$(wc -l <defaults)" -gt 120 ]
n=0 wrong=''
for k in $kernels; do
	"$cc" -k "$k" -o none.co 2>/dev/null || continue
	"$cc" -k "$k" -o empty.co --db empty.db
	"$cc" -k "$k" -o same.co --db same.db
	n=$((n + 1))
	cmp -s none.co empty.co && cmp -s none.co same.co || wrong="$wrong $k"
done
ok "$n kernels were compiled" [ "$n" -gt 30 ]
is "$wrong" '' 'an empty database and one of defaults change not one byte'

exits 0 'explain: without a database' "$cc" -k swiglu -o a.co --explain-costs
has "$tmp/err" ': 0 hardware, 0 published' 'explain: all are defaults'
has "$tmp/err" '0 lacking' 'explain: nothing is lacking'
ok 'the object says so itself' env LC_ALL=C grep -aq 't0.costs.*0 hardware, 0 published' a.co
if command -v llvm-readelf-19 >/dev/null; then
	llvm-readelf-19 --notes a.co >notes 2>&1
	has notes 't0.costs' 'LLVM reads the note'
	has notes 'amdhsa.target' 'to its end'
else
	diag 'llvm-readelf-19 is not installed'
	skip 'no LLVM'
fi
database slow.db hardware <<'COSTS'
valu.latency value cycle 2
v_fma_f32 latency cycle 7
COSTS
exits 0 'explain: with one' "$cc" -k swiglu -o b.co --explain-costs --db slow.db
has "$tmp/err" ': 2 hardware, 0 published' 'explain: counts what is measured'
has "$tmp/err" 'valu.latency' 'explain: and lists it'
ok 'the object says so, too' env LC_ALL=C grep -aq 't0.costs.*2 hardware' b.co

assembly() { # KERNEL [OPTION...]
	k=$1
	shift
	"$cc" -k "$k" -S "$@" | grep '^	[a-z]' | grep -v '^	\.'
}
# One cost, and what it changes.
assembly softmax >plain
assembly softmax --db slow.db >changed
ok 'a delay: fewer hints for a faster vector ALU' [ \
	"$(grep -c s_delay_alu changed)" -lt "$(grep -c s_delay_alu plain)" ]
assembly softmax --set trans.latency=30 >changed
ok 'a delay: other hints for slower transcendentals' \
	sh -c '! cmp -s plain changed'
database far.db hardware <<'COSTS'
smem.latency value cycle 2000
vmem.load.latency value cycle 1
valu.latency value cycle 60
COSTS
moved=''
for k in $kernels; do
	assembly "$k" 2>/dev/null | grep -v s_delay_alu >plain.$k
	assembly "$k" --db far.db 2>/dev/null | grep -v s_delay_alu >changed
	cmp -s "plain.$k" changed || moved=$k
	[ -z "$moved" ] || break
done
ok "a schedule: $moved is in another order" [ -n "$moved" ]

# What discovery found on a card.
assembly softmax >plain
ok 'there are delays to leave out' grep -q s_delay_alu plain
ok 'and pairs' grep -q v_dual plain
echo 's_delay_alu slot SOPP illegal null' | database lack.db hardware
assembly softmax --db lack.db >changed
ok 'lacking: no hint is given' sh -c '! grep -q s_delay_alu changed'
sed -n 's/^	\(v_dual_[a-z0-9_]*\).*/\1 slot VOPD illegal null/p' plain |
	sort -u >pairs
database lack.db hardware <pairs
assembly softmax --db lack.db >changed
first=$(sed -n '1s/ .*//p' pairs)
ok "lacking: no $first" sh -c "! grep -q '$first ' changed"
exits 0 'lacking: it compiles all the same' "$cc" -k softmax -o c.co \
	--db lack.db
fused='' with=''
for op in v_lshl_add_u32 v_add3_u32 v_and_or_b32 v_lshl_or_b32; do
	for k in $kernels; do
		assembly "$k" 2>/dev/null | grep -q "	$op " || continue
		fused=$op with=$k
		break 2
	done
done
echo "$fused slot VOP3 executes 0" | database lack.db hardware
assembly "$with" --db lack.db >changed 2>"$tmp/err"
ok "different: $with does without $fused, or says what it needs" sh -c \
	"! grep -q '	$fused ' changed && { [ -s changed ] ||
	grep -q 'computes something else' '$tmp/err'; }"
echo 'v_exp_f32 slot VOP1 illegal null' | database lack.db hardware
exits 2 'lacking: no way round' "$cc" -k softmax -o c.co --db lack.db
has "$tmp/err" 'needs v_exp_f32, which was found to be illegal as VOP1' \
	'lacking: is refused by name'
has "$tmp/err" 'on a card (discovery, run 1)' 'lacking: with who found it'
echo 'v_exp_f32 slot VOP1 illegal null' | database lack.db emulated
exits 0 'lacking: what an emulator says is not heard' "$cc" -k softmax \
	-o c.co --db lack.db
exits 2 'who only reads wants a database that is there' "$tune" --list \
	--shapes 512x512x512 --db gone.db
exits 2 'as do the costs' "$sim" costs --db gone.db
T0_DB=gone.db exits 0 'is none where nothing names it' "$cc" -k softmax -o c.co

# Lists and forecasts.
"$tune" --list --shapes 512x512x512 --csv >plain
"$tune" --list --shapes 512x512x512 --csv --db same.db >changed
ok 'tiles: defaults change no list' cmp plain changed
"$tune" --list --shapes 512x512x512 --csv --set wmma.issue=256 >changed
ok 'tiles: --set changes it' sh -c '! cmp -s plain changed'
echo 'wmma.issue value cycle 256' | database wmma.db hardware
"$tune" --list --shapes 512x512x512 --csv --db wmma.db >measured
ok 'tiles: the database as --set' cmp measured changed
"$qwen" forecast --shape 0.6b --context 128 --prefill 16 --csv >plain
"$qwen" forecast --shape 0.6b --context 128 --prefill 16 --csv --db same.db >changed
ok 'forecast: defaults change nothing' cmp plain changed
"$qwen" forecast --shape 0.6b --context 128 --prefill 16 --csv --db wmma.db >changed
ok 'forecast: a slower unit does' sh -c '! cmp -s plain changed'
plan_done
