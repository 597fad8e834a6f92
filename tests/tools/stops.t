#!/bin/sh
# What runs for long ends at a signal or at --deadline: it keeps what it has,
# says so in one line, and its status is 128 + the signal's number, or 3.
. tests/tap.sh
export T0_DEVICE=soft T0_DB="$tmp/t0.db" T0_CACHE="$tmp/cache"
b=$(cd "$T0_BUILD" && pwd -P) data=tests/data/kernels

endless='WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
	SELECT count(*) FROM c'
exits 0 'a database' "$b/t0-results" note add -q --status keep \
	--hypothesis 'a note'
exits 0 'a tiny model' scripts/make-model "$tmp/tiny"

# catches PID TOOL: SIGHUP and SIGINT, no longer as the shell's child.
catches() {
	[ "$(readlink "/proc/$1/exe")" = "$2" ] || return 1
	grep -q '^SigCgt:.*[37bf]$' "/proc/$1/status"
}

# stops NAME KEPT COMMAND...: by each signal.
stops() {
	what=$1 kept=$2
	shift 2
	for signal in HUP:1 INT:2 TERM:15; do
		"$@" >"$tmp/out" 2>"$tmp/err" &
		pid=$!
		until catches $pid "$1"; do kill -0 $pid || break; done
		kill -"${signal%:*}" $pid
		wait $pid
		is $? $((128 + ${signal#*:})) "$what: SIG${signal%:*}"
		has "$tmp/err" "${1##*/}: stopped by SIG${signal%:*}: $kept" \
			"$what: says what is kept"
		is "$(grep -c 'stopped by' "$tmp/err")" 1 "$what: in one line"
	done
}

stops 'a query' "$T0_DB: left while reading" "$b/t0-results" sql "$endless"
stops 'a search' 'the same command goes on with what is missing' \
	"$b/t0-tune" -q --sizes 8192 --budget exhaustive
stops 'a search on the host' 'the same command goes on' \
	"$b/t0-tune" -q --sizes 4096 --budget exhaustive --device host
stops 'discovery' 'the same command goes on with run' \
	"$b/t0-probe" discover -q --oracle none
stops 'a probe' 'what was finished is kept' \
	"$b/t0-probe" latency -q --device sim
stops 'tiers' 'what was finished is kept' "$b/t0-probe" tiers -q
stops 'launches' 'what was finished is kept' "$b/t0-probe" dispatch -q
stops 'dispatches' '' "$b/t0-run" -q "$data/saxpy.co" saxpy f32:2 \
	buf:64:f32=iota out:64:f32=1 u32:64 --grid 64 --block 64 --repeat 1000000
stops 'a kernel without end' '' "$b/t0-run" -q "$data/fault.co" forever \
	out:1:u32 --block 32 --deadline 1000
{
	echo source_doc,system,M,N,K,tile_m,tile_n,tile_k,split_k,wg_mode,other,tflops
	yes 'a,Triton,1024,1024,1024,128,128,32,,,reliability=good,50' |
		head -n 2000
} >"$tmp/rows.csv"
stops 'rows' '' "$b/t0-sim" validate -q --perf "$tmp/rows.csv"
stops 'sensors' 'what was finished is kept' "$b/t0-device" watch -q
stops 'a measurement' '' "$b/t0-qwen3" bench -q -m "$tmp/tiny" \
	--samples 1000 --prefill 512
stops 'a text' '' "$b/t0-qwen3" generate -q -m "$tmp/tiny" --ids 1,2 -g \
	-n 40000 --context 40000

mkfifo "$tmp/pipe"
stops 'an import from a pipe that nobody writes into' \
	"while reading $tmp/pipe" "$b/t0-results" import -q "$tmp/pipe"
stops 'a text from one' 'while reading' "$b/t0-qwen3" eval -q -m "$tmp/tiny" \
	-f "$tmp/pipe"

# Nobody reads what it writes, and the pipe is full.
mkfifo "$tmp/full"
sleep 250 <"$tmp/full" &
reader=$!
"$b/t0-results" sql --csv "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL
	SELECT x + 1 FROM c) SELECT x FROM c LIMIT 100000" >"$tmp/full" 2>"$tmp/err" &
pid=$!
until catches $pid "$b/t0-results" && grep -q '^State:.*sleeping' /proc/$pid/status; do
	kill -0 $pid || break
done
sleep 0.3 # still
kill -TERM $pid
wait $pid
is $? 143 'a query into a full pipe: SIGTERM, once'
has "$tmp/err" 'stopped by SIGTERM' 'it says so'
kill $reader

# A card that hangs is waited for for minutes, but not after a signal.
hangs() { # NAME COMMAND...
	what=$1
	shift
	rm -f "$tmp/pid"
	timeout 100 "$b/t0-soft" run --quiet --costs /dev/null \
		--inject hang@1.1 -- sh -c 'echo $$ >"$0" && exec "$@"' \
		"$tmp/pid" "$@" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until [ -s "$tmp/pid" ] && catches "$(cat "$tmp/pid")" "$1"; do
		kill -0 $pid 2>/dev/null || break
	done
	sleep 1 # it waits by now
	kill -TERM "$(cat "$tmp/pid")"
	wait $pid
	is $? 143 "$what, on a card that hangs: SIGTERM"
	has "$tmp/err" 'stopped by SIGTERM' "$what: says so"
}
if [ -e "$T0_BUILD/libt0-soft.so" ]; then
	hangs 'launches' "$b/t0-probe" dispatch -q --device kfd
	hangs 'a probe' "$b/t0-probe" latency -q --device kfd
	hangs 'a search' "$b/t0-tune" -q --sizes 256 --budget quick --device kfd
else
	skip 'no card that hangs: this build cannot be preloaded'
fi

deadline() {
	what=$1
	shift
	exits 3 "$what: --deadline" timeout 100 "$@" --deadline 0.3
	has "$tmp/err" '--deadline 0.3' "$what: says so"
}
deadline 'a search' "$b/t0-tune" -q --sizes 8192 --budget exhaustive
deadline 'a probe' "$b/t0-probe" memory -q --device sim
deadline 'sensors' "$b/t0-device" watch -q
deadline 'a text' "$b/t0-qwen3" generate -q -m "$tmp/tiny" --ids 1,2 -g \
	-n 40000 --context 40000
# What others published is stored at once.
exits 0 'what became of the runs' "$b/t0-results" sql \
	"SELECT DISTINCT state FROM runs WHERE tool <> 't0-tune published'" --csv
is "$(tr -d '\r' <"$tmp/out" | tr '\n' ' ')" 'state interrupted ' \
	'each is interrupted, none complete or failed'
plan_done
