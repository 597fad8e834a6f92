#!/bin/sh
# t0-qwen3 on the command line, with a tiny model of its own making.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/tiny

exits 0 'a tiny model is made' scripts/make-model "$m"
exits 0 'info' "$q" info --model "$m"
has "$tmp/out" '143808' 'counts its parameters' # by hand, from the shape
exits 0 'the same seed gives the same model' scripts/make-model "$tmp/again"
ok 'to the byte' cmp "$m/model.safetensors" "$tmp/again/model.safetensors"
exits 0 'another seed' scripts/make-model "$tmp/other" --seed 2
ok 'gives another one' sh -c '! cmp -s "$1" "$2"' sh \
	"$m/model.safetensors" "$tmp/other/model.safetensors"

# Greedy tokens are those that the logits command finds largest.
exits 0 'greedy' "$q" generate -q -m "$m" --ids 1,2,3 -n 4 -g --json \
	--weights f32
exits 0 'logits' "$q" logits -m "$m" --ids 1,2,3 --out "$tmp/logits" \
	--weights f32
is "$(wc -c <"$tmp/logits")" 2048 'a float for each of 512 tokens'
exits 0 'logits of all' "$q" logits -m "$m" --ids 1,2,3 --all \
	--out "$tmp/all" --weights f32
is "$(wc -c <"$tmp/all")" 6144 'for each of three'
ok 'the last of which are the same' sh -c \
	'tail -c 2048 "$1" | cmp - "$2"' sh "$tmp/all" "$tmp/logits"

for how in "--weights f16" "--weights int8 --cache int8" "--weights int4" \
	"--cache bf16 --threads 1" "--threads 3 --chunk 2"; do
	# shellcheck disable=SC2086 # options
	exits 0 "generate $how" "$q" generate -q -m "$m" -p 'This License' \
		-n 5 --seed 1 $how
done
exits 0 'one thread' "$q" logits -m "$m" --ids 1,2,3 --out "$tmp/t1" -t 1
exits 0 'three threads' "$q" logits -m "$m" --ids 1,2,3 --out "$tmp/t3" -t 3
ok 'give the same bits' cmp "$tmp/t1" "$tmp/t3"

exits 0 'a seed' "$q" generate -q -m "$m" -p 'The program' -n 12 --seed 7
cp "$tmp/out" "$tmp/first"
exits 0 'the same seed' "$q" generate -q -m "$m" -p 'The program' -n 12 --seed 7
ok 'gives the same text' cmp "$tmp/out" "$tmp/first"
exits 0 'a conversation' "$q" generate -q -m "$m" --chat --system S -p Hi -n 2 \
	--json
has "$tmp/out" '"tokens": 2' 'of as many tokens as were asked for'
printf '[{"role":"user","content":"Hi"}]' >"$tmp/talk"
exits 0 'a conversation from a file' "$q" generate -q -m "$m" \
	--messages "$tmp/talk" -n 2
exits 0 'sharded' scripts/make-model "$tmp/sharded" --shards 3
exits 0 'three files are read' "$q" logits -m "$tmp/sharded" --ids 1,2,3 \
	--out "$tmp/sharded.out" --weights f32
ok 'as one' cmp "$tmp/sharded.out" "$tmp/logits"

# Perplexity of uniform guessing over 512 tokens is 512; noise does worse.
exits 0 'eval' "$q" eval -q -m "$m" -f LICENSE --csv
ok 'a random model is worse than guessing' awk -F, \
	'NR == 2 { exit !($2 > 512 && $2 < 5120) }' "$tmp/out"

# ---- a mixture of experts ----
exits 0 'a mixture' "$q" make -q -m "$tmp/moe" --shape tiny-moe
exits 0 'info' "$q" info -m "$tmp/moe"
has "$tmp/out" '559040' 'counts its parameters' # by hand, from the shape
has "$tmp/out" '12, of which a token uses 3' 'and its experts'
exits 0 'it runs' "$q" generate -q -m "$tmp/moe" -p 'The program' -n 6 -g
exits 0 'as integers' "$q" quantize -q --to int8 "$tmp/moe" "$tmp/moe8" --csv
ok 'nearly the same' awk -F, 'NR == 3 { exit !($6 < 0.05) }' "$tmp/out"
exits 0 'which run' "$q" generate -q -m "$tmp/moe8" -p 'The program' -n 6 -g
exits 0 'on the gfx1100, too' "$q" generate -q -m "$tmp/moe" -p 'The program' \
	-n 6 -g --backend gpu --device soft
