#!/bin/sh
# t0-qwen3 load against our own server: answers, rows, verdicts, plot, gate.
. tests/tap.sh
unset T0_DB http_proxy
q=$T0_BUILD/t0-qwen3
r=$T0_BUILD/t0-results
m=$tmp/model
exits 0 'a tiny model is made' scripts/make-model "$m"

start() {
	rm -f "$tmp/said" # of the one before
	"$q" serve -m "$m" --port 0 --threads 1 "$@" >"$tmp/said" 2>"$tmp/log" &
	server=$!
	for _ in $(seq 240); do
		grep -qs listening "$tmp/said" && break
		sleep 0.25
	done
	url=$(sed 's/.* //' "$tmp/said")
}
load() { "$q" load -q --url "$url" --db "$tmp/db" --seed 3 --samples 2 "$@"; }
sql() { "$r" sql --csv --db "$tmp/db" "$@" | tr -d '\r' | tail -n +2; }
counter() { curl -s "$url/metrics" | sed -n "s/^t0_$1 //p"; }

start
exits 0 'two rates' load --request-rate 40,80 --requests 10 --tokens 6 \
	--csv --log "$tmp/rows" --tokenizer "$m"
is "$(tail -n +2 "$tmp/out" | cut -d , -f 1,2,13 | tr -d '\r' | tr '\n' ' ')" \
	'40,20,none 80,20,none ' 'a row for each'
is "$(counter requests_finished_total)" 40 'the server has finished as many'
is "$(tail -n +2 "$tmp/rows" | wc -l)" 40 'the log has a row for each'
is "$(awk -F , 'NR > 1 { n += $7 } END { print n }' "$tmp/rows")" "$(counter tokens_total)" \
	'with as many tokens as the server wrote'

# ---- rows ----
is "$(sql "SELECT DISTINCT area || ' ' || name || ' ' || (params ->> 'rate') FROM v_results" | tr '\n' ' ')" \
	'load model 40 load model 80 ' 'cases are rates of the model'
is "$(sql "SELECT sum(value) FROM v_results WHERE metric LIKE 'errors%'")" 0 'no error'
is "$(sql "SELECT count(*) FROM v_results WHERE metric IN('throughput', 'answers', 'goodput', 'first_token', 'first_token_p90', 'first_token_p99', 'answer') AND value > 0 AND n = 2")" \
	14 'metrics have a value of each sample'
is "$(sql "SELECT DISTINCT verdict FROM v_verdicts WHERE kind = 'correctness'")" pass \
	'all were answered'
verdict() { sql "SELECT DISTINCT verdict FROM v_verdicts WHERE kind = 'coherence' AND run = $1"; }
is "$(verdict 1)" 'no data' 'texts of six tokens say nothing of coherence'
exits 0 'longer ones' load --request-rate 40 --requests 6 --tokens 100 --tokenizer "$m"
is "$(verdict 2)" fail 'do: random weights talk nonsense'
exits 0 'without a tokenizer' load --request-rate 100 --requests 4 --tokens 100
is "$(verdict 3)" 'no data' 'texts are not judged'
exits 0 'a plot' "$r" plot load --db "$tmp/db" -o "$tmp/plots"
has "$tmp/plots/load.gp" 'first token, p99' 'has the tail'
for rate in 40 80; do
	ok "and the rate $rate" awk -v r=$rate '$1 == r { n++ } END { exit n < 2 }' "$tmp/plots/load.gp"
done

# ---- what is asked ----
exits 0 'a chat' load --chat --prompt Hello --requests 2 --request-rate 50 --tokens 4
printf '%s\n' '{"timestamp": 0, "prompt": "one", "output_length": 3}' \
	'{"timestamp": 40.5, "input_length": 9, "output_length": 5}' >"$tmp/trace"
exits 0 'a trace' load --trace "$tmp/trace" --log "$tmp/rows" --samples 1
is "$(tail -n +2 "$tmp/rows" | cut -d , -f 3 | tr '\n' ' ')" '0.000000000 0.040500000 ' 'at its times'
ok 'and lengths' awk -F , 'NR > 1 && $7 > (NR == 2 ? 3 : 5) { exit 1 }' "$tmp/rows"
kill "$server"
wait "$server"

