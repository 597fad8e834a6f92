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
	ended,prompt_tokens,tokens,first_token_s,decode_tokens_per_s,text \
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
an unknown cache|got the type "x"|--cache x --ids 1
EOF
printf 'a\0b' >"$tmp/zero"
exits 2 'a zero byte in a turn' "$q" generate -q -m "$m" --chat -n 2 \
	-f "$tmp/zero"
has "$tmp/err" 'zero byte, at 1' 'is told'
exits 0 'in plain text it is text' "$q" generate -q -m "$m" -n 2 -f "$tmp/zero"
plan_done
