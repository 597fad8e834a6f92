#!/bin/sh
# OpenAI's own client library, as it comes from Python's package index, and
# t0-qwen3 serve.
. tests/clients/clients.sh

fetched openai
q=$T0_BUILD/t0-qwen3
echo secret >"$tmp/key"
exits 0 'a model' "$q" make -q --shape tiny -m "$tmp/model"
"$q" serve -m "$tmp/model" --port 0 --threads 1 --api-key-file "$tmp/key" >"$tmp/said" 2>&1 &
server=$!
for _ in $(seq 100); do
	url=$(grep -o 'http://[0-9.:]*' "$tmp/said") && break
	sleep 0.1
done
exits 0 'the client runs' timeout -k 5 120 "$part/bin/python" \
	tests/data/clients/openai-client.py "$url/v1" secret
lines "$tmp/out"
is "$(grep -c . "$tmp/out")" 21 'all of it'
kill "$server"
wait "$server"
plan_done
