#!/bin/sh
# t0-qwen3 embed and rerank on the command line.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/tiny

exits 0 'a tiny model is made' scripts/make-model "$m"
exits 0 'vectors' "$q" embed -q -m "$m" --query 'what is it' 'the program' \
	'this License' -w f32
cp "$tmp/out" "$tmp/vectors"
is "$(wc -l <"$tmp/vectors")" 3 'a line for each text'
ok 'of length 1, queries first' python3 - "$tmp/vectors" <<'EOF'
import json, sys
rows = [json.loads(s) for s in open(sys.argv[1])]
assert [r["query"] for r in rows] == [True, False, False]
assert [r["index"] for r in rows] == [0, 1, 2]
for r in rows:
    assert len(r["embedding"]) == 64
    assert abs(sum(x * x for x in r["embedding"]) - 1) < 1e-5
EOF
exits 0 'cosines' "$q" embed -q -m "$m" --query 'what is it' 'the program' \
	'this License' --cosine --csv -w f32
ok 'are those of the vectors' python3 - "$tmp/vectors" "$tmp/out" <<'EOF'
import csv, json, sys
v = [json.loads(s)["embedding"] for s in open(sys.argv[1])]
rows = list(csv.DictReader(open(sys.argv[2])))
assert [(r["a"], r["b"]) for r in rows] == [("0", "1"), ("0", "2")]
for r in rows:
    a, b = v[int(r["a"])], v[int(r["b"])]
    assert abs(sum(x * y for x, y in zip(a, b)) - float(r["cosine"])) < 1e-5
EOF
exits 0 'a gfx1100 in software' "$q" embed -q -m "$m" --query 'what is it' \
	'the program' 'this License' -w f32 --backend gpu --device soft
ok 'has the same vectors' python3 - "$tmp/vectors" "$tmp/out" <<'EOF'
import json, sys
a, b = ([json.loads(s)["embedding"] for s in open(f)] for f in sys.argv[1:3])
for x, y in zip(a, b):
    assert sum((p - q) ** 2 for p, q in zip(x, y)) < 1e-6
assert len(a) == len(b) == 3
EOF
exits 0 'two of them' "$q" embed -q -m "$m" --query 'what is it' \
	'the program' 'this License' -w f32 --backend gpu --device 'soft*2' \
	--devices 2
ok 'have them, too' python3 - "$tmp/vectors" "$tmp/out" <<'EOF'
import json, sys
a, b = ([json.loads(s)["embedding"] for s in open(f)] for f in sys.argv[1:3])
for x, y in zip(a, b):
    assert sum((p - q) ** 2 for p, q in zip(x, y)) < 1e-6
EOF
printf 'the program\nthis License' >"$tmp/texts"
exits 0 'texts of a file' "$q" embed -q -m "$m" --query 'what is it' \
	--texts "$tmp/texts" -w f32
ok 'are the same' cmp "$tmp/out" "$tmp/vectors"
exits 0 'pairs, of standard input' sh -c '"$1" embed -q -m "$2" --cosine \
	--csv <"$3"' sh "$q" "$m" "$tmp/texts"
is "$(wc -l <"$tmp/out")" 2 'are one of two'
exits 0 'the first values' "$q" embed -q -m "$m" a --dimensions 5
is "$(tr -cd , <"$tmp/out" | wc -c)" 7 'are so many'

# A model with both answers as tokens.
i=0
while [ $((i += 1)) -le 60 ]; do printf 'yes\nno\nmaybe not\n'; done >"$tmp/data"
exits 0 'a model that knows yes and no' "$q" train -q --data "$tmp/data" \
	--steps 1 --length 512 --rows 1 --layers 1 --hidden 32 --heads 1 \
	--kv-heads 1 --vocab 300 "$tmp/judge"
exits 0 'documents' "$q" rerank -q -m "$tmp/judge" 'is it so?' yes no \
	"$(printf 'maybe\nnot')" no --csv
ok 'the best come first, with what they are' python3 - "$tmp/out" <<'EOF'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
score = [float(r["score"]) for r in rows]
assert len(score) == 4 and score == sorted(score, reverse=True)
assert all(0 < s < 1 for s in score)
text = {r["document"]: r["text"] for r in rows}
assert text == {"0": "yes", "1": "no", "2": "maybe not", "3": "no"}
same = [i for i, r in enumerate(rows) if r["text"] == "no"]
assert same[1] == same[0] + 1 and rows[same[0]]["document"] == "1"
EOF
cp "$tmp/out" "$tmp/args"
exits 0 'another instruction' "$q" rerank -q -m "$tmp/judge" 'is it so?' yes \
	no --csv --instruct 'Find what is wrong'
ok 'gives other scores' sh -c '! grep -qF "$(sed -n 2p "$1")" "$2"' sh \
	"$tmp/out" "$tmp/args"

while IFS='|' read -r what said options; do
	eval "set -- $options"
	exits 2 "$what" "$q" "$@" </dev/null
	has "$tmp/err" "$said" "$what: says why"
done <<EOF
no text|there is no text|embed -q -m '$m'
no document|there is no text|rerank -q -m '$tmp/judge' a
no query|QUERY|rerank -q -m '$tmp/judge'
an instruction for nothing|only queries|embed -q -m '$m' --instruct x a
more values than there are|the model has 64|embed -q -m '$m' a --dimensions 65
vectors as CSV|lines of JSON|embed -q -m '$m' a --csv
a text that is too long|text 1 has|embed -q -m '$m' abcdefghijk --context 2
a model without the answers|is 2 tokens|rerank -q -m '$m' a b
EOF
plan_done
