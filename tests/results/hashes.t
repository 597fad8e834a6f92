#!/bin/sh
# Hashes by different algorithms: exported and imported with their names, and
# never compared as if they were of one.
. tests/tap.sh
unset T0_DB
export T0_DB="$tmp/t0.db"
r=$T0_BUILD/t0-results
old=0123456789abcdef
sql() {
	sqlite3 "$1" "$2"
}

# As version 5 exported it: the algorithm is not named.
awk -f tests/data/results/fixture.awk |
	sed "s/\"schema\":[0-9]*/\"schema\":5/; s/host-one/$old/" >"$tmp/v5"
exits 0 'import: an export of version 5' "$r" import --quiet "$tmp/v5"
is "$(sql "$T0_DB" 'SELECT count(*) FROM hosts WHERE machine =
	"fnv1a-64:0123456789abcdef"')" 1 'import: names its algorithm'
exits 0 'export' "$r" export -o "$tmp/v6"
has "$tmp/v6" '"machine":"fnv1a-64:0123456789abcdef"' 'export: carries the name'
exits 0 'import it again' "$r" import --quiet --db "$tmp/two.db" "$tmp/v6"
is "$(sql "$tmp/two.db" 'SELECT group_concat(machine) FROM hosts ORDER BY 1')" \
	"$(sql "$T0_DB" 'SELECT group_concat(machine) FROM hosts ORDER BY 1')" \
	'import: the name is not given twice'

exits 0 'compare: one algorithm' "$r" compare 3 4
sql "$T0_DB" "INSERT INTO hosts SELECT 99, 'xxh3-128:0', cpu, kernel, cores,
	mem_bytes FROM hosts WHERE id = 1;
	UPDATE runs SET host = 99 WHERE series = 'run-tok2'"
exits 2 'compare: two algorithms are refused' "$r" compare 3 4
has "$tmp/err" 'host is fnv1a-64:0123456789abcdef on one and xxh3-128:0' \
	'compare: both are named'
has "$tmp/err" 'hashed by different algorithms' 'compare: the reason is told'
has "$tmp/err" 'measure again' 'compare: and the remedy'
exits 0 'compare: unless it is allowed' "$r" compare --allow host 3 4

exits 0 'baseline: of the old machine' "$r" baseline accept 3
exits 1 'gate: it is not taken for this machine' "$r" gate
has "$tmp/err" 'by a hash of another algorithm' 'gate: the reason is told'
has "$tmp/err" 'measure and accept again' 'gate: and the remedy'
exits 1 'gate: of any host, it cannot be compared' "$r" gate --any-host 4
has "$tmp/out" 'hashed by different algorithms' 'gate: which is told'

plan_done