exits 0 'into a GGUF file' "$q" convert -q "$tmp/moe" "$tmp/moe.gguf"
exits 0 'which runs' "$q" generate -q -m "$tmp/moe.gguf" --ids 1 -n 2 -g
exits 2 'it is not trained' "$q" train --model "$tmp/moe" --data LICENSE \
	--steps 1 --length 8 "$tmp/moe-learnt"
has "$tmp/err" 'only dense models are trained' 'is told'

for as in f32 bf16 f16; do
	exits 0 "eval with activations of $as" "$q" eval -q -m "$m" -f LICENSE \
		--csv --activations $as
	has "$tmp/out" ",$as" 'says so'
done
exits 0 'eval of integers' "$q" eval -q -m "$m" -w int4 -f LICENSE --csv \
	--activations int8
has "$tmp/out" ',int8' 'says which bytes'

# A head of 32 keys: their bits, and of integers a scale of 16 bits.
while read -r cache bytes; do
	exits 0 "info --cache $cache" "$q" info -m "$m" --cache "$cache" \
		--context 100 --csv
	has "$tmp/out" \
		"$cache: $bytes bytes a token, $((bytes * 100)) bytes for 100" \
		'says what it needs'
	exits 0 "eval with a cache of $cache" "$q" eval -q -m "$m" --ids 1,2,3 \
		--cache "$cache" --csv
	has "$tmp/out" "$((bytes * 3))" 'and what it took'
done <<EOF
f32 $((4 * 2 * 32 * 4))
f16 $((4 * 2 * 32 * 2))
f8 $((4 * 2 * 32))
int8 $((4 * 2 * 34))
int4 $((4 * 2 * 18))
int4r $((4 * 2 * 18))
f16,int4r $((4 * (64 + 18)))
int8,f8 $((4 * (34 + 32)))
EOF
exits 2 'an unknown cache' "$q" info -m "$m" --cache q4_0
has "$tmp/err" 'of keys and of values: int8,int4' 'says what there is'
exits 2 'a cache that the gfx1100 has not' "$q" generate -q -m "$m" --ids 1 \
	-n 1 --cache f16,int4r --backend gpu --device soft
has "$tmp/err" 'of keys and values alike' 'says what it has'

exits 0 'bench' "$q" bench -q -m "$m" --db "$tmp/q.db" --prefill 16 \
	--decode 4 --batch 1,2 --samples 6
exits 0 'its run' "$T0_BUILD/t0-results" show last --db "$tmp/q.db"
has "$tmp/out" 'phase=prefill tokens=16' 'has prefill'
has "$tmp/out" 'phase=decode tokens=4 batch=2' 'and decode of two'
has "$tmp/out" 'token/s' 'in tokens per second'
has "$tmp/out" 'read_limit' 'beside what memory gives'
has "$tmp/out" 'product_limit' 'and what multiply-adds do'
has "$tmp/out" 'peak_memory' 'and the peak of memory'
# People get a line for each test, and programs all of it.
exits 0 'bench for people' "$q" bench -m "$m" --db "$tmp/show.db" --prefill 16 \
	--decode 4 --batch 1,2 --depth 0,8 --samples 6
has "$tmp/err" 'loaded in ' 'loading is apart'
for test in 'prefill 16 ' 'prefill 16 @8 ' 'decode 4 ' 'decode 4 x2 @8 '; do
	ok "$test is a line" grep -q "^$test .*280.9 KiB  *143808  *bf16  *cpu" \
		"$tmp/out"
done
is "$(head -n 1 "$tmp/out" | tr -s ' ' | cut -d' ' -f1-4)" 'test tok/s from to' \
	'with its interval'
exits 0 'bench for programs' "$q" bench -q -m "$m" --db "$tmp/show.db" --csv \
	--prefill 16 --decode 4 --samples 6
has "$tmp/out" ',tokens_per_s_lo,tokens_per_s_hi' 'with the interval, too'
# No sample is shorter than 50 ms, however short what it measures is: six of two.
from=$(date +%s%N)
exits 0 'of short texts' "$q" bench -q -m "$m" --db "$tmp/short.db" --prefill 1 \
	--decode 1 --samples 6
ok 'samples take their time' [ $((($(date +%s%N) - from) / 1000000)) -ge 600 ]
# Keys and values of a position: 2 layers, 2 x 2 heads of 32.
exits 0 'bench behind a filled cache' "$q" bench -q -m "$m" \
	--db "$tmp/deep.db" --prefill 16 --decode 5 --depth 0,300 --samples 1
exits 0 'what a step reads of it' "$T0_BUILD/t0-results" sql --csv \
	--db "$tmp/deep.db" "SELECT params ->> 'depth', value FROM v_results
		WHERE metric = 'cache_per_pass' ORDER BY value"
