#!/bin/sh
# t0-sim: a kernel by trace, by description and by neither; its listings,
# timeline and pictures; costs; validation; mistakes.
. tests/tap.sh
sim=$T0_BUILD/t0-sim
data=$T0_SRC/tests/data
cd "$tmp" || exit 2

"$T0_BUILD/t0-isa" asm "$data/asm/triple.s" -o t.co
exits 0 'the help is shown' "$sim" --help
has out 'FILE [KERNEL] [ARGUMENT...]' 'and tells the usage'
exits 0 'a kernel without description' "$sim" t.co triple
has out 'simulated, not measured' 'says what it is'
has out 'limited by      waiting, ' 'and what limits it: it is latency'
has out 'default' 'and where the costs come from'
exits 0 'annotated' "$sim" --annotate t.co triple
has out 's_waitcnt lgkmcnt(0)' 'with the code'
has out 'smem ' 'and its stalls'
cp out first
exits 0 'again' "$sim" --annotate t.co triple
ok 'the same output' cmp out first

# ---- a trace of the soft device ----
exits 0 'the soft device records' "$T0_BUILD/t0-run" -q --device soft \
	--grid 4096 --block 64 --trace t.trace t.co triple \
	'out:4096:u32=iota' u32:4096
exits 0 'a trace is simulated' "$sim" --trace t.trace --json t.co triple
has out '"workgroups": 64' 'all workgroups count for the GPU'
has out '"stalls"' 'JSON has the stalls'
if command -v python3 >/dev/null; then
	ok 'it is JSON' python3 -c 'import json; d = json.load(open("out"));
assert d["origin"] == "simulated" and d["instructions"] > 0'
else
	skip 'no python3'
fi
exits 0 'cold caches take longer' "$sim" --cold --trace t.trace t.co triple
exits 0 'with a timeline and a picture' "$sim" --trace t.trace \
	--timeline t.json --plot t.svg t.co triple
has t.json '"traceEvents"' 'the timeline is there'
has t.json '"ph":"C"' 'with the occupancy'
has t.svg '<svg' 'the picture, too'
exits 0 'as PNG' "$sim" --plot t.png t.co triple
if command -v python3 >/dev/null; then
	ok 'the timeline is JSON' python3 -c 'import json
e = json.load(open("t.json"))["traceEvents"]
assert any(x["ph"] == "X" and x["cat"] == "stall" for x in e)
assert sum(x.get("cat") not in (None, "stall") for x in e) > 5'
else
	skip 'no python3'
fi

# ---- an affine description ----
cp "$T0_SRC/tests/data/asm/loop.s" .
exits 0 'a loop is assembled' "$T0_BUILD/t0-isa" asm loop.s -o loop.co
printf 'waves 1\nloop 12 9\n' >loop.affine
exits 0 'the loop runs' "$sim" --affine loop.affine --json loop.co loop
# 10 rounds of 4 instructions and the end.
has out '"instructions": 41' 'ten rounds'
"$sim" --affine loop.affine --set branch.taken=127 --json loop.co loop >slow
cycles() { sed -n 's/^ "cycles": \([0-9]*\),$/\1/p' "$1"; }
is $(($(cycles slow) - $(cycles out))) 900 'nine branches, 100 cycles each'

# ---- costs ----
exits 0 'costs' "$sim" costs --csv
has out 'valu.latency,5,cycle,default' 'the vector ALU'
has out 'traces: dot4 two apart,discover_ops' 'what was fitted, and on what'
exits 0 'costs of no database' "$sim" costs --costs published -q
"$T0_BUILD/t0-results" list --db x.db >/dev/null 2>&1
exits 2 'a database that is not there' "$sim" costs --db nowhere.db

