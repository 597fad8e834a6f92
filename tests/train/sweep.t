#!/bin/sh
# t0-qwen3 train --sweep: its runs are those of train alone, in shards as in one,
# killed as undisturbed; and the best is the one that the rule says.
. tests/tap.sh
unset T0_DB T0_SHARD
q=$T0_BUILD/t0-qwen3

printf 'one two three, %s.\n' $(seq 400) >"$tmp/text"
small="--length 16 --rows 2 --layers 1 --hidden 16 --heads 2 --kv-heads 1
	--vocab 265 --steps 12 --eval-every 4 --threads 1"
cat >"$tmp/sweep" <<'SWEEP'
# how it learns
optimizer adamw sgd
rate 1e-3 8e-3 # the second is better
seed 1 2 3
SWEEP
# sweep STATUS WHAT INTO OPTION...
sweep() {
	status=$1 what=$2 into=$tmp/$3
	shift 3
	# shellcheck disable=SC2086 # words
	exits "$status" "$what" "$q" train -q --data "$tmp/text" $small \
		--sweep "$tmp/sweep" "$@" "$into"
}
sweep 0 'a sweep' whole --csv --db "$tmp/a.db"
cp "$tmp/out" "$tmp/table"
is "$(ls "$tmp/whole" | wc -l)" 13 'twelve runs, and the best'
# shellcheck disable=SC2086
exits 0 'one of them alone' "$q" train -q --data "$tmp/text" $small \
	--optimizer sgd --rate 8e-3 --seed 2 "$tmp/alone"
ok 'is the same' cmp -s "$tmp/alone/model.safetensors" \
	"$tmp/whole/optimizer=sgd,rate=8e-3,seed=2/model.safetensors"

# ---- the rule, once more from the logs ----
for o in adamw sgd; do
	for r in 1e-3 8e-3; do
		for s in 1 2 3; do
			awk -F, -v n="optimizer=$o,rate=$r" 'NR > 1 && (!m || $6 < m) {
				m = $6 } END { printf "%s %.9g\n", n, m }' \
				"$tmp/whole/optimizer=$o,rate=$r,seed=$s/log.csv"
		done
	done
done | awk '{
	if (!($1 in n)) order[++k] = $1
	n[$1]++; sum[$1] += $2; sq[$1] += $2 * $2
} END {
	for (i = 1; i <= k; i++) {
		g = order[i]; mean[g] = sum[g] / n[g]
		v = sq[g] / n[g] - mean[g] ^ 2; v = v < 0 ? 0 : v
		err[g] = sqrt(v * n[g] / (n[g] - 1) / n[g])
		if (!least || mean[g] < mean[least]) least = g
	}
	for (i = 1; i <= k; i++)
		if (mean[order[i]] <= mean[least] + err[least]) break
	printf "%s\n", order[i]
	for (i = 1; i <= k; i++)
		printf "%s %.4f %.3f\n", order[i], mean[order[i]], err[order[i]]
}' >"$tmp/rule"
best=$(sed -n 1p "$tmp/rule")
is "$(readlink "$tmp/whole/best" | sed 's/,seed=.*//')" "$best" 'the best'
is "$(grep ',best' "$tmp/table" | sed 's/^"//; s/".*//')" "$best" 'is named so'
sed '1d; s/^"\([^"]*\)",/\1 /; s/,/ /g' "$tmp/table" | tr -d '\r' |
	sed 's/optimizer=\([a-z]*\) rate/optimizer=\1,rate/' |
	awk '{ sub(/^optimizer=[a-z]*/, "&"); printf "%s %.4f %.3f\n", $1, $3, $4 }' |
	sort >"$tmp/got"
sed 1d "$tmp/rule" | sort >"$tmp/wanted"
is "$(cat "$tmp/got")" "$(cat "$tmp/wanted")" 'means and their errors'
exits 0 'the engine runs it' "$q" eval --model "$tmp/whole/best" \
	--prompt-file "$tmp/text" -q
# Of equals the first of the file.
printf 'average 0 1e-300\n' >"$tmp/equal"
# shellcheck disable=SC2086
exits 0 'two that are equal' "$q" train -q --data "$tmp/text" $small \
	--sweep "$tmp/equal" "$tmp/equals"
