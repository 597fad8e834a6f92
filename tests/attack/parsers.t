#!/bin/sh
# Every parser of foreign bytes: what once broke it, then inputs that are made up
# by what they reach, 20 seconds in all.  A slower machine makes fewer of the same
# ones, and a longer run is `make fuzz` or T0_FUZZ_SECONDS=600.
. tests/tap.sh
cd "$T0_SRC" || exit 2
fuzz=$T0_BUILD/../fuzz
seconds=${T0_FUZZ_SECONDS:-20}
left=$(printf '%s\n' tests/attack/*.c | wc -l)
begin=$(date +%s%N)
for source in tests/attack/*.c; do
	name=$(basename "$source" .c)
	share=$(awk -v all="$seconds" -v begin="$begin" \
		-v now="$(date +%s%N)" -v left="$left" 'BEGIN {
		s = (all - (now - begin) / 1e9) / left
		print (s > 0 ? s : 0) }')
	exits 0 "$name" "$fuzz/fuzz-$name" --seconds "$share" \
		"tests/corpus/$name"
	diag "$(tail -n 1 "$tmp/out")"
	ok "$name: all files were replayed" grep -q \
		"^$name: $(ls "tests/corpus/$name" | wc -l) files reach" \
		"$tmp/out"
	left=$((left - 1))
done

# The driver itself: from nothing to a defect behind a text and a number.
cp "$fuzz/fuzz-maze" "$tmp"
exits 1 'a planted defect is found' "$tmp/fuzz-maze" --inputs 1000000
has "$tmp/out" "maze: exited with " 'and its end is told'
has "$tmp/err" heap-buffer-overflow 'with the reason'
input=$(sed -n 's/.* on //p' "$tmp/out")
is "$(head -c 3 "$input")" maz 'the input is kept'
ok 'with both its words' grep -qa door "$input"
exits 1 'which does it again' "$tmp/fuzz-maze" "$input"
is "$(cat "$tmp/out")" "$(sed 's/ on .*//' "$tmp/out") on $input" 'by its name'
plan_done
