#!/bin/sh
# t0-results push and pull with a PostgreSQL of this test's own: several runners
# at once, connections that are cut, a full disk, roles, views.
. tests/tap.sh
unset T0_DB T0_SHARD PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSERVICE
r=$T0_BUILD/t0-results
export LC_ALL=C.UTF-8 PGOPTIONS=

exits 2 'a store that is not there' "$r" push --db "$tmp/none.db" \
	'host=/nowhere dbname=t0'

# ---- a server, as somebody who is not root ----
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$pg/initdb" ] && [ -x "$pg/postgres" ] ||
	pg=$(dirname "$(command -v initdb || echo /none/x)")
if ! [ -x "$pg/initdb" ] || ! ldconfig -p | grep -q 'libpq\.so\.5'; then
	diag 'no PostgreSQL here (Debian: postgresql, libpq5): push and pull' \
		'are NOT tested'
	skip 'push and pull: no PostgreSQL'
	plan_done
fi
as() { # COMMAND...: not as root
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=nobody --regid=nogroup --clear-groups \
			env HOME="$socket/pg" "$@"
	else
		"$@"
	fi
}
# Paths of sockets are short, lists of hosts have commas between them, and not
# everybody may go where TMPDIR is.
socket=$(mktemp -d /tmp/t0-store-XXXXXX) || exit 2
mkdir "$socket/pg" && chmod 700 "$socket/pg"
[ "$(id -u)" != 0 ] || chown nobody:nogroup "$socket/pg" "$socket"
as "$pg/initdb" -D "$socket/pg/data" -U owner -A trust -N --wal-segsize=1 -E UTF8 --locale=C \
	>"$tmp/out" 2>&1 || diag "$(cat "$tmp/out")"
start() { # [THE MOST THAT A FILE MAY HAVE, in 512 bytes]
	as sh -c "ulimit -f ${1-unlimited}; cd /; exec \"\$@\"" - \
		"$pg/postgres" -D "$socket/pg/data" -k "$socket" -c fsync=off \
		-c listen_addresses= -c unix_socket_permissions=0777 \
		-c max_connections=40 -c shared_buffers=16MB -c log_min_messages=fatal \
		-c logging_collector=off >"$tmp/pg.log" 2>&1 &
	server=$!
	tries=0
	until psql -qAt -h "$socket" -U owner -d postgres -c 'SELECT 1' \
		>/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] && kill -0 $server 2>/dev/null || break
		sleep 0.1
	done
}
stop() { # $server waits for it
	[ -n "${server-}" ] || return
	kill -INT "$(head -n 1 "$socket/pg/data/postmaster.pid")"
	wait "$server"
	server=
}
trap 'stop; rm -rf "$tmp" "$socket"' EXIT
chmod 711 "$socket"
start
sql() { # USER STATEMENT...
	user=$1
	shift
	for statement; do
		psql -qAtX -v ON_ERROR_STOP=1 -h "$socket" -U "$user" -d t0 \
			-c "$statement" || return
	done
}
url() { # USER
	echo "postgresql://$1@/t0?host=$socket"
}
ok 'PostgreSQL runs' psql -qAtX -h "$socket" -U owner -d postgres \
	-c 'CREATE DATABASE t0' -c 'CREATE ROLE runner LOGIN' \
	-c 'CREATE ROLE looker LOGIN'

# ---- what a fixture says ----
awk -f tests/data/results/fixture.awk >"$tmp/fixture"
"$r" import -q --db "$tmp/a.db" "$tmp/fixture"
exits 2 'no runner makes the schema' "$r" push -q --db "$tmp/a.db" "$(url runner)"
has "$tmp/err" 'whoever owns the database' 'and is told who does'
exits 0 'the owner does' "$r" push --db "$tmp/a.db" "$(url owner)"
lines=$(($("$r" export --db "$tmp/a.db" | wc -l) - 1))
has "$tmp/err" "$lines of $lines rows were new" 'with every line'
is "$(sql owner 'SELECT count(*) FROM t0_rows')" $lines 'which it holds'
exits 0 'again' "$r" push --db "$tmp/a.db" "$(url owner)"
has "$tmp/err" "0 of $lines rows were new" 'adds nothing'
exits 0 'pulled' "$r" pull -q --db "$tmp/b.db" "$(url owner)"
export_of() { # DB
	"$r" export --db "$1" | sort
}
export_of "$tmp/a.db" >"$tmp/a"
export_of "$tmp/b.db" >"$tmp/b"
ok 'they are the same rows' cmp "$tmp/a" "$tmp/b"
exits 0 'pulled again' "$r" pull --db "$tmp/b.db" "$(url owner)"
has "$tmp/err" 't0-results: 0 new runs' 'nothing is new'

