#!/bin/sh
# t0-results bench and calibrate: fresh processes in turns, gone on with after
# whatever ended them.
. tests/tap.sh
unset T0_DB
r=$(realpath "$T0_BUILD/t0-results")
export T0_DB="$tmp/t0.db"
mkdir "$tmp/a" "$tmp/b"
cat >"$tmp/a/fake" <<FAKE
#!/bin/sh
# "Measures" a speed with a little noise, as an export that is imported.
echo "\$T0_SIDE" >>"$tmp/log"
[ ! -e "$tmp/fail" ] || { echo 'no such luck'; exit 3; }
[ "\${1-}" != nothing ] || exit 0
n=\$(wc -l <"$tmp/log")
[ "\$n" != "\$(cat "$tmp/stop" 2>/dev/null)" ] || kill -INT \$PPID
[ "\$n" != "\$(cat "$tmp/kill" 2>/dev/null)" ] || kill -KILL \$PPID
awk -v n="\$n" -v s="\$T0_SERIES" -v side="\$T0_SIDE" -v v=100 'BEGIN {
	x = v * (1 + n * 37 % 256 / 50000)
	print "{\"t0\":{\"export\":1,\"schema\":1}}"
	printf "{\"run\":{\"uuid\":\"%d\",\"tool\":\"fake\",\"argv\":\"fake\"," \\
		"\"inputs\":\"{}\",\"conditions\":\"{}\",\"seed\":1," \\
		"\"start_ns\":%d,\"end_ns\":%d,\"state\":\"complete\"," \\
		"\"exit_code\":0,\"reason\":\"\",\"owner\":\"\"," \\
		"\"series\":\"%s\",\"side\":\"%s\",\"host\":{" \\
		"\"machine\":\"h\",\"cpu\":\"c\",\"kernel\":\"k\",\"cores\":1," \\
		"\"mem_bytes\":1},\"device\":{\"name\":null},\"build\":{" \\
		"\"version\":\"1\",\"git_commit\":\"%s\",\"dirty\":0," \\
		"\"compiler\":\"cc\",\"flags\":\"\",\"binary\":\"%s\"}}}\n",
		n, n, n + 1, s, side, side, side
	printf "{\"result\":{\"case\":{\"area\":\"a\",\"name\":\"speed\"," \\
		"\"params\":\"{}\"},\"metric\":\"rate\",\"unit\":\"B/s\"," \\
		"\"value\":%.6f,\"lo\":null,\"hi\":null,\"n\":1," \\
		"\"clock_hz\":null,\"better\":\"higher\",\"origin\":" \\
		"\"hardware\",\"source\":\"\",\"samples\":[%.6f]}}\n", x, x
}' | "$r" import --quiet -
FAKE
chmod +x "$tmp/a/fake"
sed 's/v=100/v=95/' "$tmp/a/fake" >"$tmp/b/fake"
chmod +x "$tmp/b/fake"
f=$tmp/a/fake

exits 0 'bench: four processes' "$r" bench -p 4 -- "$f"
has "$tmp/out" 'run 1 stands for 4 processes' 'bench: of which one stands for all'
is "$("$r" list --csv | wc -l)" 5 'bench: four runs are stored'
exits 0 'bench: once more' "$r" bench -p 4 -- "$f"
has "$tmp/out" 'run 5 stands for 4' 'bench: is another series'
exits 0 'compare: one with the other' "$r" compare 2 7
has "$tmp/out" 'n: 4+4 processes' 'compare: any run stands for its series'
has "$tmp/out" '1 row has too few processes' 'compare: which are few'

rm -f "$tmp"/t0.db* "$tmp/log"
exits 1 'bench: beside a build that is 5 % slower' "$r" bench -p 12 \
	--against "$tmp/b" -- "$f"
has "$tmp/out" 'worse' 'bench: it is worse'
has "$tmp/out" 'n: 12+12 processes' 'bench: as twelve of each say'
ok 'bench: which took turns' sh -c "! grep 'one after the other' '$tmp/out'"
is "$(tr '\n' ' ' <"$tmp/log")" \
	"$(for i in 1 2 3 4 5 6; do printf 'a b b a '; done)" \
	'bench: A B B A'
