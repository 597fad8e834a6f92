#!/bin/sh
# --speculate and --draft on the command line: the same text, refusals, and what
# bench stores of it.
. tests/tap.sh
. tests/engine/learnt.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
r=$T0_BUILD/t0-results
learnt_model
tail -c +5000 "$learnt_text" | head -c 140 >"$tmp/prompt"
{ echo && cat "$tmp/prompt"; } >"$tmp/newline"

# write NAME OPTION...: a text, in $tmp/NAME.
write() {
	name=$1
	shift
	exits 0 "text $name" "$q" generate -m "$learnt" -f "$tmp/prompt" \
		-n 40 "$@"
	cp "$tmp/out" "$tmp/$name"
	cp "$tmp/err" "$tmp/$name.err"
}
exits 0 'heads learn' "$q" train -q --medusa 2 --model "$learnt" \
	--data "$learnt_text" --length 128 --steps 40 --rate 0.003 --csv \
	"$tmp/heads"
ok 'each says how often it is right about what is held out' awk -F, '
	NR > 1 && $2 > 0 && $3 > 0 && $4 > 0.01 { n++ } END { exit n != 2 }' \
	"$tmp/out"
exits 0 'a layer of EAGLE learns' "$q" train -q --eagle 2 --model "$learnt" \
	--data "$learnt_text" --length 64 --rows 4 --steps 40 --rate 0.003 --csv \
	"$tmp/layer"
ok 'and is right more often than that' awk -F, '
	NR > 1 && $2 > 0 && $3 > 0 && $4 > 0.05 { n++ } END { exit n != 2 }' \
	"$tmp/out"
write plain -g
for delay in 1 4 16; do # the model is read by then
	timeout --preserve-status -s INT $delay "$q" train -q --medusa 2 --model "$learnt" \
		--data "$learnt_text" --length 128 --steps 1000000 "$tmp/early" \
		>"$tmp/out" 2>"$tmp/err"
	status=$?
	! grep -q 'of 1000000 steps' "$tmp/err" || break
done
is "$status" 130 'a signal ends it'
has "$tmp/err" 'of 1000000 steps' 'it says how far heads have come'
exits 0 'and they are there' "$q" generate -q --model "$learnt" -n 4 --prompt The \
	--greedy --heads "$tmp/early"
write medusa -g --heads "$tmp/heads"
write medusa-one -g --speculate medusa:1 --heads "$tmp/heads"
write eagle -g --speculate eagle --heads "$tmp/layer"
write lookup -g --speculate lookup
write draft -g --draft "$learnt"
write wrong -g --speculate wrong
write short -g --speculate lookup:2 --chunk 3
write int4 -g -w int4
write int4-draft -g -w int4 --speculate draft:4 --draft "$learnt"
write drawn --temperature 0.8 --seed 5
write drawn-lookup --temperature 0.8 --seed 5 --speculate lookup
for as in lookup draft wrong short medusa medusa-one eagle; do
	ok "greedy, the text with $as is the same" cmp "$tmp/plain" "$tmp/$as"
done
ok 'of int4, too' cmp "$tmp/int4" "$tmp/int4-draft"
ok 'and what is drawn with lookup' cmp "$tmp/drawn" "$tmp/drawn-lookup"
has "$tmp/lookup.err" '; lookup: ' 'who proposed'
has "$tmp/lookup.err" ' tokens a pass, ' 'how many came at once'
has "$tmp/medusa.err" '; medusa: ' 'heads do'
has "$tmp/wrong.err" ' 0 % of what it proposed right' 'and how often it was right'
exits 0 'as JSON' "$q" generate -q -m "$learnt" -f "$tmp/prompt" -n 20 -g \
	--draft "$learnt" --json
has "$tmp/out" '"right": 1' 'the model is its own best draft'

while IFS='|' read -r what said options; do
	# shellcheck disable=SC2086 # options
	exits 2 "$what" "$q" generate -q -m "$learnt" -p a -n 2 $options
	has "$tmp/err" "$said" "$what: says why"
done <<'END'
an unknown proposer|wanted lookup, draft, medusa, eagle or wrong|--speculate guess
none at once|:1 to :7|--speculate lookup:0
too many at once|:1 to :7|--speculate lookup:8
no number|:1 to :7|--speculate lookup:a
a draft that is not named|without --draft DIR|--speculate draft
a draft that is not used|which has no such folder|--speculate lookup --draft x
heads that are not named|without --heads DIR|--speculate medusa
heads and a draft|which has no such folder|--heads x --draft x
heads that are not there|/nowhere/config.json|--heads /nowhere
a draft that is not there|no such folder or file|--draft /nowhere
a backend that cannot|wanted cpu|--speculate lookup --backend gpu --device soft
END
while IFS='|' read -r what said options; do
	# shellcheck disable=SC2086 # options
	exits 2 "train: $what" "$q" train -q --data "$learnt_text" \
		$options "$tmp/none"
	has "$tmp/err" "$said" "train: $what: says why"
