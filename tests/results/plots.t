#!/bin/sh
# t0-results plot: every plot is drawn from an invented database, twice, and
# the same rows in another order give the same bytes.
. tests/tap.sh
unset T0_DB
r=$T0_BUILD/t0-results
command -v gnuplot >/dev/null || skip_all 'gnuplot is not installed'

awk -f tests/data/results/fixture.awk -f tests/data/results/plots.awk \
	>"$tmp/fixture"
"$r" import --quiet --db "$tmp/a.db" "$tmp/fixture"
exits 0 'the list of plots' "$r" plot --list --csv
all=$(sed '1d;s/,.*//' "$tmp/out")

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
	is "$(od -An -c -N5 "$tmp/one/$p.pdf" | tr -d ' ')" '%PDF-' \
		"$p: a picture as PDF"
	for kind in gp svg png pdf; do
		ok "$p.$kind: the same bytes" \
			cmp "$tmp/one/$p.$kind" "$tmp/two/$p.$kind"
	done
	# The data that reached gnuplot, and title, units and footer.
	sed -n '/^set title/p;/^set [xy]label/p;/^set label/p
		/<< EOD/,/^EOD/p' "$tmp/one/$p.gp" >"$tmp/$p.data"
	ok "$p: the data recorded in tests/data/results/plots" \
		cmp "$tmp/$p.data" "tests/data/results/plots/$p.data"
	case $p in
	discovery | verdicts | chips | chips_products)
		has "$tmp/one/$p.svg" 'all devices of this database' \
			"$p: the footer says what is drawn" ;;
	*)
		has "$tmp/one/$p.svg" 'Invented XTX (gfx1100, ' \
			"$p: the footer names the device"
		has "$tmp/one/$p.svg" 'commit ' "$p: and the commit" ;;
	esac
done
# The rows of one plot that gnuplot got.
rows() { # PLOT
	awk '/^EOD/ { data = 0 } data; /<< EOD/ { data = 1 }' "$tmp/$1.data"
}
is "$(rows tuner | wc -l | tr -d ' ')" 12 \
	'the heat map has a cell for each of 12 tiles'
has "$tmp/tuner.data" '"Tuner: best TFLOP/s by tile, 4096 × 4096 × 4096"' \
	'and its title names the size'

# Numbers in a picture are those of the database: by hand, in GB/s.
want=$("$r" sql --csv --db "$tmp/a.db" "SELECT printf('%.9g %.9g %.9g',
	value / 1e9, lo / 1e9, hi / 1e9) FROM v_results WHERE name = 'read'
	AND params = '{\"bytes\":1024}'" | tr -d '\r' | tail -n 1)
has "$tmp/bandwidth.data" "1024 $want" 'a point is median, low and high'

# One kernel of two became 1.21 times slower: 1.1 times in the mean.
is "$(rows simulation | cut -d ' ' -f 2 | tr '\n' ' ')" '1 1.1 1 1.21 ' \
	'simulated cycles: the mean, and the kernel that moved'
is "$(rows compilation | cut -d ' ' -f 2 | tr '\n' ' ')" '1 1.1 1 1 ' \
	'compilations: instructions grew, registers did not'
is "$(rows verifier | cut -d ' ' -f 2 | tr '\n' ' ')" '2 2 0 2 2 ' \
	'verifier: two kernels, two findings that are new, and their rule'
is "$(rows bench | awk '{ printf "%.4f ", $2 }')" '1.0000 0.8264 1.0000 0.9091 ' \
	'benchmarks: a shorter time and a higher rate are both more'
is "$(rows bench_ratios | awk '{ printf "%.2f %.2f %.2f,", $2, $3, $4 }')" \
	'14.88 14.88 14.88,8.00 4.00 16.00,' \
	'and ratios: 18 / 1.21 times another, 4 and 16 times within budgets'
is "$(rows discovery | cut -d ' ' -f 3,4 | tr '\n' ',')" '0 5,0 4,5 8,4 5,' \
	'slots: verdicts stand on each other'
is "$(rows quantisation | cut -d ' ' -f 1,2,5 | tr '\n' ',')" \
	'340 0.05 "int4",640 0.0002 "int8",' \
	'quantisation: MB of a token, and what they lose'
is "$(rows load | cut -d ' ' -f 1,2 | tail -n 10 | tr '\n' ',')" \
	'1 150,2 250,4 450,8 850,16 1650,1 10,2 10,4 10,8 10,16 10,' \
	'load: milliseconds in the order of rates'
is "$(grep -c '^set label "' "$tmp/one/roofline.gp")" 4 \
	'roofline: every kernel has its name beside it'
is "$(rows overlap | awk '{ print int($2 + 0.5) }' | tr '\n' ' ')" '2 1 2 ' \
	'pairs: each alone, and together'
