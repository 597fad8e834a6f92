#!/bin/sh
# t0-qwen3 serve: OpenAI's interface, many clients at once, bad ones too.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/model
exits 0 'a tiny model is made' scripts/make-model "$m"

start() {
	rm -f "$tmp/said" # of the one before
	"$q" serve -m "$m" --port 0 --threads 1 "$@" >"$tmp/said" 2>"$tmp/log" &
	server=$!
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		grep -qs listening "$tmp/said" && break
		sleep 0.5
	done
	url=$(sed 's/.* //' "$tmp/said")
}
get() { curl -s -m 60 "$@"; }
status() { get -o "$tmp/body" -w '%{http_code}' "$@"; }
complete() { get "$url/v1/completions" -d "$1"; }
text() { sed 's/.*"text":"\(.*\)"}],"usage.*/\1/'; }

start --max-body 20000
is "$(get "$url/health")" '{"status":"ok"}' 'it is well'
ok 'and names its model' sh -c 'echo "$1" | grep -q "\"id\":\"model\""' - "$(get "$url/v1/models")"

# ---- errors, in OpenAI's form ----
is "$(status "$url/v1/completions" -d '{"prompt":')" 400 'bad JSON is refused'
ok 'with a message' grep -q '^{"error":{"message":"the body is no JSON' "$tmp/body"
printf '{"prompt":"\377\376"}' >"$tmp/utf8"
is "$(status "$url/v1/completions" --data-binary @"$tmp/utf8")" 400 'and bad UTF-8'
is "$(status "$url/v1/completions" -d '{"prompt":"\é"}')" 400 'and half a character, which the message quotes'
has "$tmp/body" "$(printf '\357\277\275')" 'as U+FFFD'
is "$(status "$url/v1/completions" -d '{"prompt":"a","n":99}')" 400 'and too many texts'
ok 'which it names' grep -q '\\"n\\"' "$tmp/body"
is "$(status "$url/v1/completions" -d '{"prompt":"a","tools":[1]}')" 400 'and tools'
is "$(status "$url/v1/completions" -d '{"prompt":"a","temperature":-5}')" 400 \
	'and a sampling out of range'
ok 'with what was wanted' grep -q 'temperature is -5; wanted' "$tmp/body"
is "$(status "$url/v1/chat/completions" -d '{}')" 400 'and a chat without messages'
head -c 30000 /dev/zero | tr '\0' 'a' >"$tmp/large"
is "$(status "$url/v1/completions" -H Expect: --data-binary @"$tmp/large")" 413 'and a long body'
is "$(status "$url/v1/nothing")" 404 'and a path that is not there'
is "$(status "$url/v1/completions")" 405 'and GET where POST is wanted'
is "$(get "$url/v1/completions" -d "{\"prompt\":\"$(printf '%04095d' 0)\",\"temperature\":0}" |
	grep -c '"prompt_tokens":40')" 1 'a prompt that nearly fills the context is answered as far as it goes'

# ---- texts ----
printf '%s' 'The program' >"$tmp/prompt"
"$q" generate -q -m "$m" -f "$tmp/prompt" -n 20 --temperature 1 --seed 4 --threads 1 |
	LC_ALL=C sed 's/<|[a-z_]*|>//g' | LC_ALL=C tr -cd 'A-Za-z0-9' >"$tmp/want"
ask='{"prompt":"The program","max_tokens":20,"temperature":1,"seed":4}'
complete "$ask" >"$tmp/one"
is "$(text <"$tmp/one" | sed 's/\\u00..//g; s/\\[a-z]//g' | LC_ALL=C tr -cd 'A-Za-z0-9')" \
	"$(cat "$tmp/want")" 'a text is that of generate'
ok 'with its tokens counted' grep -q '"completion_tokens":20' "$tmp/one"
text <"$tmp/one" >"$tmp/alone"

# ---- many at once, some of which leave ----
set --
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	complete "$ask" >"$tmp/many.$i" &
	set -- "$@" $!
	curl -s -m 0.05 "$url/v1/completions" \
		-d '{"prompt":"a","max_tokens":128,"n":4,"stream":true}' >"$tmp/left.$i" &
	set -- "$@" $!
done
wait "$@"
same=0
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	text <"$tmp/many.$i" | cmp -s - "$tmp/alone" && same=$((same + 1))
done
is "$same" 16 '16 clients at once get what one alone gets'
is "$(get "$url/health")" '{"status":"ok"}' 'and it is well'

