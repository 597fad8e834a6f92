#!/bin/sh
# t0-qwen3 forecast: what must hold whatever the simulator's details are.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
cd "$tmp" || exit 2

# forecast FILE OPTION...
forecast() {
	forecast_to=$1
	shift
	exits 0 "forecast $*" "$q" forecast -q --csv "$@"
	cp "$tmp/out" "$forecast_to"
}

# field FILE PASS KERNEL COLUMN: of the first such row.
field() {
	awk -F, -v p="$2" -v k="$3" -v c="$4" \
		'index($1, p) == 1 && $2 == k { print $c; exit }' "$1"
}

# test_that NAME AWK-CONDITION
test_that() {
	ok "$1: $2" awk "BEGIN { exit !($2) }"
}

forecast bf16 --shape 0.6b --context 256 --prefill 512
# By hand from the shape: 28 layers of five packets, embedding, logits, argmax.
is "$(field bf16 decode '(all)' 3)" 143 'packets of a token'
# Which product a kernel is: of 1024 wide, 16 heads of 128, 3072 in between.
is "$(tr -d '\r' <bf16 | awk -F, '$1 ~ /^decode/ && $2 == "stream_add" {
	print $NF }' | sort | tr '\n' ' ')" 'down o ' 'two products by one kernel'
is "$(tr -d '\r' <bf16 | awk -F, '$1 ~ /^prompt/ && /_w[0-9]/ { print $NF }' |
	sort | tr '\n' ' ')" 'down gate+up o qkv ' 'and each of a layer of a prompt'
is "$(field bf16 decode stream_swiglu 3)" 28 'one for each layer'
decode=$(field bf16 decode '(all)' 7)
prompt=$(field bf16 prompt '(all)' 7)
share=$(field bf16 decode '(all)' 8)
# 1.19 GB of weights at 960 GB/s.
test_that 'no faster than memory' "$decode < 960 / 1.19"
test_that 'half of it at least' "$decode > 960 / 1.19 / 2"
test_that 'its share says so' \
	"$share / 100 * 960 / 1.19 > 0.98 * $decode && $share / 100 * 960 / 1.19 < 1.02 * $decode"
# 123 TFLOPS of matrix products: 2 x 0.44e9 weights for each token.
test_that 'a prompt is faster by far' "$prompt > 20 * $decode"
test_that 'and slower than the peak' "$prompt < 123e12 / (2 * 0.44e9)"
# Half of 512 x 512 scores of 128 elements for 16 heads, and as much for values.
attention=$(field bf16 prompt attention 4)
test_that 'nor is its attention' "$attention > 2 * 512 * 512 * 128 * 16 / 123e6"
ok 'parts add up to the whole' awk -F, '
	index($1, "decode") == 1 && $2 == "(all)" { all = $5 }
	index($1, "decode") == 1 && $2 != "(all)" { sum += $5 }
	END { exit !(sum > 0.999 * all && sum < 1.001 * all) }' bf16

# A mixture: 48 layers of seven packets, of which a router's scores, choices and
# two products are the experts', embedding, logits, argmax.
forecast moe --shape 30b-a3b --weights int4 --context 256 --prefill 64
is "$(field moe decode '(all)' 3)" 339 'packets of a token of a mixture'
is "$(field moe decode expert_swiglu 3)" 48 'one for each layer'
# 8 of 128 experts: 1.8 GB of 4.5 bits and f16 scales, and routers of f32.
mixture=$(field moe decode '(all)' 7)
test_that 'a mixture is no faster than memory' "$mixture < 960 / 1.8"
test_that 'and reads what it uses, not all' "$mixture > 3 * 960 / 17"
is "$(field moe prompt expert_tiles 3)" 48 'tiles for a prompt'