cat >p.csv <<'C'
name,value,unit,source
branch.taken,31,cycle,"a paper, page 3"
mem.l2,"200-240",cycle,a blog
mem.l1,nothing,cycle,a blog
mem.l0,90,s,a blog
C
exits 0 'published costs are imported' "$sim" import p.csv --db p.db
has out '2 published costs taken, 2 rows' 'those that are ours'
exits 0 'they are used' "$sim" costs --csv --db p.db
has out 'branch.taken,31,cycle,published' 'as published'
has out 'mem.l2,220,cycle,published' 'a range has its middle'
exits 0 't0-results lists them' "$T0_BUILD/t0-results" costs --db p.db
has out 'a paper, page 3' 'with their source'
exits 0 'costs are compared' "$sim" --db p.db --compare default \
	--affine loop.affine loop.co loop
# Nine branches of 31 cycles by the paper, of 27 by default.
published=$(sed -n 's/^  time  *\([0-9]*\) cycles.*/\1/p' out)
has out "with default costs: $((published - 36)) cycles instead of $published" \
	'nine branches, 4 cycles each'
exits 0 'but not as defaults' "$sim" costs --csv --db p.db --costs default
has out 'branch.taken,27,cycle,default' 'which stay'
printf '%s\n' 'instruction_class,latency_cycles,issue_cycles,source' \
	'valu_fp32_simple,5,1,a table' 'ds_load_b32,32,1,a table' \
	'bw_lds_per_cu,-,128 B/clk/CU,a table' >c.csv
exits 0 'a table of classes' "$sim" import c.csv --db c.db
has out '3 published costs taken, 1 rows' 'by our names'
exits 0 'is used' "$sim" costs --csv --db c.db
has out 'lds.load.latency,33,cycle,published' 'a wait is a cycle'
exits 2 'a table of something else' "$sim" import loop.s --db c.db
if [ -f "$T0_SRC/../shared/reference/rdna3_costs.csv" ]; then
	exits 0 'the published table' "$sim" import --db r.db \
		"$T0_SRC/../shared/reference/rdna3_costs.csv"
	taken=$(sed 's/ .*//' out)
	ok "$taken costs are taken" test "$taken" -ge 40
else
	skip 'no ../shared/reference/rdna3_costs.csv'
fi

# ---- validation ----
printf '%s\n' '{"code":"000100060301000600000006","kernel":"k","sha":"x","events":[[7,"I",0,0,""],[8,"I",0,4,""],[9,"I",0,8,""]]}' >v.jsonl
exits 0 'a trace of hardware' "$sim" validate --traces v.jsonl --rows
has out 'k x' 'has its row'
# From 7 to 9: 2 cycles, and predicted so; nothing was fitted on "k".
has out 'traces  k         no           1' 'and its kernel a line'
# A kernel that was fitted on: one scalar load, 700 cycles until its wait.
printf '%s\n' '{"code":"000000f4000000f8000089bf","kernel":"E_3","sha":"y","gpu_clk_ghz":3,"events":[[0,"I",0,0,""],[700,"I",0,8,""]]}' >w.jsonl
exits 0 'a kernel that costs were fitted on' "$sim" validate --csv \
	--traces w.jsonl --fits
has out 'mem.first_walk_ns,E_3,100,ns' \
	'without it they are what they were before it'
has out 'traces,E_3,yes,1' 'which predicts its row'
printf '%s\n' 'source_doc,system,M,N,K,tile_m,tile_n,tile_k,split_k,wg_mode,other,tflops' \
	'"a, b",Triton,1024,1024,1024,128,128,32,,,reliability=good,50' \
	'c,T0,4096,4096,4096,64,64,16,1,cu,reliability=low,50' >v.csv
exits 0 'published products' "$sim" validate --perf v.csv --rows --db v.db
has out 'times' 'all times are summed up'
has out '1024x1024x1024' 'the reliable one'
has err '1 rows used, 1 left out' 'the other is counted'
exits 0 'both are in the database' "$T0_BUILD/t0-results" history \
	'predict/*' --db v.db