exits 0 'bench: beside itself' "$r" bench -p 12 --against "$f" -- "$f"
has "$tmp/out" '~' 'bench: nothing is proven'

# Whatever ends it, the same command goes on.
rm -f "$tmp"/t0.db* "$tmp/log"
echo 3 >"$tmp/stop"
exits 130 'bench: interrupted' "$r" bench -p 8 -- "$f"
has "$tmp/err" 'goes on' 'bench: says that it can go on'
rm "$tmp/stop"
cat >"$tmp/a/lasts" <<LASTS
#!/bin/sh
echo \$\$ >"$tmp/lasting"
exec sleep 100
LASTS
chmod +x "$tmp/a/lasts"
"$r" bench -q -p 2 -- "$tmp/a/lasts" 2>"$tmp/err" &
pid=$!
until [ -s "$tmp/lasting" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -TERM $pid
wait $pid
is $? 143 'bench: SIGTERM does not wait for what it runs'
has "$tmp/err" 'stopped by SIGTERM: the same command goes on' 'bench: says so'
ok 'bench: which has ended, too' sh -c '! kill -0 "$(cat "$1")" 2>/dev/null' - "$tmp/lasting"
echo 5 >"$tmp/kill"
"$r" bench -p 8 -- "$f" 2>"$tmp/err"
is $? 137 'bench: killed'
has "$tmp/err" 'has 3 of 8 processes' 'bench: it had gone on'
rm "$tmp/kill"
sleep 1
: >"$tmp/fail"
exits 2 'bench: a process that fails' "$r" bench -p 8 -- "$f"
has "$tmp/err" 'ended with 3; it said: no such luck' 'bench: is quoted'
rm "$tmp/fail"
exits 0 'bench: to its end' "$r" bench -p 8 -- "$f"
has "$tmp/out" 'run 1 stands for 8 processes' 'bench: with what there was'
is "$("$r" list --csv | wc -l)" 9 'bench: nothing twice'
exits 2 'bench: a command that stores nothing' "$r" bench -- "$f" nothing
has "$tmp/err" 'stored no run' 'bench: is told'
exits 2 'bench: no such program' "$r" bench -- "$tmp/none"
exits 2 'bench: no such other program' "$r" bench --against "$tmp/none" -- "$f"
exits 2 'bench: no process' "$r" bench -p -1 -- "$f"

# The numbers of a calibration depend on the machine: only their form is tested.
rm -f "$tmp"/t0.db*
exits 0 'calibrate' "$r" calibrate compile --condition quiet -p 16 --side 4 \
	--trials 20 --csv
is "$(tr -d '\r' <"$tmp/out" | sed -n 2p | cut -d, -f1,2,4,5,7)" \
	compile,quiet,16,4,20 'calibrate: one kind, one condition'
exits 0 'calibrate: beside a busy neighbour' "$r" calibrate compile \
	--condition busy -p 8 --side 4 --trials 5
is "$("$r" list --csv | wc -l)" 25 'calibrate: its processes are runs'
# Quiet and busy differ, or not: what is tested is what is said of it.
"$r" compare 1 17 >"$tmp/out" || :
has "$tmp/out" 'calibrated: compile, quiet' 'compare: says what is known'
has "$tmp/out" 'of 20 A/A trials' 'compare: of how many trials'
exits 2 'calibrate: an unknown kind' "$r" calibrate nothing
has "$tmp/err" 'wanted dispatch, latency' 'calibrate: names those there are'
exits 2 'calibrate: an odd side' "$r" calibrate --side 3
exits 0 'export' "$r" export -o "$tmp/all"
exits 0 'import' "$r" import --db "$tmp/new.db" "$tmp/all"
exits 0 'export again' "$r" export --db "$tmp/new.db" -o "$tmp/again"
ok 'series and calibrations are in it' cmp "$tmp/all" "$tmp/again"
plan_done
