#!/bin/sh
# t0-qwen3: options that would be without effect, or spoil the result, are
# refused; a text longer than the context is judged to its end.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/tiny

exits 0 'a tiny model is made' scripts/make-model "$m"

# bits WHAT IDS [OPTION...]: bits per token.
bits() {
	what=$1 ids=$2
	shift 2
	exits 0 "$what" "$q" eval -q -m "$m" --ids "$ids" --csv "$@"
	bits=$(tail -n 1 "$tmp/out" | tr -d '\r' | cut -d, -f3)
	count=$(tail -n 1 "$tmp/out" | cut -d, -f1)
}
bits 'the first three of five tokens' 10,20,30
first=$bits
bits 'the last three' 30,40,50
last=$bits
bits 'all five, three at once' 10,20,30,40,50 --context 3
is "$count" 4 'all but the first are judged'
ok 'each in its window' awk "BEGIN { d = ($first + $last) / 2 - $bits
	exit !(d < 1e-4 && d > -1e-4) }"
exits 2 'a window of one token' "$q" eval -m "$m" --ids 1,2,3 --context 1
has "$tmp/err" 'wanted at least 2' 'predicts nothing'

exits 0 'a text as CSV' "$q" generate -q -m "$m" --ids 1,2,3 -n 4 --csv
is "$(head -n 1 "$tmp/out" | tr -d '\r')" \
	ended,prompt_tokens,tokens,first_token_s,decode_tokens_per_s,text,tokens_per_pass,right \
	'begins with its header'

while IFS='|' read -r what said options; do
	# shellcheck disable=SC2086 # options
	exits 2 "$what" "$q" generate -q -m "$m" -n 2 $options
	has "$tmp/err" "$said" "$what: says why"
done <<'EOF'
two prompts|got 2 prompts|--ids 1 -p a
marks of a conversation as text|--plain makes text|--chat --plain -p a
tools without messages|--tools without|--tools x -p a
a system turn without a conversation|--system without|--system x -p a
thinking off without a conversation|--no-think without|--no-think -p a
a conversation of ids|wanted a text|--chat --ids 1
a device for the processor|without --backend|--device kfd --ids 1
fewer than no candidates|"-5" is not a number|--top-k -5 --ids 1
a token with a sign|at "+3"|--ids +3
bytes for weights that are none|it is for integers|--activations int8 --ids 1
unknown activations|got activations "x"|--activations x --ids 1
activations of a device|for the processor|--activations f32 --backend gpu --ids 1
an unknown cache|got the type "x"|--cache x --ids 1
EOF
printf 'a\0b' >"$tmp/zero"
exits 2 'a zero byte in a turn' "$q" generate -q -m "$m" --chat -n 2 \
	-f "$tmp/zero"
has "$tmp/err" 'zero byte, at 1' 'is told'
exits 0 'in plain text it is text' "$q" generate -q -m "$m" -n 2 -f "$tmp/zero"

echo 'nope 3' >"$tmp/limits"
exits 2 'an unknown limit' "$q" check -m "$m" -p a --limits "$tmp/limits"
has "$tmp/err" 'top_share, loop_tokens' 'is told with those there are'

# bench: a prompt of one's own, in this process and in fresh ones.
bench() { # EXIT WHAT OPTION...
	code=$1 what=$2
	shift 2
	exits "$code" "$what" "$q" bench -q -m "$m" --db "$tmp/b.db" \
		--decode 2 --samples 2 "$@"
}
printf 'The program is free software' >"$tmp/text"
bench 0 'bench of a text' --prefill 4 -f "$tmp/text"
bench 0 'in fresh processes' --prefill 4 -f "$tmp/text" --fresh-process
bench 0 'of the same tokens' --prefill 4 -p 'The program is free'
bench 2 'a text shorter than the prompt' --prefill 400 -p a
has "$tmp/err" '--prefill wants 400' 'says how long it must be'
bench 2 'no token to prefill' --prefill 4,0
has "$tmp/err" '--prefill 0: wanted 1 to' 'is refused'
bench 2 'no token to decode' --decode 0
has "$tmp/err" '--decode 0: wanted 1 to' 'is refused, too'
bench 2 'no sequence' --batch 0
bench 2 'a phase that is none' --one x
has "$tmp/err" 'prefill or decode' 'says which there are'
exits 0 'what the runs were' "$T0_BUILD/t0-results" sql --db "$tmp/b.db" --csv \
	"SELECT json_extract(inputs, '\$.prompt'),
	json_extract(inputs, '\$.prompt_file') FROM runs ORDER BY id"
ok 'prompts are known by their tokens, files by their bytes' awk -F, '
	{ sub("\r", "") } NR == 2 { prompt = $1; file = $2 }
	NR == 3 && $1 == prompt && $2 == file && file { n++ }
	NR == 4 && $1 == prompt && !$2 { n++ } END { exit n != 2 }' "$tmp/out"

# The same weights with another rotary base are another model.
cp -r "$m" "$tmp/base"
sed 's/"rope_theta": 1000000.0/"rope_theta": 10000.0/' "$m/config.json" \
	>"$tmp/base/config.json"
for model in "$m" "$tmp/base"; do
	exits 0 'bench of a model' "$q" bench -q -m "$model" \
		--db "$tmp/two.db" --prefill 4 --decode 2 --samples 1
done
exits 0 'their hashes' "$T0_BUILD/t0-results" sql --db "$tmp/two.db" --csv \
	"SELECT count(DISTINCT json_extract(inputs, '\$.model')) FROM runs"
is "$(tail -n 1 "$tmp/out" | tr -d '\r')" 2 'differ'

# appears FILE: waits for it, up to 20 s.
appears() {
	i=0
	while ! [ -e "$1" ] && [ $((i += 1)) -lt 400 ]; do sleep 0.05; done
}

# A signal keeps the samples that are finished.
for wait in 1 4 16; do
	rm -f "$tmp/i.db"
	"$q" bench -q -m "$m" --db "$tmp/i.db" --samples 1000 --prefill 512 \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	appears "$tmp/i.db"
	sleep $wait
	kill -INT $pid
	wait $pid
	is $? 130 "a signal after $wait s"
	n=$("$T0_BUILD/t0-results" sql --db "$tmp/i.db" --csv \
		"SELECT n FROM v_results WHERE metric = 'speed'" | tr -d '\r' |
		tail -n +2)
	[ "${n:-0}" -gt 0 ] && break
done
ok 'leaves its samples' test "${n:-0}" -gt 0
ok 'but not all' test "${n:-0}" -lt 1000

"$q" generate -m "$m" --ids 1,2,3 -g -n 40000 --context 40000 >"$tmp/long" \
	2>"$tmp/err" &
pid=$!
i=0
while ! [ -s "$tmp/long" ] && [ $((i += 1)) -lt 400 ]; do sleep 0.05; done
kill -INT $pid
wait $pid
is $? 130 'a text that a signal cuts is not the one asked for'
has "$tmp/err" 'stopped by SIGINT' 'which is told'

"$q" make -q -m "$tmp/large" --shape 0.6b 2>"$tmp/err" &
pid=$!
appears "$tmp/large/model.safetensors.part"
kill -INT $pid
wait $pid
is $? 130 'make ends at a signal'
is "$(find "$tmp/large" -name '*.part')" '' 'and leaves no half of a file'
plan_done
