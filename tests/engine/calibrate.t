#!/bin/sh
# t0-qwen3 quantize --calibrate: integers fitted to a text lose less of another
# than those that are rounded, in as many bytes.
. tests/tap.sh
. tests/engine/learnt.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3

learnt_model
n=$(wc -c <"$learnt_text")
head -c $((n * 9 / 10)) "$learnt_text" >"$tmp/seen"
tail -c $((n / 10)) "$learnt_text" >"$tmp/held"

# make NAME OPTION...: a copy, and $tmp/NAME.csv of it.
make_copy() {
	name=$1
	shift
	exits 0 "$name" "$q" quantize -q --threads 1 "$@" "$learnt" "$tmp/$name" \
		--prompt-file "$tmp/held" --csv
	cp "$tmp/out" "$tmp/$name.csv"
}
cell() { # of the second row: NAME COLUMN
	sed -n '3s/\r//p' "$tmp/$1.csv" | cut -d, -f "$2"
}
make_copy int4 --to int4
make_copy fit4 --to int4 --calibrate "$tmp/seen"
make_copy int8 --to int8
make_copy fit8 --to int8 --calibrate "$tmp/seen"
for bits in 4 8; do
	is "$(cell fit$bits 2),$(cell fit$bits 12)" \
		"$(cell int$bits 2),$(cell int$bits 12)" \
		"int$bits: as many bytes"
	ok "int$bits: what is lost lies in its interval" awk "BEGIN {
		kl = $(cell fit$bits 6)
		exit !($(cell fit$bits 13) < kl && kl < $(cell fit$bits 14)) }"
done
ok 'int4: at most four fifths are lost' awk "BEGIN {
	exit !($(cell fit4 6) < .8 * $(cell int4 6)) }"
ok 'int4: intervals are apart' awk "BEGIN {
	exit !($(cell fit4 14) < $(cell int4 13)) }"
ok 'int8: not more is lost' awk "BEGIN {
	exit !($(cell fit8 6) < 1.05 * $(cell int8 6)) }"
exits 0 'the same with other threads' "$q" quantize -q --to int4 --calibrate \
	"$tmp/seen" --threads 3 "$learnt" "$tmp/three" --ids 1,2,3
ok 'to the byte' cmp "$tmp/fit4/model.safetensors" \
	"$tmp/three/model.safetensors"

# ---- types of matrices for so many bits ----
weights=$((($(stat -c %s "$learnt/model.safetensors")) / 4))
all="4.5 ${T0_SLOW:+4.8} 5.5 ${T0_SLOW:+7}"
for bits in $all; do
	exits 0 "$bits bits" "$q" quantize -q --threads 1 --bits $bits --calibrate \
		"$tmp/seen" "$learnt" "$tmp/mix.gguf" --prompt-file "$tmp/held" \
		--csv
	cp "$tmp/out" "$tmp/mix$bits.csv"
	is "$(cell mix$bits 1)" "mix_$bits" "$bits bits: its name"
	ok "$bits bits: no more bytes than these, but for norms" awk "BEGIN {
		exit !($(cell mix$bits 12) <= $bits / 8 * $weights + 8192) }"
	ok "$bits bits: hardly fewer" awk "BEGIN {
		exit !($(cell mix$bits 12) > .95 * $bits / 8 * $weights) }"
done
is "$(cell mix4.5 6)" "$(cell fit4 6)" '4.5 bits: all of int4'
fewer=
for bits in $all; do
	[ -z "$fewer" ] || ok "$bits bits: less is lost than with $fewer" awk "BEGIN {
		exit !($(cell mix$bits 6) < $(cell mix$fewer 6)) }"
	fewer=$bits
done
exits 0 'what is written is read' "$q" eval -q --model "$tmp/mix.gguf" \
	--prompt-file "$tmp/held"

# ---- our own types ----
if [ -n "${T0_SLOW-}" ]; then
	make_copy int3 --to int3_32
	make_copy fit3 --to int3_32 --calibrate "$tmp/seen"
	ok 'int3_32: at most four fifths are lost' awk "BEGIN {
		exit !($(cell fit3 6) < .8 * $(cell int3 6)) }"
	make_copy folder --bits 4 --calibrate "$tmp/seen"
	is "$(cell folder 1)" mix_4 'a folder of our own types: its name'
	ok 'no more bytes than these, but for norms and the header' awk "BEGIN {
		exit !($(cell folder 12) <= 4 / 8 * $weights + 8192) }"
	ok 'less is lost than with 3.5 bits, more than with 4.5' awk "BEGIN {
		exit !($(cell fit4 6) < $(cell folder 6) &&
		       $(cell folder 6) < $(cell fit3 6)) }"
fi

# ---- divergence of windows, once more: each begins with the last token ----
ids=$("$q" tokenize -q --model "$learnt" "$tmp/held" | tr -s ' \n' '\n' |
	sed -n '/./p' | head -n 150)
