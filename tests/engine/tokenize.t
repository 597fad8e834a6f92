#!/bin/sh
# t0-qwen3 tokenize: ids, offsets and the way back.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/model

exits 0 'a tiny model is made' scripts/make-model "$m"
token() { "$q" tokenize -q -m "$m" "$@"; }

# ---- there and back ----
{
	cat README.md engine/text/chat.c
	printf 'naïve 中文 😀\tend <|im_start|>user\n'
} >"$tmp/text"
exits 0 'a file' token "$tmp/text"
cp "$tmp/out" "$tmp/ids"
is "$(wc -l <"$tmp/ids")" 1 'becomes a line'
ok 'of numbers' grep -Eqx '[0-9]+( [0-9]+)*' "$tmp/ids"
exits 0 'ids' token --detokenize "$tmp/ids"
ok 'become the text again' cmp -s "$tmp/out" "$tmp/text"
exits 0 'standard input' sh -c '"$1" tokenize -q -m "$2" <"$3"' - "$q" "$m" "$tmp/text"
ok 'gives the same' cmp -s "$tmp/out" "$tmp/ids"
exits 0 'two files' token "$tmp/text" "$tmp/text"
is "$(wc -l <"$tmp/out")" 2 'are two lines'
exits 0 'ids as a list' token --detokenize -p "[$(tr ' ' ',' <"$tmp/ids")]"
ok 'are read, too' cmp -s "$tmp/out" "$tmp/text"

printf 'a\nb' >"$tmp/three"
exits 0 'a mark of a conversation' token -p 'a<|im_end|>'
is "$(wc -w <"$tmp/out")" 2 'is one token'
exits 0 'as text' token --plain -p 'a<|im_end|>'
ok 'it is many' [ "$(wc -w <"$tmp/out")" -gt 2 ]

# ---- offsets ----
exits 0 'offsets' token --offsets "$tmp/text" --csv
awk -F, 'NR > 1 { print $2 - $1, $3 }' "$tmp/out" >"$tmp/lengths"
is "$(awk '{ n += $1 } END { print n }' "$tmp/lengths")" \
	"$(wc -c <"$tmp/text")" 'cover the text'
is "$(awk '{ print $2 }' "$tmp/lengths" | tr '\n' ' ')" "$(cat "$tmp/ids") " \
	'of the same ids'
# cut by them, each piece is what its id means alone
tail -n 3 "$tmp/out" | tr -d '\r' >"$tmp/last"
while IFS=, read -r from to id token; do
	dd if="$tmp/text" bs=1 skip="$from" count=$((to - from)) \
		2>"$tmp/dd" >"$tmp/piece"
	token --detokenize -p "$id" >"$tmp/again"
	ok "$token stands there" cmp -s "$tmp/piece" "$tmp/again"
done <"$tmp/last"
exits 0 'a table' token --offsets -p 'x
y'
has "$tmp/out" '\n' 'has no line breaks of the text'
exits 0 'text that is not NFC' "$q" tokenize -m "$m" --offsets \
	-p "$(printf 'e\314\201')"
has "$tmp/err" 'its 2 bytes' 'is told: offsets are of its NFC form'

# ---- refused ----
while IFS='|' read -r what said options; do
	eval "exits 2 \"\$what\" token $options"
	has "$tmp/err" "$said" "$what: says why"
done <<EOF
an id that is none|at byte 2: no token|--detokenize -p 1,99999999
an id beyond all numbers|no token|--detokenize -p 99999999999999999999
a word for an id|at byte 0|--detokenize -p a
offsets of ids|no columns|--detokenize --offsets -p 1
a text and a file|one or the other|-p a "\$tmp/three"
offsets in two files|wanted one|--offsets "\$tmp/three" "\$tmp/three"
no such file|none|"\$tmp/none"
EOF
exits 2 'no model' "$q" tokenize -p a
has "$tmp/err" 'wanted --model' 'asks for one'

# ---- the published tokenizer ----
vectors=../shared/vectors/qwen
if [ ! -e $vectors/vectors.tsv ]; then
	diag 'SKIPPED: the published vectors of ../shared are not there'
	skip 'no published vectors'
	plan_done
	exit
fi
awk -F '\t' '!/^#/ && $1 == "plain" && $3 ~ /^"[ -!#-\[\]-~]*"$/ {
	print substr($3, 2, length($3) - 2) "\t" $4 }' $vectors/vectors.tsv >"$tmp/plain"
same=0 all=0
while IFS='	' read -r text ids; do
	all=$((all + 1))
	got=$(printf %s "$text" | "$q" tokenize -q --plain -m $vectors)
	[ "$got" = "$ids" ] && same=$((same + 1))
done <"$tmp/plain"
ok 'there are published ones' [ $all -gt 5 ]
is $same $all 'all are equal'
# ---- tables of a long file are kept in the cache ----
cp -r "$m" "$tmp/long"
head -c 20000 /dev/zero | tr '\0' ' ' >>"$tmp/long/tokenizer.json"
T0_CACHE=$tmp/tables
export T0_CACHE
long() { "$q" tokenize -q -m "$tmp/long" "$tmp/text"; }
exits 0 'a long file' long
ok 'gives the same ids' cmp -s "$tmp/out" "$tmp/ids"
set -- "$tmp/tables"/tokenizer-*
is "$#" 1 'and leaves its tables'
cp "$1" "$tmp/good"
exits 0 'which are read' long
ok 'as they were' cmp -s "$tmp/out" "$tmp/ids"
size=$(wc -c <"$1")
for at in 0 8 40 60 1500 $((size / 2)) $((size - 1)); do
	perl -e 'open(F, "+<", $ARGV[0]); seek(F, $ARGV[1], 0); read(F, $c, 1);
		seek(F, $ARGV[1], 0); print F chr(ord($c) ^ 64)' "$1" "$at"
	exits 0 "tables with another byte at $at of $size" long
	ok "are not taken: $at" cmp -s "$tmp/out" "$tmp/ids"
	ok "and made anew: $at" cmp -s "$1" "$tmp/good"
done
head -c 1000 "$tmp/good" >"$1"
exits 0 'tables that were cut' long
ok 'are none' cmp -s "$tmp/out" "$tmp/ids"
T0_CACHE=/dev/null/none
exits 0 'a cache that cannot be' long
ok 'is none' cmp -s "$tmp/out" "$tmp/ids"
unset T0_CACHE

plan_done