has out 'predicted' 'the prediction'
has out 'published' 'and what it is compared with'
exits 0 'of two files' "$sim" validate --csv --perf v.csv --perf v.csv
has out 'times,each,,2,' 'both count'
# No tile has no elements, and a fourth of them has no column at all.
printf '%s\n' 'source_doc,system,M,N,K,tile_m,tile_n,tile_k,split_k,wg_mode,other,tflops' \
	'a,Triton,1024,1024,1024,128,128,0,,,reliability=good,50' \
	'a,Triton,1024,1024,1024,128,0,32,,,reliability=good,50' \
	'a,Triton,1024,1024,1024,-128,128,32,,,reliability=good,50' \
	'a,Triton,1024,1024,1024,128,128,32,2147483647,,reliability=good,50' \
	'a,Triton,1024,1024,1024,128,128,32,,,reliability=good,50' >tiles.csv
exits 0 'tiles that are none' "$sim" validate --perf tiles.csv
has err '1 rows used, 4 left out' 'are left out'
cut -d , -f 1-7,9- tiles.csv >none.csv
"$sim" validate --perf none.csv >out 2>err
ok 'nor a table without their depth' [ $? -le 2 ]
exits 0 'the errors are drawn' "$sim" validate -q --perf v.csv --plot e.svg
has e.svg '<svg' 'as a picture'

# ---- what is published, each kernel and each source left out ----
shared=$T0_SRC/../shared
# The column of the line that begins so, in percent or as a rank.
column() { awk -F, -v begin="$1" -v k="$2" 'index($0, begin) == 1 { print $k }' out; }
at_most() { awk -v x="$1" -v y="$2" 'BEGIN { exit !(x != "" && x <= y) }'; }
if [ -f "$shared/vectors/gfx1100_timing.jsonl" ]; then
	exits 0 'recorded traces' "$sim" validate --csv \
		--traces "$shared/vectors/gfx1100_timing.jsonl"
	median=$(column traces,each, 5) worst=$(column traces,each, 6)
	ok "off by $median % in the median" at_most "$median" 8
	ok "and by $worst % at worst" at_most "$worst" 20
	is "$(grep -c '^traces,.*,yes,' out)" 5 'of five kernels, each left out'
else
	skip 'no ../shared/vectors/gfx1100_timing.jsonl'
fi
if [ -f "$shared/reference/t0_gemm_published.csv" ]; then
	exits 0 'published products' "$sim" validate -q --csv --ranges --order \
		--perf "$shared/reference/published_perf.csv" \
		--perf "$shared/reference/t0_gemm_published.csv"
	median=$(column times,each, 5) rank=$(column times,each, 8)
	ok "off by $median % in the median" at_most "$median" 15
	ok "in their order: $rank" at_most 0.95 "$rank"
	ok 'WGP mode over CU mode is within 0.03' \
		at_most "$(column pairs,each, 6)" 3
	inside=$(column 'ranges of times,each,' 6)
	ok "ranges of 80 % hold $inside % of what they were not made of" \
		awk "BEGIN { exit !($inside >= 70 && $inside <= 90) }"
	for order in 'one shape' 'small shapes'; do
		right=$(column "order of $order,each," 5)
		ok "in their order, of $order: $right %" at_most 85 "$right"
	done
	least=$(column 'ranges of times,each,' 4)
	most=$(column 'ranges of times,each,' 5)
	ok "range.def has the range of all: $least to $most" awk -v l="$least" \
		-v m="$most" -F '[(,]' '/^TIME_RANGE.TIMES/ {
			exit !($3 / l > .97 && $3 / l < 1.03 &&
			       $4 / m > .97 && $4 / m < 1.03) }' \
		"$T0_SRC/compiler/sim/range.def"
else
	skip 'no ../shared/reference/t0_gemm_published.csv'
fi