# ---- streams, stops ----
get "$url/v1/completions" -d '{"prompt":"The program","max_tokens":20,"temperature":1,"seed":4,"stream":true}' >"$tmp/stream"
is "$(tail -n 2 "$tmp/stream" | head -n 1)" 'data: [DONE]' 'a stream ends with [DONE]'
is "$(grep -c '"finish_reason":"length"' "$tmp/stream")" 1 'after one finish'
stop=$(cut -c 4 <"$tmp/want")
complete "{\"prompt\":\"The program\",\"max_tokens\":20,\"temperature\":1,\"seed\":4,\"stop\":\"$stop\"}" >"$tmp/stopped"
ok 'a stop string ends a text' grep -q '"finish_reason":"stop"' "$tmp/stopped"
is "$(text <"$tmp/stopped" | sed 's/\\u00..//g; s/\\[a-z]//g' | grep -c "$stop")" 0 'and is not in it'
get "$url/metrics" >"$tmp/metrics"
ok 'what was done is counted' grep -q '^t0_requests_total [1-9]' "$tmp/metrics"

kill -TERM "$server"
wait "$server"
is "$?" 143 'a signal ends it'
ok 'and it says what it dropped' grep -q ' 0 dropped at the end' "$tmp/log"

# ---- keys ----
echo secret >"$tmp/key"
start --api-key-file "$tmp/key"
is "$(status "$url/v1/models")" 401 'without the key nobody may'
is "$(status "$url/v1/models" -H 'Authorization: Bearer secreT')" 401 'nor with another'
is "$(status "$url/v1/models" -H 'Authorization: Bearer secret')" 200 'with it one may'
kill -INT "$server"
wait "$server"

# ---- proposals ----
exits 2 'a draft for many texts' "$q" serve -m "$m" --port 0 --speculate draft
has "$tmp/err" '--speculate draft without --draft DIR' 'has a name'
exits 2 'heads that are not there' "$q" serve -m "$m" --port 0 --heads /nowhere
has "$tmp/err" '/nowhere/config.json' 'are named'
again='{"prompt":"a b a b a b a b","max_tokens":60,"temperature":0}'
start
complete "$again" | text >"$tmp/plain"
kill -INT "$server"
wait "$server"
start --speculate lookup
set --
for i in 1 2 3 4; do
	complete "$ask" | text >"$tmp/guessed.$i" &
	set -- "$@" $!
	complete "$again" | text >"$tmp/again.$i" &
	set -- "$@" $!
done
wait "$@"
same=0
for i in 1 2 3 4; do
	cmp -s "$tmp/guessed.$i" "$tmp/alone" && same=$((same + 1))
	cmp -s "$tmp/again.$i" "$tmp/plain" && same=$((same + 1))
done
is "$same" 8 'texts with proposals are those without'
get "$url/metrics" >"$tmp/metrics"
ok 'some were made' grep -q '^t0_proposed_tokens_total [1-9]' "$tmp/metrics"
kill -INT "$server"
wait "$server"

# ---- the gfx1100 in software ----
start --backend gpu --device soft -w f32 --context 256 --sequences 2
for p in 'The program' 'It is'; do
	complete "{\"prompt\":\"$p\",\"max_tokens\":12,\"temperature\":0}" >"$tmp/card" &
	complete "{\"prompt\":\"$p of\",\"max_tokens\":9,\"temperature\":0}" >"$tmp/beside"
	wait $!
	"$q" generate -q -m "$m" -p "$p" -n 12 -g --backend gpu --device soft -w f32 \
		--json >"$tmp/want.json"
	is "$(sqlite3 :memory: "SELECT json_extract(readfile('$tmp/card'), '\$.choices[0].text')")" \
		"$(sqlite3 :memory: "SELECT json_extract(readfile('$tmp/want.json'), '\$[0].text')")" \
		"writes what generate does: $p"
done
kill -TERM "$server"
wait "$server"
is "$?" 143 'and ends'
exits 2 'a port that is none' "$q" serve -q -m "$m" --port 70000
has "$tmp/err" '--port 70000; wanted 0 to 65535' 'is named'
exits 2 'an address that is none' "$q" serve -q -m "$m" --bind nowhere
plan_done