# ---- roles ----
sql owner 'GRANT t0_runner TO runner' 'GRANT t0_reader TO looker'
exits 0 'a runner pushes' "$r" push -q --db "$tmp/a.db" "$(url runner)"
exits 2 'but cannot read' "$r" pull -q --db "$tmp/c.db" "$(url runner)"
has "$tmp/err" t0_reader 'and is told the role'
exits 0 'a reader reads' "$r" pull -q --db "$tmp/c.db" "$(url looker)"
exits 2 'but cannot push' "$r" push -q --db "$tmp/a.db" "$(url looker)"
has "$tmp/err" t0_runner 'and is told the role'
ok 'nobody changes rows' sh -c "! psql -qX -h '$socket' -U runner -d t0 \
	-c 'DELETE FROM t0_rows' 2>/dev/null"

# ---- views: names, columns, and rows as sqlite has them ----
sqlite3 "$tmp/a.db" "SELECT v.name || ' ' || c.name FROM sqlite_schema v,
	pragma_table_info(v.name) c WHERE v.type = 'view'
	AND NOT (v.name = 'v_verdicts' AND c.name = 'case_id')" |
	sort >"$tmp/want"
sql looker "SELECT relname || ' ' || attname FROM pg_class c JOIN pg_attribute a
	ON a.attrelid = c.oid WHERE relkind = 'v' AND relname LIKE 'v\\_%'
	AND attnum > 0" | sort >"$tmp/got"
ok 'views and their columns are those of sqlite' cmp "$tmp/want" "$tmp/got"
cat >"$tmp/queries" <<'SQL'
SELECT 'result', area, name, params, metric, unit, CAST(round(value * 1000) AS bigint),
	n, better, origin, source, correct, coherent, tool, start_ns, state,
	device_name, git_commit, dirty FROM v_results;
SELECT 'run', uuid, tool, inputs, started, state, exit_code, machine, gfx,
	git_commit, cases, results, passed, failed, undecided, slots FROM v_runs;
SELECT 'verdict', kind, verdict, reason, detail, area, name, params, metric
	FROM v_verdicts;
SELECT 'slot', encoding, slots, executes, illegal, faults, hangs, unproven,
	differences FROM v_slot_summary;
SELECT 'latest', encoding, opcode, form, verdict, signature FROM v_latest_slots;
SELECT 'sensor', moment, power_w, area, name, metric FROM v_sensors;
SELECT 'tune', target, op, m, n, k, batch, caches, config, state, reason,
	object, winner, class, budget, candidates, second, chosen_ns, proof
	FROM v_tunes;
SELECT 'check', target, op, config, object, class, verdict, compared, seed
	FROM v_tune_checks;
SELECT 'baseline', uuid, created, state, active, machine, area, name, samples,
	processes, required FROM v_baselines;
SELECT 'note', uuid, created, hypothesis, status, current FROM v_notes;
SELECT 'calibration', uuid, kind, area, trials, false_alarms FROM v_calibrations;
SELECT 'experiment', uuid, kind, what, verdict, reason FROM v_experiments;
SQL
sqlite3 -separator '|' "$tmp/a.db" <"$tmp/queries" |
	sed 's/\.0\(|\|$\)/\1/g' | sort >"$tmp/want"
psql -qAtX -h "$socket" -U looker -d t0 -f "$tmp/queries" 2>&1 |
	sort >"$tmp/got"
ok 'rows of the views are, too' cmp "$tmp/want" "$tmp/got"
diff "$tmp/want" "$tmp/got" | head -n 20 >&2
ok "which are $(wc -l <"$tmp/want")" test "$(wc -l <"$tmp/want")" -gt 10

# ---- runners at once, connections cut, one of them killed ----
runners=8 rows=200
[ -z "${T0_SLOW-}" ] || rows=100000
sql owner 'TRUNCATE t0_rows'
i=0
while [ $((i += 1)) -le $runners ]; do
	cp "$tmp/a.db" "$tmp/r$i.db"
	sqlite3 "$tmp/r$i.db" "DELETE FROM tune_winners; DELETE FROM tune_checks;
		DELETE FROM tunes; DELETE FROM verdicts; DELETE FROM slot_verdicts;
		DELETE FROM results; DELETE FROM baselines; DELETE FROM notes;
		DELETE FROM experiments; DELETE FROM calibrations;
		DELETE FROM runs WHERE id > (SELECT min(id) FROM runs);
		UPDATE runs SET uuid = 'runner $i', state = 'complete',
			end_ns = start_ns, exit_code = 0;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
			WHERE i < $rows) INSERT INTO cases(area, name, params)
			SELECT 'store', 'row', json_object('i', i) FROM n;
		INSERT INTO results(run, case_id, metric, unit, value, n, better,
			origin, source) SELECT (SELECT id FROM runs), id, 'x',
			's', id * 1.5 + $i / 7.0, 1, 'none', 'simulated', ''
			FROM cases WHERE area = 'store'"
