#!/bin/sh
# The tokenizers package, as it comes from Python's package index, and t0-qwen3
# tokenize: the same ids and offsets, and which is faster.
. tests/clients/clients.sh

fetched tokenizers
{
	cat README.md engine/text/*.c
	printf "naïve 中文 😀\tend <|im_start|>user\n don't  \r\n\n"
} >"$tmp/text"
exits 0 'the package runs' timeout -k 5 200 "$part/bin/python" \
	tests/data/clients/tokenizers-peer.py "$T0_BUILD/t0-qwen3" "$tmp/model" "$tmp/text"
lines "$tmp/out"
is "$(grep -c . "$tmp/out")" 5 'all of it'
diag "$(cat "$tmp/err")"
plan_done