is "$(readlink "$tmp/equals/best")" 'average=0' 'the first is taken'

# ---- shards ----
rows() {
	"$T0_BUILD/t0-results" sql --db "$1" --csv "SELECT name, params, metric,
		value FROM v_results ORDER BY 1, 2, 3"
}
rows "$tmp/a.db" >"$tmp/rows"
is "$(wc -l <"$tmp/rows")" $((1 + 12 * 3 * 4)) 'rows of all runs'
for n in 3 7; do
	for i in $(seq "$n" -1 1) 2; do
		sweep 0 "shard $i of $n" "parts$n" --shard "$i/$n" --db "$tmp/$n.$i.db"
	done
	same=0
	for d in "$tmp/whole"/*=*; do
		cmp -s "$d/model.safetensors" \
			"$tmp/parts$n/${d##*/}/model.safetensors" || same=1
	done
	is $same 0 "$n: the same models"
	is "$(readlink "$tmp/parts$n/best")" "$(readlink "$tmp/whole/best")" \
		"$n: and the same best"
	exits 0 "$n: merged, twice" "$T0_BUILD/t0-results" merge \
		--db "$tmp/m$n.db" "$tmp/$n".*.db "$tmp/$n".*.db
	is "$(rows "$tmp/m$n.db" | cksum)" "$(cksum <"$tmp/rows")" "$n: the same rows"
done
sweep 0 'a shard alone' part --shard 1/2 --csv
is "$(grep -c ',best' "$tmp/out")" 0 'knows no best'
has "$tmp/out" unfinished 'but what is missing'
ok 'and leads to none' [ ! -e "$tmp/part/best" ]

# ---- killed, and gone on with ----
delay=.05
while :; do
	# shellcheck disable=SC2086
	timeout -s KILL $delay "$q" train -q --data "$tmp/text" $small \
		--sweep "$tmp/sweep" --db "$tmp/k.db" "$tmp/killed" >/dev/null 2>&1
	[ $? -ne 0 ] || break
	delay=$(awk "BEGIN { print $delay * 1.5 }")
	kills=$((${kills-0} + 1))
done
ok "killed ${kills-0} times" [ "${kills-0}" -gt 1 ]
rows "$tmp/k.db" >"$tmp/k.rows"
ok 'the same rows' diff "$tmp/rows" "$tmp/k.rows"
ok 'the same best model' cmp -s "$tmp/killed/best/model.safetensors" \
	"$tmp/whole/best/model.safetensors"

# ---- refused ----
bad() { # TEXT SAYS
	printf '%b' "$1" >"$tmp/bad"
	exits 2 "refused: $1" "$q" train -q --data "$tmp/text" \
		--sweep "$tmp/bad" "$tmp/none"
	has "$tmp/err" "$2" 'in words'
}
bad '' 'no line such as'
bad 'rats 1\n' 'bad:1: rats: wanted rate'
bad 'rate 1e-3\ndata a\n' 'bad:2: data: wanted'
bad 'rate\n' 'bad:1: rate: wanted its values'
bad 'rate 1\nrate 2\n' 'bad:2: rate: there is a line of it already'
bad 'precision ../f32\n' "without '/' and '='"
bad 'rate -1\n' "without '/' and '='"
bad 'rate 1e-3 fast\n' '"fast" is not a number'
bad "$(printf 'rate'; printf ' 1%.0s' $(seq 400); printf '\\nseed'
	printf ' 1%.0s' $(seq 400))\\n" 'at most 100000 runs'
ok 'before a run has begun' [ ! -e "$tmp/none" ]
exits 2 'nothing held out' "$q" train -q --data "$tmp/text" --valid-share 0 \
	--sweep "$tmp/sweep" "$tmp/none"
has "$tmp/err" 'wanted --valid' 'is told'
exits 2 'a shard of one run' "$q" train -q --data "$tmp/text" --shard 1/2 \
	"$tmp/none"
has "$tmp/err" 'one run has no parts' 'is told'
plan_done