done <<END
more heads than a pass takes|--medusa 9: wanted 1 to 7|--medusa 9 --model $learnt
more in a row|--eagle 8: wanted 1 to 7|--eagle 8 --model $learnt
heads of no model|--medusa without --model|--medusa 2
a layer of none|--eagle without --model|--eagle 2
both|wanted one of both|--medusa 2 --eagle 2 --model $learnt
heads that are to go on|heads learn in one run|--eagle 2 --model $learnt --resume
END
exits 0 'a model of other tokens' scripts/make-model "$tmp/tiny"
exits 2 'is no draft' "$q" generate -q -m "$learnt" -p a --draft "$tmp/tiny"
has "$tmp/err" 'a vocabulary of 512 tokens; the model has 600' 'is told'
cp -r "$learnt" "$tmp/words"
sed 's/"th"/"zq"/g; s/"t h"/"z q"/g' "$learnt/tokenizer.json" \
	>"$tmp/words/tokenizer.json"
exits 2 'nor one of as many others' "$q" generate -q -m "$learnt" -p a \
	--draft "$tmp/words"
has "$tmp/err" "$tmp/words: " 'which is named'

# ---- serve ----
# answer OPTION...: what four clients at once, who ask for the prompt and its
# first half, greedy and drawn, get.
head -c 70 "$tmp/prompt" >"$tmp/half"
answer() {
	rm -f "$tmp/said" # the last server's address
	"$q" serve -m "$learnt" --port 0 --threads 1 --sequences 3 --chunk 16 "$@" \
		>"$tmp/said" 2>"$tmp/log" &
	server=$!
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		grep -qs listening "$tmp/said" && break
		sleep 0.5
	done
	url=$(sed 's/.* //' "$tmp/said")
	set --
	for i in 1 2 3 4; do
		[ $((i % 2)) = 0 ] && file=half || file=prompt
		{ printf '{"max_tokens":40,"temperature":%s,"seed":%s,"prompt":' \
			"$((i > 2))" "$i" &&
			sqlite3 :memory: \
				"SELECT json_quote(CAST(readfile('$tmp/$file') AS TEXT))" &&
			echo '}'; } >"$tmp/ask.$i"
		curl -s -m 60 "$url/v1/completions" -d @"$tmp/ask.$i" |
			sed 's/.*"text":"\(.*\)"}],"usage.*/\1/' >"$tmp/answer.$i" &
		set -- "$@" $!
	done
	wait "$@"
	cat "$tmp/answer.1" "$tmp/answer.2" "$tmp/answer.3" "$tmp/answer.4"
	curl -s "$url/metrics" >"$tmp/metrics"
	kill -INT "$server"
	wait "$server"
}
answer >"$tmp/served"
ok 'texts are served' [ "$(wc -c <"$tmp/served")" -gt 200 ]
for as in 'lookup --speculate lookup' "draft --draft '$learnt'" \
	"medusa --heads '$tmp/heads'" \
	"eagle --speculate eagle --heads '$tmp/layer'"; do
	eval "answer ${as#* }" >"$tmp/served.${as%% *}"
	ok "served with ${as%% *}, texts are the same" \
		cmp "$tmp/served" "$tmp/served.${as%% *}"
	# How many depends on what they cost; tests/serve/batch.c has those right.
	ok 'and some were proposed' \
		grep -q '^t0_proposed_tokens_total [1-9]' "$tmp/metrics"
	diag "$(grep -E '^t0_(proposed|accepted)' "$tmp/metrics" | tr '\n' ' ')"
done

# ---- bench ----
# rows WHAT QUERY: what it gives, on one line.
rows() {
	exits 0 "$1" "$r" sql --csv --db "$tmp/db" "$2"
	rows=$(tail -n +2 "$tmp/out" | tr -d '\r' | tr '\n' ' ')
}
for file in prompt newline; do
	exits 0 "bench of $file" "$q" bench -q -m "$learnt" --prefill 32 \
		--decode 48 --samples 6 -f "$tmp/$file" --speculate lookup \
		--db "$tmp/db" --csv
	ok 'a row has the gain, tau and acceptance' awk -F, '
		$1 == "lookup" && $13 > 0 && $14 >= 1 && $15 >= 0 { n++ }
		END { exit n != 1 }' "$tmp/out"
done
rows metrics "SELECT metric FROM v_results WHERE run = 1 AND
	params ->> 'how' = 'lookup' ORDER BY metric"
is "$rows" 'acceptance gain pass_cost propose_cost speed tau tokens_per_pass ' \
	'are all there'
rows 'without it' "SELECT metric FROM v_results WHERE run = 1 AND
	params ->> 'how' = 'one'"
is "$rows" 'speed ' 'is the speed beside it'
rows verdicts "SELECT kind FROM v_verdicts WHERE run = 1 AND
	params ->> 'how' = 'lookup' ORDER BY kind"
is "$rows" 'coherence correctness ' 'the text is judged for itself'
exits 2 'a prompt that a newline was put before' "$r" compare 1 2 \
	--db "$tmp/db"
has "$tmp/err" 'inputs.prompt is' 'is another one: it is not compared'
plan_done