# ---- a signal, and a log that cannot be written ----
exits 2 'a log that is a folder' "$q" load -q --url http://127.0.0.1:1 \
	--model none --requests 99 --log "$tmp"
has "$tmp/err" 'Is a directory' 'is told before anything is sent'
"$q" load --url http://127.0.0.1:1 --model none --requests 2 --samples 1 \
	--request-rate 1000,0.001 --log "$tmp/kept" --csv --db "$tmp/kept.db" \
	>"$tmp/out" 2>"$tmp/err" &
pid=$!
until grep -q unreached "$tmp/err"; do kill -0 $pid || break; done
kill -TERM $pid
wait $pid
is $? 143 'SIGTERM between two rates'
is "$(tail -n +2 "$tmp/kept" | wc -l) $(tail -n +2 "$tmp/out" | wc -l)" '2 1' \
	'keeps the log and the row of the first'

# ---- the gate, with a model that has learnt an answer ----
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	cat <<'END'
{"messages":[{"role":"user","content":"What is the sea?"},{"role":"assistant","content":"The sea is salt water that covers most of the earth. Rivers run into it, winds raise its waves, and ships cross it from one land to another. Few people have seen its deepest places."}]}
END
done >"$tmp/talk.jsonl"
m=$tmp/talker
exits 0 'a model learns to answer' "$q" train -q --data "$tmp/talk.jsonl" --valid "$tmp/talk.jsonl" \
	--steps 120 --length 256 --rows 2 --hidden 64 --heads 2 --kv-heads 1 \
	--layers 2 --vocab 320 --optimizer muon --rate 0.01 --eval-every 60 "$m"
start
steady() {
	load --request-rate 300 --requests 8 --tokens 128 --chat --temperature 0 \
		--prompt 'What is the sea?' --tokenizer "$m" "$@"
}
exits 0 'a run to compare with' steady
run=$(sql 'SELECT max(run) FROM v_runs')
is "$(verdict "$run")" pass 'its texts are coherent'
"$r" baseline accept "$run" --reason 'no errors' --db "$tmp/db" >"$tmp/out" 2>&1
ok 'its errors are the baseline' grep -q 'errors_busy.*first' "$tmp/out"
kill "$server"
wait "$server"
start --queue 1 --sequences 1
steady >"$tmp/out" 2>"$tmp/err"
is "$?" 1 'a server that turns requests away'
ok 'is told from one that does not' grep -q 'busy' "$tmp/out"
exits 1 'and does not pass the gate' "$r" gate "$(sql 'SELECT max(run) FROM v_runs')" --db "$tmp/db"
has "$tmp/out" 'errors_busy' 'which says why'
echo secret >"$tmp/key"
kill "$server"
wait "$server"
start --api-key-file "$tmp/key"
exits 2 'a server with a key' load
has "$tmp/err" 'status 401' 'is said to want one'
exits 0 'and gets it' load --api-key-file "$tmp/key" --requests 1 --samples 1 --tokens 8
kill "$server"
wait "$server"
exits 2 'a server that is not there' load --requests 1
has "$tmp/err" 't0-qwen3 serve' 'is named'

# ---- mistakes ----
refuse() { text=$1; shift; exits 2 "refused: $*" load --model x "$@"; has "$tmp/err" "$text" "  $text"; }
refuse 'at "x"' --request-rate 1,x
refuse 'wanted rates' --request-rate 0
refuse 'wanted 1 to' --requests 0
refuse 'wanted http' --url nowhere
refuse 'above 0' --within-first 0
refuse 'wanted one' --prompt a --prompt-file b
refuse "$tmp/none" --trace "$tmp/none"
echo '{"timestamp": "x"}' >"$tmp/bad"
refuse "$tmp/bad:1: wanted {\"timestamp\"" --trace "$tmp/bad"
printf '%s\n' '{"timestamp": 5}' '{"timestamp": 4}' >"$tmp/bad"
refuse "$tmp/bad:2" --trace "$tmp/bad"
echo '{"timestamp": 1, "input_length": 0}' >"$tmp/bad"
refuse '"input_length": wanted' --trace "$tmp/bad"
printf '\377' >"$tmp/bad"
refuse 'no UTF-8' --prompt-file "$tmp/bad"
plan_done
