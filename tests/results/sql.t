#!/bin/sh
# t0-results sql reads and does nothing else; what never ends can be ended.
. tests/tap.sh
unset T0_DEVICE
export T0_DB="$tmp/t0.db"
r=$T0_BUILD/t0-results
exits 0 'a database' "$r" note add -q --status keep \
	--hypothesis 'a note'

exits 0 'a SELECT' "$r" sql 'SELECT 6 * 7 AS n' --csv
is "$(tr -d '\r' <"$tmp/out" | tr '\n' ' ')" 'n 42 ' 'is answered'
exits 0 'its plan' "$r" sql 'EXPLAIN QUERY PLAN SELECT * FROM runs'
exits 0 'values' "$r" sql 'VALUES (1), (2)'
before=$(cksum "$tmp/t0.db")
while read -r query; do
	exits 2 "$query" "$r" sql "$query"
	has "$tmp/err" 'one SELECT' 'is refused'
done <<E2
vacuum
VACUUM INTO '$tmp/copy.db'
BEGIN
COMMIT
SAVEPOINT a
ANALYZE
REINDEX
PRAGMA user_version = 3
DELETE FROM runs
CREATE TABLE a(b)
CREATE TEMP TABLE a(b)
ATTACH '$tmp/other.db' AS other
DETACH main
SELECT 1; SELECT 2
E2
is "$(ls "$tmp"/*.db)" "$tmp/t0.db" 'no file is made'
is "$(cksum "$tmp/t0.db")" "$before" 'and none is changed'

endless='WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
	SELECT count(*) FROM c'
# On a busy machine a short one may be over before the SELECT begins.
for seconds in 0.2 2 20; do
	timeout 60 "$r" sql "$endless" --deadline $seconds 2>"$tmp/err"
	status=$?
	grep -q 'not done after' "$tmp/err" || break
done
is $status 3 'an endless SELECT ends at its deadline'
has "$tmp/err" "stopped by --deadline $seconds" 'and says so'
plan_done
