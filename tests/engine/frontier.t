#!/bin/sh
# t0-qwen3 quantize --frontier: every format of weights, in shards as in one;
# its divergence once more from the logits.
. tests/tap.sh
unset T0_DB T0_SHARD
q=$T0_BUILD/t0-qwen3

printf 'one two three, %s, and so on.\n' $(seq 300) >"$tmp/text"
head -c 400 "$tmp/text" >"$tmp/prompt"
exits 0 'a model whose rows are whole blocks' "$q" train -q --data "$tmp/text" \
	--length 512 --rows 1 --layers 1 --hidden 256 --heads 4 --kv-heads 4 \
	--head-dim 64 --ffn 512 --vocab 300 --steps 2 --threads 1 "$tmp/m"
mkdir "$tmp/scratch"
export TMPDIR="$tmp/scratch"
exits 0 'its frontier' "$q" quantize -q --frontier "$tmp/m" --threads 1 \
	--prompt-file "$tmp/prompt" --csv --db "$tmp/a.db"
cp "$tmp/out" "$tmp/table"
sed '1d; s/\r//' "$tmp/table" | sort -t, -k1,1 >"$tmp/rows"
is "$(cut -d, -f1 "$tmp/rows" | tr '\n' ' ')" \
	'bf16 f16 f32 int3_128 int3_256 int3_32 int3_64 int4 int6_128 int6_256 int6_32 int6_64 int8 iq4_nl iq4_xs mxfp4 q2_k q3_k q4_0 q4_1 q4_k q5_0 q5_1 q5_k q6_k q8_0 ' \
	'has all formats'
ok 'speeds lie in their intervals; those of too short a time are none' awk -F, '
	$7 != "" && ($7 < 1 || $8 > $7 || $9 < $7) { exit 1 }' "$tmp/rows"
ok 'those that a gfx1100 has kernels for are simulated' awk -F, '
	($10 > 1) != ($1 ~ /^(b?f16|f32|int[48]|int[36]_[0-9]+)$/) { exit 1 }' "$tmp/rows"
less() { # of which of two formats there is less of a column
	awk -F, -v a="$1" -v b="$2" -v k="$3" '$1 == a { x = $k } $1 == b {
		y = $k } END { exit !(x + 0 < y + 0) }' "$tmp/rows"
}
for pair in q2_k:q3_k q3_k:q4_k q4_k:q5_k q5_k:q6_k q6_k:q8_0 q4_0:q5_0 \
	q5_0:q8_0 q8_0:bf16 int4:int8 int8:bf16 bf16:f32 int3_64:int6_64 \
	int3_32:int4 int6_64:int8; do
	ok "$pair: fewer bytes" less "${pair%:*}" "${pair#*:}" 2
	case $pair in
	*bf16* | *f32*) ;;
	*) ok "$pair: and more is lost" less "${pair#*:}" "${pair%:*}" 4 ;;
	esac
done
# Ours are the numbers of these blocks, with the same search for their scales.
for pair in int4:q4_0 int8:q8_0; do
	is "$(grep "^${pair%:*}," "$tmp/rows" | cut -d, -f2,3,5)" \
		"$(grep "^${pair#*:}," "$tmp/rows" | cut -d, -f2,3,5)" \
		"$pair: the same is lost"
done
# A row's blocks of q4_k are 144 bytes for 256 values, of q8_0 34 for 32; norms
# and what is read of the embedding do not change.
ok 'bytes are those of the blocks' awk -F, '$1 == "q4_k" { a = $2 }
	$1 == "q8_0" { b = $2 } $1 == "f32" { c = $2 } END {
	n = (c - a) / (4 - 144 / 256); d = (c - b) / (4 - 34 / 32) - n
	exit !(d < 1 && d > -1) }' "$tmp/rows"

# ---- divergence, once more ----
exits 0 'a copy in q4_0' "$q" convert -q --type q4_0 "$tmp/m" "$tmp/m.gguf"
ids=$("$q" tokenize -q --model "$tmp/m" "$tmp/prompt" | tr ' ' ',' | tr -d '\n')
ids=${ids#,} ids=${ids%,}
for m in m m.gguf; do
	exits 0 "logits of $m" "$q" logits -q --model "$tmp/$m" --ids "$ids" \
		--all --out "$tmp/$m.f32"
	od -An -v -tf4 -w1200 "$tmp/$m.f32" >"$tmp/$m.txt"
done
paste "$tmp/m.txt" "$tmp/m.gguf.txt" | sed '$d' | awk '{
	n = NF / 2; a = b = -1e30
	for (i = 1; i <= n; i++) {
		if ($i > a) a = $i
		if ($(n + i) > b) b = $(n + i)
	}
	s = t = kl = 0
	for (i = 1; i <= n; i++) { s += exp($i - a); t += exp($(n + i) - b) }
	for (i = 1; i <= n; i++) {
		p = $i - a - log(s); kl += exp(p) * (p - ($(n + i) - b - log(t)))
	}
	sum += kl
} END { printf "%.6f\n", sum / NR }' >"$tmp/kl"
ok 'the divergence of q4_0' awk -F, -v kl="$(cat "$tmp/kl")" '$1 == "q4_0" {
	exit !($4 < kl * 1.02 + 1e-6 && $4 > kl * .98 - 1e-6) }' "$tmp/rows"

