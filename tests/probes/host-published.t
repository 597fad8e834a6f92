#!/bin/sh
# probes/host/host_published.def: its form, its sources, and that the rows which
# name LLVM's scheduling models say what llvm-mca 19 says.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

src=${T0_SRC:-.}
def=$src/probes/host/host_published.def
rows=$tmp/rows

# "ARCH NAME LATENCY INTERVAL SOURCE" a line
sed -n 's/^PUBLISHED(\(.*\))$/\1/p' "$def" | tr -d , >"$rows"
for a in ZEN3 ZEN4 SKX ICX GLC; do
	n=$(grep -c "^$a " "$rows")
	ok "$a has at least 30 instructions: $n" test "$n" -ge 30
done
is "$(awk '$5 != "UOPS" && $5 != "LLVM" && $5 != "HOT23"' "$rows")" '' \
	'every row has one of the sources that the file explains'
is "$(awk '{ print $1, $2 }' "$rows" | sort | uniq -d)" '' \
	'no instruction stands twice for one processor'
awk '{ print $2 }' "$rows" | sort -u >"$tmp/named"
sed -n 's/^HOST2\{0,1\}(\([a-z0-9_]*\),.*/\1/p' "$src/probes/host/host.def" |
	sort -u >"$tmp/measured"
is "$(comm -23 "$tmp/named" "$tmp/measured")" '' \
	'every row is of an instruction that is measured'

mca=$(command -v llvm-mca-19)
if [ -z "$mca" ]; then
	skip 'llvm-mca-19 is not installed'
	plan_done
	exit
fi

# The texts of host.def with the first register: "NAME<tab>KIND<tab>TEXT".
awk '
	/^\/\*/ { comment = 1 }
	comment { if (/\*\//) comment = 0; next }
	/^HOST/ { row = "" }
	{ row = row $0 }
	/\)$/ && row ~ /^HOST2?\(/ {
		two = row ~ /^HOST2/
		name = row
		sub(/^HOST2?\(/, "", name)
		sub(/,.*/, "", name)
		split(row, field, /, */)
		reg = field[3] == "G64" ? 8 : 4
		n = split(row, part, "\"")
		text[1] = part[2]
		text[2] = two ? part[4] : part[2]
		for (k = 1; k <= 2; k++) {
			gsub(/\\\\x\\\\\(\)/, reg, text[k])
			gsub(/\\\\x/, reg, text[k])
			if (text[k] != "" && text[k] !~ /\\n/)
				print name "\t" k "\t" text[k]
		}
	}' "$src/probes/host/host.def" >"$tmp/texts"

# All instructions at once, in the order of texts.
cut -f3 "$tmp/texts" >"$tmp/asm"
for pair in ZEN3:znver3 ZEN4:znver4 SKX:skylake-avx512 ICX:icelake-server \
	GLC:sapphirerapids; do
	arch=${pair%%:*}
	# What the model cannot do is left out, line by line.
	: >"$tmp/got"
	grep "^$arch .* LLVM$" "$rows" | awk '{ print $2 }' | sort >"$tmp/want"
	awk -F'\t' 'NR == FNR { want[$1]; next } $1 in want' "$tmp/want" \
		"$tmp/texts" >"$tmp/sel"
	cut -f3 "$tmp/sel" | "$mca" -mtriple=x86_64-linux \
		-mcpu="${pair##*:}" -instruction-tables 2>/dev/null |
		awk '/^\[1\] +\[2\]/ { on = 1; next } on && NF == 0 { exit }
			on { print $2, $3 }' >"$tmp/got"
	is "$(wc -l <"$tmp/got")" "$(wc -l <"$tmp/sel")" \
		"$arch: llvm-mca knows all instructions that name it"
	# k=1 gives the latency, k=2 the interval.
	paste "$tmp/sel" "$tmp/got" | awk -F'\t' '
		{ split($4, v, " ")
		  if ($2 == 1) lat[$1] = v[1]
		  else rate[$1] = v[2] }
		END { for (n in rate) print n, n in lat ? lat[n] + 0 : "NO",
			rate[n] + 0 }' | sort >"$tmp/model"
	awk -v a="$arch" '$1 == a && $5 == "LLVM" { print $2, $3, $4 }' \
		"$rows" | sort >"$tmp/ours"
	is "$(comm -13 "$tmp/model" "$tmp/ours")" '' \
		"$arch: latency and interval are LLVM's"
done

plan_done
