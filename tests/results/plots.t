#!/bin/sh
# t0-results plot: every plot is drawn from an invented database, twice, and
# the same rows in another order give the same bytes.
. tests/tap.sh
unset T0_DB
r=$T0_BUILD/t0-results
command -v gnuplot >/dev/null || skip_all 'gnuplot is not installed'

awk -f tests/data/results/fixture.awk >"$tmp/fixture"
"$r" import --quiet --db "$tmp/a.db" "$tmp/fixture"
all='bandwidth dispatch gemm latency lds_conflicts memory_latency prediction
roofline tokens tuner'

exits 0 'plot' "$r" plot --db "$tmp/a.db" -o "$tmp/one"
is "$(cat "$tmp/err")" "t0-results: plots are in $tmp/one" \
	'no plot lacks data, and gnuplot has nothing to say'
# Ids and the order of rows differ, the runs do not.
{
	head -n 1 "$tmp/fixture"
	awk '/^{"run"/ { n++ } n >= 3' "$tmp/fixture"
	awk '/^{"run"/ { n++ } n == 1 || n == 2' "$tmp/fixture"
} >"$tmp/turned"
"$r" import --quiet --db "$tmp/b.db" "$tmp/turned"
exits 0 'plot, the rows in another order' "$r" plot --db "$tmp/b.db" \
	-o "$tmp/two"
for p in $all; do
	ok "$p: a picture as SVG" grep -q '^</svg>' "$tmp/one/$p.svg"
	is "$(od -An -c -N4 "$tmp/one/$p.png" | tr -d ' ')" '211PNG' \
		"$p: a picture as PNG"
	for kind in gp svg png; do
		ok "$p.$kind: the same bytes" \
			cmp "$tmp/one/$p.$kind" "$tmp/two/$p.$kind"
	done
	# The data that reached gnuplot, and title, units and footer.
	sed -n '/^set title/p;/^set [xy]label/p;/^set label/p
		/<< EOD/,/^EOD/p' "$tmp/one/$p.gp" >"$tmp/$p.data"
	ok "$p: the data recorded in tests/data/results/plots" \
		cmp "$tmp/$p.data" "tests/data/results/plots/$p.data"
	has "$tmp/one/$p.svg" 'Invented XTX (gfx1100, hardware), commit' \
		"$p: the footer names device and commit"
done
is "$(grep -c . tests/data/results/plots/tuner.data)" 18 \
	'the heat map has a cell for each of 12 tiles'

# Numbers in a picture are those of the database: by hand, in GB/s.
want=$("$r" sql --csv --db "$tmp/a.db" "SELECT printf('%.9g %.9g %.9g',
	value / 1e9, lo / 1e9, hi / 1e9) FROM v_results WHERE name = 'read'
	AND params = '{\"bytes\":1024}'" | tr -d '\r' | tail -n 1)
has "$tmp/bandwidth.data" "1024 $want" 'a point is median, low and high'

exits 0 'one plot on the terminal' "$r" plot --term tokens --db "$tmp/a.db"
has "$tmp/out" 'Tokens per second over commits' 'has the title'
has "$tmp/out" 'cccccccc' 'and the commits'
exits 2 'an unknown plot' "$r" plot nothing --db "$tmp/a.db" -o "$tmp/one"
has "$tmp/err" 'there are latency, memory_latency' 'names those there are'
sed -n '1,3p' "$tmp/fixture" | "$r" import --quiet --db "$tmp/few.db" -
exits 2 'a plot without data' "$r" plot gemm --db "$tmp/few.db" -o "$tmp/few"
has "$tmp/err" 'nothing measured in area "gemm"' 'is told'
exits 0 'all plots of little data' "$r" plot --db "$tmp/few.db" -o "$tmp/few"
ok 'published numbers alone are drawn' [ -s "$tmp/few/latency.svg" ]
exits 2 'a folder that cannot be made' "$r" plot --db "$tmp/a.db" \
	-o "$tmp/no/such"

# Names from the database cannot escape into gnuplot's language.
sed 's/v_exp_f32/a\\"`touch '"pwned"'`$(x)\\nset/' "$tmp/fixture" |
	"$r" import --quiet --db "$tmp/evil.db" -
exits 0 'hostile names are drawn' "$r" plot latency --db "$tmp/evil.db" \
	-o "$tmp/evil"
ok 'and not executed' [ ! -e "$tmp/evil/pwned" ]
has "$tmp/evil/latency.svg" 'touch pwned' 'but shown'
exits 2 'without gnuplot' env PATH=/nonexistent "$r" plot gemm --db "$tmp/a.db" \
	-o "$tmp/one"
plan_done