# Rows of a roofline, by hand: 28 layers' queries, keys and values of 512 tokens
# are one product of 512 x 1024 x 4096 each, and logits read 151936 x 1024 bf16.
db=$tmp/f.db
forecast rows --shape 0.6b --context 256 --prefill 512 --db "$db"
ok 'the same with a database' cmp -s bf16 rows
sql() {
	sqlite3 "$db" "$1"
}
flop=$(sql "SELECT f.value * t.value FROM v_results f JOIN v_results t
	USING(run, case_id) WHERE f.metric = 'flops' AND t.metric = 'time' AND
	f.params ->> 'tokens' = 512 AND f.params ->> 'row' = 2")
test_that 'operations of a product' \
	"$flop > 0.97 * 2 * 512 * 1024 * 4096 && $flop < 1.03 * 2 * 512 * 1024 * 4096"
far=$(sql "SELECT value FROM v_results WHERE metric = 'far_bytes' AND
	params ->> 'tokens' = 1 AND name = 'stream_norm'")
test_that 'bytes of a matrix that is read once' \
	"$far > 2 * 151936 * 1024 && $far < 1.05 * 2 * 151936 * 1024"
is "$(sql "SELECT count(*) FROM v_results i JOIN v_results f USING(run, case_id)
	JOIN v_results b USING(run, case_id) JOIN v_results t USING(run, case_id)
	WHERE i.metric = 'intensity' AND f.metric = 'flops' AND b.metric =
	'far_bytes' AND t.metric = 'time' AND abs(i.value * b.value -
	f.value * t.value) > 1e-9 * f.value * t.value")" 0 \
	'intensity is operations by bytes'
# 48 WGPs of 4 SIMDs: 8192 operations in 32 cycles at 2.4 GHz; 960 GB/s.
is "$(sql "SELECT printf('%.1f', value / 1e12) FROM v_results WHERE
	area = 'peak' AND name = 'WMMA at 2.4 GHz'")" 118.0 'the peak of products'
is "$(sql "SELECT value / 1e9 FROM v_results WHERE area = 'peak' AND
	name = 'DRAM'")" 960.0 'and of memory'
is "$(sql "SELECT count(*) FROM v_results f JOIN v_results p ON p.area = 'peak'
	AND p.name = 'WMMA at 3.0 GHz' WHERE f.area = 'kernel' AND
	f.metric = 'flops' AND f.value > p.value")" 0 'no kernel exceeds it'

forecast int4 --shape 0.6b --weights int4 --context 256 --prefill 16
test_that 'fewer bytes, more tokens' "$(field int4 decode '(all)' 7) > 1.3 * $decode"
forecast far --shape 0.6b --context 8192 --prefill 16 --batch 1,8
test_that 'a long context costs' "$(field far 'decode 1 ' '(all)' 7) < 0.9 * $decode"
ok 'attention is then in splits' grep -q '^decode 1 behind 8191,attn_join' far
# 64 groups of 256 keys would give some of 48 WGPs twice as many as others.
forecast six --shape 0.6b --context 1536 --prefill 16
forecast next --shape 0.6b --context 2048 --prefill 16
test_that 'a third more keys take a third longer' \
	"$(field next decode attn_split 4) < 1.5 * $(field six decode attn_split 4)"
forecast eight --shape 0.6b --context 8192 --prefill 16 --cache int8
# 144 bytes for 128 elements instead of 256.
test_that 'a cache of int8 is read in less time' \
	"$(field eight 'decode 1 ' attn_split 4) < 0.7 * $(field far 'decode 1 ' attn_split 4)"
test_that 'and no faster than memory' \
	"$(field eight 'decode 1 ' attn_split 4) > 8192 * 8 * 2 * 144 / 960e3"
is "$(field eight decode '(all)' 3)" "$(field far 'decode 1 ' '(all)' 3)" \
	'in as many packets'
for four in int4 int4r; do
	# 72 bytes, in as much less time; where they are turned, once more a layer.
	forecast $four --shape 0.6b --context 4096 --prefill 16 --batch 8 \
		--cache $four
	test_that "a cache of $four is read as fast as memory is" \
		"$(field $four decode attn_split 4) < 1.1 * 4096 * 8 * 8 * 2 * 72 / 960e3"
done
is "$(field int4r decode turn_heads 3)" 28 'results are turned back'
exits 2 'a cache of two types' "$q" forecast --shape tiny --cache int8,int4
has "$tmp/err" 'of keys and values alike' 'is refused with what there is'
test_that 'a batch shares the weights' \
	"$(field far 'decode 8 ' '(all)' 7) > $(field far 'decode 1 ' '(all)' 7)"

# Costs come from the database: half the memory, half the speed.
cat >half.csv <<'END'
name,value,unit,source
mem.dram_rate,480e9,B/s,half a card
END
exits 0 'costs are imported' "$T0_BUILD/t0-sim" import half.csv --db half.db
forecast slow --shape 0.6b --context 256 --prefill 16 --db half.db
test_that 'a slower card is slower' \
	"$(field slow decode '(all)' 7) < 0.65 * $decode"

# A damaged database is said, not passed over; one still to be written is fine.
head -c 5000 /dev/urandom >bad.db
exits 2 'a damaged database' "$q" forecast -q --shape tiny --db bad.db
has "$tmp/err" 'not a T0 database' 'is named'
exits 0 'a tiny model' "$q" make -q --model tiny
exits 2 'the gpu backend says so, too' env T0_DB=bad.db "$q" generate -q \
	--model tiny --ids 1,2 -n 2 -g --backend gpu --device soft
has "$tmp/err" 'bad.db' 'with its name'
exits 0 'a figure of the device in software' "$q" generate --model tiny \
	--ids 1,2 -n 2 -g --backend gpu --device soft
has "$tmp/err" '(gpu, emulated)' 'says so'
touch file
exits 0 'a cache that cannot be written' env T0_CACHE=file/x "$q" generate \
	--model tiny --ids 1,2 -n 2 -g --backend gpu --device soft
has "$tmp/err" 'warning: kernels are compiled at every run: file/x' 'is said'
exits 0 'one that is not there yet' env T0_DB=new.db "$q" bench -q \
	--model tiny --backend gpu --device soft --prefill 16 --decode 2 --samples 1
has bf16 'default: suits every shape' 'where products come from is said'

exits 2 'a model that does not fit' "$q" forecast -q --shape 32b
has "$tmp/err" 'does not fit' 'is refused'
has "$tmp/err" 'int4' 'with a way out'
# 32.8e9 weights of two bytes, before any is copied.
has "$tmp/err" ': 65.52 GB of weights' 'and how much it is'
exits 2 'a cache that does not fit' "$q" forecast -q --shape 8b \
	--context 40960 --cache f32
has "$tmp/err" 'cache of f32 for 40960 positions' 'is refused, too'
has "$tmp/err" '--context' 'with a way out'
exits 2 'a shape that is not there' "$q" forecast --shape 99b
exits 2 'a context that the model does not have' "$q" forecast --prefill 99999999

# ---- a training step ----
step="--precision bf16 --no-masters --rows 1 --length 256"
# shellcheck disable=SC2086 # words
forecast step --train --shape 0.6b $step --accumulate 2
ok 'parts of a step add up to it' awk -F, '
	$2 == "(all)" { all = $5 }
	NR > 1 && $2 != "(all)" { sum += $5; share += $6 }
	END { exit !(sum > 0.999 * all && sum < 1.001 * all && share > 99 &&
		share < 101) }' step
# Six operations for each of 0.6e9 weights and token, at 118 TFLOPS.
rate=$(field step step '(all)' 7)
test_that 'no faster than the matrix units' "$rate < 118e12 / (6 * 0.59e9)"
test_that 'a tenth of it at least' "$rate > 118e12 / (6 * 0.59e9) / 10"
# bf16 weights, f32 gradients, two states of AdamW: 14 bytes each.
gb=$(field step step '(all)' 9)
test_that 'memory of weights and what they need' \
	"$gb > 14 * 0.596 && $gb < 14 * 0.596 + 2"
ok 'attention goes back once a layer and batch' [ \
	"$(field step batch flash_packed_dkv 3)" = 56 ]
# The same as rows.
db=$tmp/step.db
# shellcheck disable=SC2086
forecast step-rows --train --shape 0.6b $step --accumulate 2 --db "$db"
ok 'the same with a database' cmp -s step step-rows
of() { # METRIC: of the step as a whole
	sql "SELECT value FROM v_results WHERE area = 'step' AND name = '0.6b'
		AND params = '{\"rows\":1,\"length\":256,\"accumulate\":2}'
		AND metric = '$1'"
}
speed=$(of speed)
test_that 'tokens per second' "$speed > $rate - 0.1 && $speed < $rate + 0.1"
# Six for each of 28 layers' 15.7e6 weights and of 151936 x 1024, and attention.
flop=$(awk "BEGIN { print $(of limit_share) * 118e12 / $speed }")
test_that 'operations of a token' "$flop > 6 * 0.596e9 && $flop < 6 * 0.63e9"
test_that 'bytes of memory' \
	"$(of memory) > ($gb - 0.001) * 1e9 && $(of memory) < ($gb + 0.001) * 1e9"
is "$(sql "SELECT count(*) FROM v_results WHERE metric = 'share'")" \
	"$(($(wc -l <step) - 2))" 'a share of every kernel and of launches'
is "$(sql "SELECT printf('%.6f', sum(value)) FROM v_results WHERE
	metric = 'share'")" 1.000000 'they add up to 1'
# AdamW of the largest: weight, gradient and two states, read and written.
far=$(sql "SELECT max(value) FROM v_results WHERE metric = 'far_bytes' AND
	params ->> 'kernel' = 'learn_adamw' AND params ->> 'part' = 'update'")
test_that 'bytes of an update' \
	"$far > 28 * 151936 * 1024 && $far < 1.05 * 28 * 151936 * 1024"
is "$(sql "SELECT printf('%.1f', value / 1e12) FROM v_results WHERE
	area = 'peak' AND name = 'WMMA at 2.4 GHz'")" 118.0 'and the limit'
exits 2 'no database' "$q" forecast -q --train --shape tiny --precision bf16 \
	--rows 1 --length 64 --db bad.db
has "$tmp/err" 'bad.db' 'it is named'
# shellcheck disable=SC2086
exits 2 'all weights of 8b do not fit' "$q" forecast --train --shape 8b $step
has "$tmp/err" 'bytes of device memory' 'it says how much it needs'
has "$tmp/err" 'kept' 'and what for'
# ---- the same in every process, wherever Linux puts its memory ----
for i in 1 2; do
	"$q" forecast --shape 8b --weights int4 --prefill 512 --context 8 --csv \
		-q >"$tmp/same$i"
done
ok 'two processes say one thing' sh -c "cat '$tmp'/same? | sort | uniq -c |
	awk '\$1 % 2 { exit 1 }'"

# ---- beside what others published ----
exits 0 "8b in int4" "$q" forecast --shape 8b --weights int4 --prefill 2048 \
	--context 128 --csv --db "$tmp/near.db"
grep "(all)" "$tmp/out" | tr -d "\r" >"$tmp/all"
# 4.3 GiB of weights: of the published ones those of 4.36 are nearest.
is "$(sed -n 1p "$tmp/all" | cut -d, -f13)" 112.0 "decoding of the nearest model"
has "$tmp/all" "Llama 8B Q4_K_M ROCm, ggml-org" "and a prompt of it"
ok "within the range" awk -F, '{ if (!($11 < $7 && $7 < $12)) exit 1 }' "$tmp/all"
exits 0 "the report" "$T0_BUILD/t0-results" report -q --db "$tmp/near.db" "$tmp/report"
has "$tmp/report/index.html" "ggml-org/llama.cpp#20934" "has them"
exits 0 "tiny" "$q" forecast --shape tiny --prefill 16 --context 16 --csv
is "$(grep -c ggml "$tmp/out")" 0 "nothing is near a tiny model"

# ---- several devices: half of the weights each, and links of 26 GB/s ----
# 0.6b: 28 layers, hidden 1024; each of two fetches the other's sums twice a
# layer, and the first the other's half of 151936 logits; a meeting takes 2.5 us.
for n in 1 2; do
	"$q" forecast -q --shape 0.6b --weights bf16 --context 1024 --prefill 64 \
		--devices $n --csv | tr -d '\r' >"$tmp/on$n"
done
is "$(grep '^decode.*(links)' "$tmp/on2" | cut -d, -f3)" 57 'they meet twice a layer'
ok 'bytes of a token cross the link' sh -c "grep '^decode.*(links)' '$tmp/on2' |
	awk -F, '{ t = 57 * .0025 + (56 * 1024 * 4 + 75968 * 4) / 26e6
		exit !(\$5 > t - .001 && \$5 < t + .001) }'"
is "$(grep -c '(links)' "$tmp/on1")" 0 'one meets nobody'
rate() {
	grep "^$2.*(all)" "$tmp/on$1" | cut -d, -f7
}
ok 'two decode faster than one' awk "BEGIN { exit !(\
	$(rate 2 decode) > 1.1 * $(rate 1 decode)) }"
# 235b-a22b: 94 layers, 4 heads of keys, of which each is on two of 8 devices.
exits 0 'a mixture that no card has room for' "$q" forecast -q \
	--shape 235b-a22b --weights int4 --context 1024 --prefill 16 --devices 8 --csv
tr -d '\r' <"$tmp/out" | grep '^decode' >"$tmp/on8"
is "$(grep '(links)' "$tmp/on8" | cut -d, -f3)" 189 'meets twice a layer, too'
ok 'the shares of its kernels, launches and links are all' awk -F, '
	$2 != "(all)" { sum += $6 } END { exit !(sum > 99 && sum < 101) }' \
	"$tmp/on8"
# Of a token each device reads an eighth of 8 experts of 3 4096 1536 weights in
# 4.5 bits a layer: no kernel is faster than 960 GB/s, or the L2 with what stays.
ok 'experts take as long as their bytes' awk -F, '/expert_/ { us += $4 }
	END { least = 8 * 3 * 4096 * 1536 * 4.5 / 8 / 8 / 960e3
		exit !(us > least && us < 2 * least) }' "$tmp/on8"
exits 2 'one card' "$q" forecast -q --shape 235b-a22b --weights int4 --context 64
has "$tmp/err" 'does not fit' 'is told'
exits 2 'three of eight heads' "$q" forecast -q --shape 0.6b --devices 3
has "$tmp/err" 'the same number of each' 'is told'
set -- --shape tiny --precision bf16 --rows 1 --length 64 --accumulate 2
exits 0 'a step on two' "$q" forecast -q --train "$@" --devices 2 --csv
# 143808 gradients: each sums half, and fetches the other's sums.
ok 'gradients cross the link' sh -c "tr -d '\r' <'$tmp/out' | grep '(links)' |
	awk -F, '{ t = 2 * .0025 + 143808 * 4 / 26e6
		exit !(\$5 > t - .001 && \$5 < t + .001) }'"
exits 2 'an odd batch on two' "$q" forecast -q --train "$@" --devices 4
has "$tmp/err" 'wanted a multiple' 'is told'

# Another chip: its costs, and no range that is gfx1100's.
exits 0 'a forecast of another chip' "$q" forecast --shape tiny --context 64 \
	--prefill 16 --chip gfx1201
has "$tmp/err" 'simulated for gfx1201' 'it says of which'
has "$tmp/err" 'guesses taken over from gfx1100' 'and how much is guessed'
is "$(grep -c ' to ' "$tmp/out")" 0 'no range stands beside it'
exits 2 'rows of another chip' "$q" forecast --shape tiny --chip gfx1201 \
	--db "$tmp/chip.db"
has "$tmp/err" 'is of gfx1100 alone' 'are refused, with the reason'
exits 2 'a chip that is not there' "$q" forecast --shape tiny --chip gfx9
has "$tmp/err" 'no such chip' 'is refused, too'

plan_done
