#!/bin/sh
# Facts that others published about the card: tests/data/published/gfx1100.csv.
# Each has its source, conditions and how far it is to be believed; a source is
# for fitting or for judging, never for both, and about half of them judge.
. tests/tap.sh
f=tests/data/published/gfx1100.csv

rows() { sed 1d "$f"; }
is "$(awk -F, 'NF != 13 { print NR }' "$f")" '' 'every row has all columns'
is "$(rows | awk -F, '$2 !~ /^[HML]$/ || $3 == "" || $13 == "" || $11 <= 0')" '' \
	'with source, confidence, conditions and a value'
is "$(rows | cut -d, -f1 | sort -u | tr '\n' ' ')" 'fit judge ' 'it fits or judges'
is "$(rows | cut -d, -f1,3 | sort -u | cut -d, -f2 | uniq -d)" '' \
	'no source does both'
ok 'half of them judge' awk -F, '
	NR > 1 { n++; judge += $1 == "judge" }
	END { exit !(judge >= 0.4 * n && judge <= 0.6 * n) }' "$f"

# No figure is beyond what the card can: 96 compute units of 512 FLOP a cycle at
# 3.2 GHz in f16 (256 in f32), 960 GB/s; a token reads all weights once.
is "$(rows | awk -F, '
	$12 == "FLOP/s" && $11 > 96 * ($9 == "f32" ? 256 : 512) * 3.2e9 ||
	$12 == "B/s" && $11 > 960e9 {
		print $5, $11
	}
	$4 == "decode" && match($13, /[0-9.]+ GiB/) {
		gib = substr($13, RSTART, RLENGTH - 4)
		if ($11 * gib * 1073741824 > 960e9)
			print $5, $11
	}')" '' 'nothing is beyond the card'

# What the simulator says where it has the same figure by itself: L2 and what
# lies behind it for the Infinity Cache, the launch, and memory.
cost() {
	"$T0_BUILD/t0-sim" costs --costs default --csv -q |
		awk -F, -v n="$1" '$1 == n { print $2 }'
}
fact() { rows | awk -F, -v w="$1" -v u="$2" '$5 == w && $1 == u { print $11 }'; }
near() { # NAME GOT WANTED SHARE
	ok "$1: $2, published $3" awk "BEGIN {
		exit !($2 > $3 * (1 - $4) && $2 < $3 * (1 + $4)) }"
}
near 'Infinity Cache' "$(awk "BEGIN { print $(cost mem.l2) / 2.5 + $(cost mem.ic) }")" \
	"$(fact 'Infinity Cache by vector loads' fit)" 0.02
near 'a launch and its wait, by a judge' \
	"$(awk "BEGIN { print $(cost dispatch.sync) * 1e-6 }")" \
	"$(fact 'one packet and the wait' judge)" 0.05
near 'memory written, by a judge' \
	"$(awk "BEGIN { print $(cost mem.dram_rate) * $(cost mem.dram_write_share) }")" \
	"$(fact 'memory written' judge)" 0.05

# What `t0-qwen3 forecast` has beside its own figures is of this file.
sed -n 's/^PUBLISHED(\([A-Z]*\), *"\([^"]*\)".* \([0-9.]*\), *\(L[0-9]*\))/\1|\2|\3|\4/p' \
	engine/cmd/published.def | tr 'A-Z' 'a-z' | sort >"$tmp/ours"
rows | awk -F, '$4 == "decode" || $4 == "prefill" {
	n = split($3, source, "#")
	print $4 "|" $5 "|" $11 "|l" source[n]
}' | tr 'A-Z' 'a-z' | sort >"$tmp/theirs"
ok 'figures of engines stand here, too' diff "$tmp/theirs" "$tmp/ours"
plan_done