list() { echo "$ids" | sed -n "$1p" | paste -sd,; }
exits 0 'a text of more than a window' "$q" quantize -q --threads 1 --to int4 "$learnt" \
	"$tmp/short" --ids "$(list 1,150)" --context 80 --csv
is "$(sed -n '3s/\r//p' "$tmp/out" | cut -d, -f 9)" 149 'all are predicted'
whole=$(sed -n '3s/\r//p' "$tmp/out" | cut -d, -f 6)
sum=0
for part in 1,80 80,150; do
	exits 0 "tokens $part" "$q" quantize -q --threads 1 --to int4 "$learnt" \
		"$tmp/short" --ids "$(list $part)" --csv
	sum=$(sed -n '3s/\r//p' "$tmp/out" |
		awk -F, -v sum="$sum" '{ print sum + $6 * $9 }')
done
ok 'its divergence is the mean' awk "BEGIN { d = $sum / 149 / $whole
	exit !(d > .9999 && d < 1.0001) }"

# ---- refused ----
head -c 100 "$tmp/seen" >"$tmp/little"
exits 2 'a text of few tokens' "$q" quantize -q --to int4 --calibrate \
	"$tmp/little" "$learnt" "$tmp/x"
has "$tmp/err" '128 at least' 'is told'
exits 2 'no such text' "$q" quantize -q --to int4 --calibrate "$tmp/none" \
	"$learnt" "$tmp/x"
has "$tmp/err" "$tmp/none" 'is named'
exits 2 'too few bits' "$q" quantize -q --threads 1 --bits 4.4 --calibrate "$tmp/seen" \
	"$learnt" "$tmp/x.gguf"
has "$tmp/err" '4.5 at least' 'is told'
exits 2 'bits without a text' "$q" quantize -q --threads 1 --bits 5 "$learnt" "$tmp/x.gguf"
has "$tmp/err" 'wanted a text' 'is told'
exits 2 'bits and a type' "$q" quantize -q --threads 1 --bits 5 --to int4 --calibrate \
	"$tmp/seen" "$learnt" "$tmp/x.gguf"
has "$tmp/err" 'of each matrix' 'is told'
"$q" make -q --model "$tmp/moe" --shape tiny-moe

# ---- a mixture: experts by what is sent to them ----
head -c 12000 "$tmp/seen" >"$tmp/some"
head -c 2000 "$tmp/held" >"$tmp/few"
for how in plain fit; do
	[ $how = fit ] && set -- --calibrate "$tmp/some" || set --
	exits 0 "a mixture, $how" "$q" quantize -q --threads 1 --to int4 "$@" \
		"$tmp/moe" "$tmp/moe-$how" --prompt-file "$tmp/few" --csv
	cp "$tmp/out" "$tmp/moe$how.csv"
done
is "$(cell moefit 2),$(cell moefit 12)" "$(cell moeplain 2),$(cell moeplain 12)" \
	'as many bytes'
ok 'at most four fifths are lost' awk "BEGIN {
	exit !($(cell moefit 6) < .8 * $(cell moeplain 6)) }"
ok 'intervals are apart' awk "BEGIN {
	exit !($(cell moefit 14) < $(cell moeplain 13)) }"
exits 0 'the same with other threads' "$q" quantize -q --to int4 --calibrate \
	"$tmp/some" --threads 3 "$tmp/moe" "$tmp/moe-three" --ids 1,2,3
ok 'to the byte' cmp "$tmp/moe-fit/model.safetensors" \
	"$tmp/moe-three/model.safetensors"

# ---- types by matrix: of the experts of a layer one for each of theirs ----
weights=$(($(stat -c %s "$tmp/moe/model.safetensors") / 2))
for into in mix ${T0_SLOW:+mix.gguf}; do
	fewer=
	for bits in 4.6 6 ${T0_SLOW:+8.5}; do
		exits 0 "a mixture, $into, $bits bits" "$q" quantize -q --threads 1 \
			--bits $bits --calibrate "$tmp/some" "$tmp/moe" \
			"$tmp/moe-$bits-$into" --prompt-file "$tmp/few" --csv
		cp "$tmp/out" "$tmp/moe$bits.csv"
		ok 'as many bytes as asked, routers and norms aside' awk "BEGIN {
			b = $(cell moe$bits 12); all = $bits / 8 * $weights
			exit !(.95 * all < b && b <= all + 8192) }"
		[ -z "$fewer" ] || ok "less is lost than with $fewer" awk "BEGIN {
			exit !($(cell moe$bits 6) < $(cell moe$fewer 6)) }"
		fewer=$bits
	done
	exits 0 'what is written is read' "$q" eval -q \
		--model "$tmp/moe-6-$into" --prompt-file "$tmp/few"
done
plan_done