# ---- the frontier ----
ok 'none of it is beaten, all others are' awk -F, 'NR > 1 {
	b[NR] = $2 + 0; k[NR] = $4 + 0; best[NR] = $11 ~ /yes/ } END {
	for (i = 2; i <= NR; i++) {
		surely = maybe = 0 # digits are cut in the table
		for (j = 2; j <= NR; j++) if (j != i) {
			surely += b[j] <= b[i] && k[j] < k[i] * .999
			maybe += b[j] <= b[i] && k[j] <= k[i] * 1.001
		}
		if (best[i] ? surely : !maybe) exit 1
	} }' "$tmp/table"

# ---- fewer bits than q4_0 has, where rows are blocks of 256 ----
exits 0 '4 bits' "$q" quantize -q --threads 1 --bits 4 --calibrate "$tmp/text" \
	"$tmp/m" "$tmp/four.gguf" --prompt-file "$tmp/prompt" --csv
bytes() { sed -n "/^$1,/{s/\r//;p}" "$2" | cut -d, -f "$3"; }
ok 'no more bytes than these' awk "BEGIN {
	norms = 256 * 3 * 4 + 64 * 2 * 4; all = $(bytes f32 "$tmp/out" 12) - norms
	now = $(bytes mix_4 "$tmp/out" 12) - norms
	exit !(now <= all / 32 * 4 && now > all / 32 * 3.8) }"
ok 'less is lost than by q3_k' awk "BEGIN {
	exit !($(bytes mix_4 "$tmp/out" 6) < $(bytes q3_k "$tmp/table" 4)) }"
exits 2 'too few' "$q" quantize -q --threads 1 --bits 3.4 --calibrate \
	"$tmp/text" "$tmp/m" "$tmp/four.gguf"
has "$tmp/err" '3.44 at least' 'is told'

# ---- shards ----
rows() { # but for times
	"$T0_BUILD/t0-results" sql --db "$1" --csv "SELECT name, params, metric,
		value FROM v_results WHERE metric <> 'token_time' ORDER BY 1, 2, 3"
}
rows "$tmp/a.db" >"$tmp/whole"
is "$(wc -l <"$tmp/whole")" $((1 + 26 * 5 + 13)) 'rows of all formats'
[ -n "${T0_SLOW-}" ] && parts='3 7' || parts=3
for n in $parts; do
	for i in $(seq "$n" -1 1) ${T0_SLOW:+2}; do
		exits 0 "shard $i of $n" "$q" quantize -q --frontier "$tmp/m" --threads 1 \
			--prompt-file "$tmp/prompt" --shard "$i/$n" \
			--db "$tmp/$n.$i.db"
	done
	exits 0 "$n: merged, twice" "$T0_BUILD/t0-results" merge \
		--db "$tmp/m$n.db" "$tmp/$n".*.db "$tmp/$n".*.db
	rows "$tmp/m$n.db" >"$tmp/merged"
	ok "$n: the same rows" diff "$tmp/whole" "$tmp/merged"
done
mkdir "$tmp/killed" # which leaves what it has there
TMPDIR=$tmp/killed timeout -s KILL 1 "$q" quantize -q --frontier "$tmp/m" --threads 1 --prompt-file \
	"$tmp/prompt" --db "$tmp/k.db" >/dev/null 2>&1
ok 'one that was killed has left nothing' [ "$(rows "$tmp/k.db" 2>/dev/null |
	sed 1d | wc -l)" -eq 0 ]

# ---- refused ----
exits 2 'with a folder to write' "$q" quantize -q --frontier "$tmp/m" "$tmp/n"
has "$tmp/err" 'writes none' 'is told'
exits 2 'too few samples' "$q" quantize -q --frontier --samples 2 "$tmp/m"
has "$tmp/err" 'wanted 6 to' 'is told'
is "$(ls -A "$TMPDIR")" '' 'no file of a format is left'
plan_done