done
# A statement of two is cut before its end, by the server itself; others are cut
# from outside, wherever they are.
sql owner 'CREATE SEQUENCE calls' 'CREATE SEQUENCE cuts' "CREATE FUNCTION cut()
	RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN
	IF nextval(''calls'') % 2 = 1 THEN PERFORM nextval(''cuts''); PERFORM pg_terminate_backend(
	pg_backend_pid()); PERFORM pg_sleep(10); END IF; RETURN NULL; END'" \
	'CREATE TRIGGER cut AFTER INSERT ON t0_rows FOR EACH STATEMENT
	EXECUTE FUNCTION cut()'
push() { # RUNNER
	"$r" push -q --db "$tmp/r$1.db" "$(url runner)" 2>"$tmp/err$1"
}
(
	cut=0
	while ! [ -e "$tmp/done" ]; do
		n=$(sql owner "SELECT count(pg_terminate_backend(pid)) FROM
			(SELECT pid FROM pg_stat_activity WHERE usename = 'runner'
			ORDER BY random() LIMIT 2) x" 2>/dev/null)
		cut=$((cut + ${n:-0}))
		echo $cut >"$tmp/cut"
		sleep 0.1
	done
) &
cutter=$!
pids='' i=0
while [ $((i += 1)) -le $runners ]; do
	{
		push $i
		echo $? >"$tmp/exit$i"
	} &
	pids="$pids $!"
done
# Beside them, one that dies and is begun again.
timeout -s KILL 0.1 "$r" push -q --db "$tmp/r1.db" "$(url runner)" 2>/dev/null
wait $pids
: >"$tmp/done"
wait $cutter
is "$(cat "$tmp"/exit* | sort -u)" 0 'all runners end well'
cat "$tmp"/err[0-9]* >&2
inside=$(sql owner 'DROP TRIGGER cut ON t0_rows' 'SELECT last_value FROM cuts')
diag "connections cut: $inside inside a statement, $(cat "$tmp/cut") from outside"
ok 'connections were cut' test "$inside" -gt 1
is "$(sql owner "SELECT count(*) FROM t0_rows WHERE kind = 'result'")" \
	$((runners * rows)) 'nothing is lost or there twice'
is "$(sql owner "SELECT count(*) FROM t0_rows WHERE kind = 'run'")" \
	$runners 'of any run'
exits 0 'all is pulled' "$r" pull -q --db "$tmp/all.db" "$(url looker)"
"$r" merge -q --db "$tmp/merged.db" "$tmp"/r[1-8].db
export_of "$tmp/all.db" >"$tmp/a"
export_of "$tmp/merged.db" >"$tmp/b"
ok 'and is what a merge of the files is' cmp "$tmp/a" "$tmp/b"

# ---- a full disk: of no file may be more than this ----
sql owner 'TRUNCATE t0_rows'
stop
start 4096
sqlite3 "$tmp/r1.db" "UPDATE runs SET uuid = 'full';
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
	WHERE i < 4000) INSERT INTO cases(area, name, params) SELECT 'full',
	'row', json_object('i', i) FROM n;
	INSERT INTO results(run, case_id, metric, unit, value, n, better, origin,
	source) SELECT (SELECT id FROM runs), id, 'x', 's', id, 1, 'none',
	'simulated', '' FROM cases WHERE area = 'full'"
exits 2 'a full disk' "$r" push -q --db "$tmp/r1.db" "$(url runner)"
has "$tmp/err" 'the store' 'is told'
stop
start
exits 0 'with room again' "$r" push -q --db "$tmp/r1.db" "$(url runner)"
is "$(sql owner "SELECT count(*) FROM t0_rows WHERE run = 'full' AND
	kind = 'result'")" $((rows + 4000)) 'the rest follows, nothing twice'
# The first look at the schema is cut, too.
sql owner 'ALTER TABLE t0_schema RENAME TO t0_schema_kept' \
	'CREATE SEQUENCE looks' "CREATE FUNCTION look() RETURNS boolean
	LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN IF nextval(''looks'') = 1
	THEN PERFORM pg_terminate_backend(pg_backend_pid());
	PERFORM pg_sleep(10); END IF; RETURN true; END'" \
	'CREATE VIEW t0_schema AS SELECT version FROM t0_schema_kept WHERE look()'
sql owner 'GRANT SELECT ON t0_schema TO t0_runner'
exits 0 'a connection that is cut at once' "$r" push -q --db "$tmp/r1.db" \
	"$(url runner)"
ok 'it was cut' test "$(sql owner 'SELECT last_value FROM looks')" -gt 1
sql owner 'DROP VIEW t0_schema' 'ALTER TABLE t0_schema_kept RENAME TO t0_schema'
sql owner 'INSERT INTO t0_schema VALUES(99)'
exits 2 'a newer schema' "$r" pull -q --db "$tmp/b.db" "$(url owner)"
has "$tmp/err" 'use the newer build' 'is left alone'
plan_done
