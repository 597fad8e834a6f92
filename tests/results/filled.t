#!/bin/sh
# Every area that a tool writes is drawn, and what a plot names as the command
# that fills it does so.
. tests/tap.sh
unset T0_DEVICE
export T0_CACHE=''
b=$T0_BUILD db=$tmp/t0.db
command -v gnuplot >/dev/null || skip_all 'gnuplot is not installed'

exits 0 'the list of plots, without a database' "$b/t0-results" plot --list \
	--json --db "$tmp/none.db"
exits 0 'and as CSV' "$b/t0-results" plot --list --csv
sed 1d "$tmp/out" | tr -d '\r' >"$tmp/plots"
cut -d , -f 2 "$tmp/plots" | tr ' ' '\n' | sort -u >"$tmp/drawn"
# area LIST: are all words of the list areas of plots?
drawn() {
	printf '%s\n' $1 | sort -u | comm -23 - "$tmp/drawn" | tr '\n' ' '
}
is "$(drawn "$(awk '/^ \*\tarea / { on = 1; next } /^ \*$/ { on = 0 }
	on && /^ \*\t[a-z]/ { print $2 }' results/db/results.h)")" '' \
	'every area that results.h describes has a plot'

cut -d , -f 3 "$tmp/plots" | sort -u >"$tmp/fills"
while read -r tool command rest; do
	case $command in -*) command= ;; esac # its first option
	case $tool in
	make)
		ok "make $command is a target" \
			grep -Eq "^([a-z-]+ )*$command( [a-z-]+)*:" GNUmakefile ;;
	*)
		exits 0 "$tool $command is a command" \
			"$b/$tool" ${command:+"$command"} --help ;;
	esac
done <"$tmp/fills"

# Producers, each in its shortest form; T0_DB names the database for those that
# store always, --db for those that store when asked.
export T0_DB="$db"
run() { # TOOL ARGUMENT...
	run_tool=$1
	shift
	exits 0 "$run_tool $*" "$b/$run_tool" "$@"
}
run t0-probe tiers
run t0-probe discover --encoding SOPP --quiet
run t0-probe dispatch --quick --quiet
for p in latency throughput overlap memory lds branch fetch waves; do
	run t0-probe $p --device sim --quick --quiet
done
run t0-cc -k axpy -o "$tmp/axpy.co" --db "$db"
run t0-isa verify "$tmp/axpy.co" --db "$db"
run t0-sim "$tmp/axpy.co" axpy --db "$db"
run t0-tune --shapes 64x64x64 --budget quick --device soft
run t0-qwen3 forecast --shape tiny --context 64 --prefill 16 --db "$db"
run t0-qwen3 forecast --train --shape tiny --precision bf16 --rows 1 \
	--length 64 --db "$db"
run t0-qwen3 make --quiet --model "$tmp/model"
run t0-qwen3 bench --quiet --model "$tmp/model" --prefill 16 --decode 4 \
	--samples 1
run t0-qwen3 quantize --quiet --to int8 "$tmp/model" "$tmp/int8" --db "$db"
run t0-qwen3 train --quiet --data /usr/share/common-licenses/GPL-3 --steps 2 \
	--length 16 --layers 1 --hidden 16 --heads 1 --kv-heads 1 --db "$db" \
	"$tmp/learnt"
"$b/t0-qwen3" serve --quiet --model "$tmp/model" --port 0 >"$tmp/said" 2>"$tmp/log" &
server=$!
for i in $(seq 240); do
	grep -qs listening "$tmp/said" && break
	sleep 0.25
done
run t0-qwen3 load --quiet --url "$(sed 's/.* //' "$tmp/said")" --request-rate 20,50 \
	--requests 4 --samples 1 --tokens 4
kill "$server"
wait "$server"
areas=$(sqlite3 "$db" 'SELECT DISTINCT area FROM cases')
ok 'they write many areas' [ "$(echo "$areas" | wc -w)" -gt 14 ]
is "$(drawn "$areas")" '' 'every area that they write has a plot'

exits 0 'draw it' "$b/t0-results" plot -o "$tmp/drawings"
is "$(sed -n 's/.*plot \([a-z_]*\): no data.*/\1/p' "$tmp/err" | tr '\n' ' ')" \
	'bench bench_ratios ' 'only the benchmarks were not run, and lack data'
is "$(grep -vc 'no data\|plots are in' "$tmp/err")" 0 \
	'gnuplot has nothing to say'
exits 2 'a plot without data' "$b/t0-results" plot bench -o "$tmp/drawings"
is "$(cat "$tmp/err")" \
	't0-results: plot bench: no data; `make bench` brings some' \
	'names the command'
plan_done