bytes=$((2 * 2 * 2 * 32 * 2))
is "$(tail -n +2 "$tmp/out" | tr -d '\r' | tr '\n' ' ')" \
	",$((bytes * 4)) 300,$((bytes * 304)) " 'is of f16, of all positions'
exits 0 'the prompt behind it' "$T0_BUILD/t0-results" sql --csv \
	--db "$tmp/deep.db" "SELECT count(*) FROM v_results
		WHERE metric = 'first_token' AND params ->> 'depth' = 300"
has "$tmp/out" 1 'is measured, too'
exits 0 'bench on the gfx1100 in software' "$q" bench -q -m "$m" \
	--backend gpu --device soft --db "$tmp/gpu.db" --prefill 16 --decode 4 \
	--samples 1
exits 0 'stores what it is' "$T0_BUILD/t0-results" sql --db "$tmp/gpu.db" --csv \
	"SELECT DISTINCT origin FROM v_results"
is "$(tail -n +2 "$tmp/out" | tr -d '\r')" emulated 'no figure of hardware among them'
exits 0 'bench in fresh processes' "$q" bench -q -m "$m" --db "$tmp/q.db" \
	--prefill 16 --decode 4 --batch 2 --samples 2 --fresh-process --csv \
	-w int8
ok 'has both phases' awk -F, '$1 == "prefill" && $4 > 0 { n++ }
	$1 == "decode" && $4 > 0 { n++ } END { exit n != 2 }' "$tmp/out"

# weights_of DIR: bytes of its file of weights behind the header.
weights_of() {
	file=$1/model.safetensors
	echo $(($(stat -c %s "$file") - 8 - $(od -An -t u8 -N 8 "$file")))
}

# Written integers are those that are made on load, to the bit.
for to in int8 int4; do
	exits 0 "quantize to $to" "$q" quantize -q --to $to "$m" "$tmp/$to" \
		-p 'This License applies to the program' --csv \
		--db "$tmp/quality.db"
	ok 'the database has it, too' test "$(sqlite3 "$tmp/quality.db" "SELECT
		printf('%d %.6g', b.value, k.value) FROM v_results b JOIN
		v_results k USING(run, case_id) WHERE b.metric =
		'bytes_per_token' AND k.metric = 'mean_kl' AND
		b.params ->> 'weights' = '$to'")" = "$(awk -F, \
		'NR == 3 { print $2, $6 }' "$tmp/out")"
	ok 'with its quality' awk -F, 'NR == 3 && $1 == "'$to'" && $2 > 0 &&
		$5 > 1 && $6 > 0 && $6 < 1 && $7 >= $6 && $8 > 0 { n = 1 }
		END { exit !n }' "$tmp/out"
	is "$(awk -F, 'NR > 1 && $4 > 0 && $10 > 0 && $10 <= $4 && $4 <= $11' \
		"$tmp/out" | wc -l)" 2 'and both speeds, with their intervals'
	is "$(awk -F, 'NR > 1 { print $12 + 0 }' "$tmp/out")" "$(for d in "$m" \
		"$tmp/$to"; do weights_of "$d"; done)" 'and their sizes'
	exits 0 'it loads' "$q" logits -q -m "$tmp/$to" --ids 1,2,3 \
		--out "$tmp/stored"
	exits 0 'the same on load' "$q" logits -q -m "$m" -w $to --ids 1,2,3 \
		--out "$tmp/made"
	ok "is the same: $to" cmp "$tmp/stored" "$tmp/made"
done
for to in int6_32 int3_32; do
	exits 0 "quantize to $to" "$q" quantize -q --to $to "$m" "$tmp/$to" --csv
	is "$(awk -F, 'NR == 3 { print $12 + 0 }' "$tmp/out")" \
		"$(weights_of "$tmp/$to")" 'its size'
	exits 0 'it loads' "$q" logits -q -m "$tmp/$to" --ids 1,2,3 \
		--out "$tmp/stored"
	exits 0 'the same on load' "$q" logits -q -m "$m" -w $to --ids 1,2,3 \
		--out "$tmp/made"
	ok "is the same: $to" cmp "$tmp/stored" "$tmp/made"
done
exits 0 'a text of them on the gfx1100' "$q" generate -q -m "$tmp/int6_32" \
	--ids 1,2 -n 2 -g --backend gpu --device soft
exits 0 'made on load, too' "$q" generate -q -m "$m" \
	--ids 1 -n 1 -w int3_32 --backend gpu --device soft
exits 2 'blocks of GGUF have no kernels there' "$q" generate -q -m "$m" \
	--ids 1 -n 1 -w q8_0 --backend gpu --device soft