# ---- rows whose code is at hand ----
mkdir "$tmp/rows"
"$T0_BUILD/t0-cc" --kernel axpy -o "$tmp/rows/axpy.co" || exit 2
set -- out:65536:f32 buf:65536:f32=iota buf:65536:f32 f32:2 u32:65536
exits 0 'a launch' "$sim" --json --grid 65536 --block 256 "$tmp/rows/axpy.co" \
	axpy "$@"
gpu=$(sed -n 's/^ "time_s": *\([0-9.e-]*\),/\1/p' out)
row() { # LAUNCH [TIME [CODE]]: a table of one row
	printf 'source,code,kernel,grid,block,arguments,launch,time_us\n'
	printf 'x,%s,axpy,65536,256,%s,%s,%s\n' "${3:-axpy.co}" "$words" "$1" \
		"${2:-10}"
}
words=$*
for launch in none,0 queue,2.26 sync,14.96 runtime,11.7 7.5,7.5; do
	row "${launch%,*}" >"$tmp/rows/one.csv"
	exits 0 "a row, launch ${launch%,*}" "$sim" validate -q --csv --rows \
		--perf "$tmp/rows/one.csv"
	ok 'what the launch takes, and that' awk -F, -v gpu="$gpu" \
		-v more="${launch#*,}" '$1 == "code" && $3 ~ /axpy/ {
			d = $5 - (gpu * 1e6 + more); n++
			bad = d > 1e-3 || d < -1e-3
		} END { exit !(n == 1 && !bad) }' out
done
row later >"$tmp/rows/one.csv"
exits 2 'another launch' "$sim" validate --perf "$tmp/rows/one.csv"
has err 'row 2: launch later: wanted none, queue, sync, runtime, or' 'says so'
row none 0 >"$tmp/rows/one.csv"
exits 2 'no time' "$sim" validate --perf "$tmp/rows/one.csv"
has err 'time_us 0: wanted a time above 0' 'says so'
row none 10 none.co >"$tmp/rows/one.csv"
exits 2 'no object' "$sim" validate --perf "$tmp/rows/one.csv"
has err 'rows/none.co' 'says which'

# ---- mistakes ----
exits 2 'no operands' "$sim"
exits 2 'an unknown kernel' "$sim" t.co nothing
has err 'triple' 'the kernels that there are'
exits 2 'no object' "$sim" nowhere.co k
exits 2 'a trace that is none' "$sim" --trace t.co t.co triple
has err 't.co: ' 'names the file'
exits 2 'a dispatch that is not in it' "$sim" --trace t.trace --dispatch 9 \
	t.co triple
exits 2 'trace and description' "$sim" --trace t.trace --affine loop.affine \
	t.co triple
printf 'waves 1\nlop 12 9\n' >bad
exits 2 'a bad line' "$sim" --affine bad loop.co loop
has err 'bad:2: wanted groups, waves' 'says where and what'
printf 'loop 13 9\n' >bad
exits 2 'a bad offset' "$sim" --affine bad loop.co loop
has err 'bad:1: wanted the offset' 'says what'
printf 'at 0 lain=4\n' >bad
exits 2 'a bad field' "$sim" --affine bad loop.co loop
printf 'waves 1000\n' >bad
exits 2 'too many waves' "$sim" --affine bad loop.co loop
exits 2 'a cost that is none' "$sim" --set no.such=1 t.co triple
has err 'no.such' 'by name'
exits 2 'a cost without value' "$sim" --set valu.issue t.co triple
exits 2 'costs of whom' "$sim" --costs mine t.co triple
exits 2 'a picture of what kind' "$sim" --plot t.jpg t.co triple
exits 2 'validate without files' "$sim" validate
printf '{"code":"00"}\n' >bad
exits 2 'a trace without events' "$sim" validate --traces bad
has err 'bad:1: ' 'names the line'
printf 'a,b\n1,2\n' >bad
exits 2 'a table without columns' "$sim" validate --perf bad
printf 'loop 12 999999999\n' >bad
exits 3 'a loop that does not end' timeout 60 "$sim" --affine bad \
	--set branch.taken=100000 loop.co loop
plan_done
