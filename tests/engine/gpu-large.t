#!/bin/sh
# A model of the shape of Qwen3-0.6B decodes on the gfx1100 in software, and its
# greedy tokens are those of the CPU backend.  1.2 GB on disk: a slow test.
. tests/tap.sh
unset T0_DB
export T0_DEVICE=soft
q=$T0_BUILD/t0-qwen3
m=$tmp/large

if [ -z "${T0_SLOW:-}" ]; then
	skip 'T0_SLOW=1 runs a model of 0.6 billion weights (1.2 GB in /tmp)'
	plan_done
fi
exits 0 'a model of the 0.6B shape is made' scripts/make-model "$m" \
	--shape 0.6b
ids=$(seq -s, 1 20)
for cache in f32 int8; do
	for backend in cpu gpu; do
		exits 0 "$backend, cache of $cache: a prompt of 20 and 4 tokens" \
			"$q" generate -q -m "$m" --ids "$ids" -n 4 -g \
			--context 64 --json --backend $backend \
			--cache $cache
		sed -n 's/.*"text": "\([^"]*\)".*/\1/p' "$tmp/out" \
			>"$tmp/$backend"
		diag "$backend: $(grep -o '"decode_tokens_per_s": [0-9.]*' \
			"$tmp/out")"
	done
	ok "$cache: four tokens" \
		sh -c 'test "$(tr , "\n" <"$1" | wc -l)" = 4' sh "$tmp/cpu"
	ok "$cache: the same from both" cmp "$tmp/cpu" "$tmp/gpu"
done
plan_done