has "$tmp/err" 'gpu has no kernels for them; wanted f32' 'is told'
exits 0 'as a GGUF file' "$q" convert -q "$tmp/int6_32" "$tmp/own.gguf"
exits 0 'whose numbers' "$q" logits -q -m "$tmp/own.gguf" --ids 1,2,3 \
	--out "$tmp/floats" --activations f32
exits 0 'with activations alike' "$q" logits -q -m "$tmp/int6_32" --ids 1,2,3 \
	--out "$tmp/blocks" --activations f32
ok 'are the same, but for the order of sums' test "$(paste "-d " \
	"$(od -An -v -tf4 -w4 "$tmp/floats" >"$tmp/a" && echo "$tmp/a")" \
	"$(od -An -v -tf4 -w4 "$tmp/blocks" >"$tmp/b" && echo "$tmp/b")" | awk '
	{ d = $1 - $2; worst = d * d > worst ? d * d : worst }
	END { print worst < 1e-8 }')" = 1
exits 2 'not of such a type' "$q" convert -q --type int6_32 "$m" "$tmp/x.gguf"
has "$tmp/err" 'int6_N and int3_N' 'says who makes it'
exits 0 'info of integers' "$q" info -m "$tmp/int4"
has "$tmp/out" 'int4' 'names them'
exits 0 'a text from integers' "$q" generate -q -m "$tmp/int8" -p 'The' -n 3
exits 2 'quantize to a float' "$q" quantize --to bf16 "$m" "$tmp/x"
has "$tmp/err" 'int8 or int4' 'says what can be'
exits 2 'quantize into itself' "$q" quantize -q --to int8 "$m" "$m"
has "$tmp/err" 'same folder' 'is refused'
exits 2 'quantize into nowhere' "$q" quantize --to int8 "$m"
has "$tmp/err" 'FROM INTO' 'says how'

exits 0 'a sane text is coherent' "$q" check -m "$m" -p 'Yes, it is.'
has "$tmp/err" 'are too few for 3 of 9 limits' 'but short, which is said'
i=0 loop=
while [ $((i += 1)) -le 40 ]; do loop="$loop again and"; done
exits 1 'a loop is not' "$q" check -m "$m" -p "$loop"
has "$tmp/out" 'loop_tokens' 'and says why'
exits 1 'a leaked special token is not' "$q" check -m "$m" \
	-p 'a <|im_start|> b'
exits 2 'what cannot be judged has not passed' "$q" check -m "$tmp/none" -p x

exits 2 'no command' "$q"
has "$tmp/err" 'generate, chat, serve, load, bench' 'lists them'
exits 2 'no model' "$q" info
has "$tmp/err" 'make-model' 'says how to get one'
exits 2 'a folder that is not there' "$q" info -m "$tmp/none"
has "$tmp/err" "$tmp/none" 'is named'
exits 2 'a token that is not there' "$q" generate -m "$m" --ids 1,512
has "$tmp/err" '0 to 511' 'with the range'
exits 2 'no prompt' "$q" generate -m "$m"
has "$tmp/err" '--prompt-file' 'says what was wanted'
exits 2 'a prompt beyond the context' "$q" generate -m "$m" --context 2 \
	--ids 1,2,3
has "$tmp/err" 'leaves no room' 'is refused'
exits 2 'an unknown backend' "$q" info -m "$m" --backend tpu
exits 2 'an unknown type' "$q" info -m "$m" --weights fp8
has "$tmp/err" 'f32, f16, bf16, int8, int4' 'lists them'
exits 2 'a temperature below zero' "$q" generate -m "$m" --ids 1 \
	--temperature -1
exits 2 'a full disk' "$q" logits -m "$m" --ids 1 --out /dev/full
has "$tmp/err" 'No space left' 'is told'

# Damage, byte by byte, in every file.
cp -r "$m" "$tmp/bad"
head -c 200000 "$m/model.safetensors" >"$tmp/bad/model.safetensors"
exits 2 'half the weights' "$q" info -m "$tmp/bad"
has "$tmp/err" 'model.safetensors: ' 'names the file'
cp "$m/model.safetensors" "$tmp/bad/"
sed 's/"num_hidden_layers": 2/"num_hidden_layers": 3/' "$m/config.json" \
	>"$tmp/bad/config.json"
exits 2 'a layer too few' "$q" info -m "$tmp/bad"
has "$tmp/err" 'model.layers.2.' 'names the tensor'
sed 's/"hidden_size": 64/"hidden_size": 65/' "$m/config.json" \
	>"$tmp/bad/config.json"
exits 2 'another shape' "$q" info -m "$tmp/bad"
has "$tmp/err" 'wants [' 'names both shapes'
plan_done