is "$(grep -c '<< EOD' "$tmp/dispatch.data")" \
	"$("$r" sql --csv --db "$tmp/a.db" "SELECT count(DISTINCT case_id) FROM
	v_results WHERE area = 'dispatch'" | tr -d '\r' | tail -n 1)" \
	'dispatch: a curve for each case'
has "$tmp/one/fetch.gp" 'set xtics ("4 KiB" 4096, "8 KiB" 8192' \
	'bytes are KiB'

# A tile that nobody timed is an empty cell, and tiles are in their order.
grep -v '\\"tile_m\\":32,\\"tile_n\\":32}' "$tmp/fixture" |
	"$r" import --quiet --db "$tmp/gap.db" -
exits 0 'a heat map that lacks a tile' "$r" plot tuner --db "$tmp/gap.db" \
	-o "$tmp/gap"
is "$(grep -c NaN "$tmp/gap/tuner.gp")" 0 'no cell says NaN'
has "$tmp/gap/tuner.gp" 'set xtics ("32" 0, "64" 1, "128" 2)' \
	'the tile comes first that the first row lacks'

# Phases and sizes of one model are series of their own.
printf '%s\n' '{"t0":{"export":1,"schema":1}}' >"$tmp/sizes"
awk '/"run":"?/ && /run-tok1"/ { keep = 1; print; next } /^{"run"/ { keep = 0 }
	keep && /prefill_rate/ { print; n = split("16 64", t, " ")
		for (i = 1; i <= n; i++) {
			x = $0
			sub(/\\"phase\\":\\"prefill\\"/, "&,\\\"tokens\\\":" t[i], x)
			print x
		} }' "$tmp/fixture" >>"$tmp/sizes"
"$r" import --quiet --db "$tmp/sizes.db" "$tmp/sizes"
exits 0 'tokens of several sizes' "$r" plot tokens --db "$tmp/sizes.db" \
	-o "$tmp/sizes.d"
has "$tmp/sizes.d/tokens.gp" 'title "qwen3-0.6b prefill, 16 tokens"' \
	'a size is a series'
has "$tmp/sizes.d/tokens.gp" 'title "qwen3-0.6b prefill, 64 tokens"' \
	'and so is another'
sed '/"origin":"hardware"/s//"origin":"simulated"/' "$tmp/sizes" |
	"$r" import --quiet --db "$tmp/forecast.db" -
exits 0 'tokens that were simulated' "$r" plot tokens --db "$tmp/forecast.db" \
	-o "$tmp/forecast.d"
has "$tmp/forecast.d/tokens.gp" 'title "qwen3-0.6b prefill, 64 tokens, simulated"' \
	'say so in the legend'

# What was measured elsewhere can be drawn, too.
exits 0 'published numbers' "$r" plot latency --origin published \
	--db "$tmp/a.db" -o "$tmp/published"
is "$(awk '/<< EOD/ { n++ } END { print n }' "$tmp/published/latency.gp")" 1 \
	'only they are drawn'
# Figures of a paper: a column of 85 mm is 240.75 points.
exits 0 'a figure for a column' "$r" plot latency --paper column \
	--db "$tmp/a.db" -o "$tmp/paper"
is "$(tr -d '\000' <"$tmp/paper/latency.pdf" | grep -a -o \
	'MediaBox \[ 0 0 [0-9]*' | head -n 1)" 'MediaBox [ 0 0 240' \
	'is 85 mm wide'
is "$(od -An -t u1 -j 16 -N 4 "$tmp/paper/latency.png" |
	awk '{ print 256 * $3 + $4 }')" 668 'and 668 dots of 200 dpi'
exits 2 'another paper' "$r" plot latency --paper a4 --db "$tmp/a.db"
exits 0 'what one run measured' "$r" plot dispatch --run "$("$r" sql --csv \
	--db "$tmp/a.db" "SELECT max(run) FROM v_results WHERE area = 'dispatch'" |
	tr -d '\r' | tail -n 1)" --db "$tmp/a.db" -o "$tmp/run"
exits 2 'and what another did not' "$r" plot dispatch --run 999999 \
	--db "$tmp/a.db" -o "$tmp/run"
exits 2 'a device that there is not' "$r" plot latency --device nobody \
	--db "$tmp/a.db" -o "$tmp/published"

COLUMNS=80 exits 0 'one plot on the terminal' "$r" plot --term tokens --db "$tmp/a.db"
has "$tmp/out" 'Tokens per second over commits' 'has the title'
has "$tmp/out" 'cccccccc' 'and the commits'
exits 2 'an unknown plot' "$r" plot nothing --db "$tmp/a.db" -o "$tmp/one"
has "$tmp/err" 'there are latency, overlap, waves' 'names those there are'
sed -n '1,3p' "$tmp/fixture" | "$r" import --quiet --db "$tmp/few.db" -
exits 2 'a plot without data' "$r" plot gemm --db "$tmp/few.db" -o "$tmp/few"
has "$tmp/err" 'plot gemm: no data; `make tune` brings some' \
	'and told what brings some'
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
