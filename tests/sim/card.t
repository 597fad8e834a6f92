#!/bin/sh
# The kit for the first day with a card: its list, how it gets over hangs and
# reboots, what the file keeps to itself, and that a card of other costs is
# found out.  T0_SLOW=1 rehearses it against such a card with faults.
. tests/soft-run.sh

export T0_CARD="$tmp/kit"
card=scripts/card

# ---- the list ----
"$card" --list "$T0_BUILD" >"$tmp/list"
is "$(grep -c '^product-' "$tmp/list")" 60 'sixty products are in the list'
is "$(awk '{ s += $2 } $2 <= 0 || $2 > 600 { bad = 1 } END { print bad + 0 }' \
	"$tmp/list")" 0 'every step has a deadline of at most ten minutes'
is "$(cut -d' ' -f1 "$tmp/list" | sort | uniq -d)" '' 'names of steps differ'
is "$(awk '$3 != "kernels" { print $3 }' "$tmp/list" | sort -u |
	while read -r tool; do [ -x "$T0_BUILD/$tool" ] || echo "$tool"; done)" '' \
	'every step is a tool'

# ---- how its products are chosen ----
exits 0 'the first of them are chosen without a simulation' timeout -k 5 60 \
	"$T0_BUILD/t0-sim" design --number 3 -q
is "$(grep '^GEMM' "$tmp/out")" "$(grep -m 3 '^GEMM' "$T0_SRC/autotune/card/design.def")" \
	'and are those of the kit'
exits 3 'all of them take their time' timeout -k 5 60 "$T0_BUILD/t0-sim" design \
	--deadline 1 -q

# ---- a card that hangs, and a machine that goes down: tools of straw ----
mkdir "$tmp/straw"
cat >"$tmp/straw/tool" <<'END'
#!/bin/sh
# What the kit calls; SAYS/NAME tells what goes wrong, once each.
name=${0##*/}
echo "$name $*" >>"$SAYS/calls"
case "$name $*" in
"t0-device sensors"*) printf 'sensor,value,unit\njunction,60,C\nvram_lost,0,x\n' ;;
"t0-tune card --csv"*) printf 'number\n1\n2\n' ;;
"t0-probe memory"*) [ -e "$SAYS/hung" ] || { echo $$ >"$SAYS/hung"; exec sleep 30; } ;;
"t0-probe lds"*) sleep 30 ;;
"t0-probe branch"*) [ -e "$SAYS/down" ] || {
	: >"$SAYS/down"
	kill -9 $(cat "$SAYS/pid")
	sleep 30
} ;;
"t0-results export"*) echo '{}' >"$SAYS/../kit/card.jsonl.new" ;;
esac
END
chmod 755 "$tmp/straw/tool"
for t in device probe tune qwen3 results; do
	ln -s tool "$tmp/straw/t0-$t"
done
SAYS=$tmp/says
export SAYS
mkdir "$SAYS"
straw() {
	T0_CARD_SECONDS=1 sh -c 'echo $$ >"$SAYS/pid"; exec "$@"' - \
		"$card" --only '[dlmb]*' "$tmp/straw" 2>"$tmp/said"
}
straw
is $? 137 'the machine goes down in the middle of a step'
straw
is $? 0 'the same command goes on'
count() { grep -c "^t0-probe $1 " "$SAYS/calls"; }
is "$(count dispatch) $(count latency)" '1 1' 'what was done is not done again'
is "$(count memory)" 2 'a step that hung is tried once more'
is "$(grep '^end memory' "$T0_CARD/journal")" 'end memory 0' 'and is done then'
is "$(grep '^end lds' "$T0_CARD/journal")" 'end lds 124' \
	'one that hangs twice ends without an answer'
is "$(grep '^end branch' "$T0_CARD/journal")" 'end branch 0' \
	'the step of the reboot is done'
has "$tmp/said" 'without an answer: lds' \
	'what is missing is said'
cp "$T0_CARD/journal" "$tmp/journal"
for signal in TERM:15 HUP:1 TERM:15; do
	grep -v memory "$tmp/journal" >"$T0_CARD/journal"
	grep '^begin memory\|^stop' "$tmp/stopped" >>"$T0_CARD/journal" 2>/dev/null
	rm -f "$SAYS/hung"
	T0_CARD_SECONDS=20 "$card" --only memory "$tmp/straw" 2>"$tmp/said" &
	pid=$!
	until [ -s "$SAYS/hung" ]; do kill -0 $pid || break; done
	sleep 0.3 # timeout(1) knows its child by now
	kill -"${signal%:*}" $pid
	wait $pid
	is $? $((128 + ${signal#*:})) "SIG${signal%:*} ends a step"
	has "$tmp/said" "stopped by SIG${signal%:*}: the same command goes on" \
		'and says so'
	ok 'the probe has ended, too' sh -c '! kill -0 "$1" 2>/dev/null' - \
		"$(cat "$SAYS/hung")"
	cp "$T0_CARD/journal" "$tmp/stopped"
done
is "$(grep -c '^begin memory' "$tmp/stopped")" 3 'three times it began'
T0_CARD_SECONDS=20 "$card" --only memory "$tmp/straw" 2>"$tmp/said"
is "$(grep '^end memory' "$T0_CARD/journal")" 'end memory 0' \
	'which are no beginnings that never ended'
exits 2 'no step of that name' "$card" --only nothing "$tmp/straw"
has "$tmp/err" 'no step has such a name' 'is told'
mv "$T0_CARD/journal" "$tmp/journal"
mkdir "$T0_CARD/journal"
exits 2 'a journal that cannot be written' "$card" --only lds "$tmp/straw"
has "$tmp/err" 'journal: cannot be written' 'is told'
rmdir "$T0_CARD/journal"
mv "$tmp/journal" "$T0_CARD/journal"
is "$(grep -c . "$SAYS/calls")" "$(straw && grep -c . "$SAYS/calls" |
	awk '{ print $1 - 2 }')" 'once all is done only the file is made again'
rm -r "$T0_CARD"

# ---- a card of other costs, seen by the tools ----
printf '%s\n' 'clock=2100 # MHz' '' 'valu.latency=7' 'dispatch.launch=3.5' \
	'trans.latency=13' >"$tmp/costs"
timed() { timeout -k 5 120 "$soft" run --quiet --costs "$tmp/costs" -- "$@"; }
timed "$T0_BUILD/t0-device" list --csv >"$tmp/out"
has "$tmp/out" ',simulated,yes' 'its figures are simulated'
timed "$T0_BUILD/t0-probe" latency --quiet --quick --samples 1 --inst v_add_f32 \
	--csv --db "$tmp/card.db" >"$tmp/out"
is "$(grep '^v_add_f32,' "$tmp/out" | cut -d, -f2)" 7.000 \
	'a probe finds the latency that the file says'
timed "$T0_BUILD/t0-probe" dispatch --quiet --quick --csv --db "$tmp/card.db" \
	>"$tmp/out"
is "$(awk -F, '$1 == "device" { print ($3 > 3480 && $3 < 3600) }' "$tmp/out")" 1 \
	'packets are as far apart as the file says'
exits 2 'a cost that there is not is refused' \
	"$soft" run --costs /dev/stdin -- true <<'END'
nothing=1
END
exits 2 'so is a fault that there is not' "$soft" run --inject luck@1.1 -- \
	"$T0_BUILD/t0-device" info

# ---- what the file keeps to itself ----
"$T0_BUILD/t0-results" export --anonymous --db "$tmp/card.db" -o "$tmp/file" \
	--quiet
is "$(grep -cF -e "$(hostname)" -e "$tmp" -e "$HOME" "$tmp/file")" 0 \
	'neither host nor folders are in the file'
is "$(grep -c '"uid":""' "$tmp/file")" "$(grep -c '"run":{' "$tmp/file")" \
	'nor a serial number'
exits 0 'and it is an export' \
	"$T0_BUILD/t0-results" import "$tmp/file" --db "$tmp/other.db" --quiet
T0_DB=$tmp/none.db "$T0_BUILD/t0-sim" fit "$tmp/file" --number 1 --csv --quiet \
	>"$tmp/out"
is "$(grep '^valu.latency,' "$tmp/out" | cut -d, -f2,4)" 'found,7' \
	'the fit finds the latency'
is "$(awk -F, '/^dispatch.launch,/ { print $2, ($4 > 3.45 && $4 < 3.55) }' \
	"$tmp/out")" 'found 1' 'and the launch'
is "$(grep '^mem.l2,' "$tmp/out" | cut -d, -f2)" unknown \
	'what was not measured is unknown'

# ---- rehearsed ----
if [ -n "${T0_SLOW:-}" ]; then
	cat >"$tmp/costs" <<'END'
clock=2150
clock.short=2850
clock.power=2.5
dispatch.launch=3
valu.latency=6
trans.latency=13
trans.issue=5
lds.load.latency=41
mem.l0=105
mem.l1=150
mem.l2=270
mem.ic=70
mem.dram=140
mem.l0_rate=52
mem.l2_rate=1700
mem.ic_rate=2.6e12
mem.dram_rate=9e11
lds.phase128=4
lds.conflict=2
wmma.issue=28
wmma.latency=40
barrier=22
branch.taken=31
salu.latency=3
mul.issue=5
END
	# A step looks at the sensors twice before and after, each a process.
	T0_CARD_SECONDS=100 T0_CARD_SHAPE=tiny timeout -k 5 2400 "$soft" run \
		--quiet --costs "$tmp/costs" --inject reset@13.2 \
		--inject fault@22.3 --inject hang@31.5 --inject slow@40.2 -- \
		"$card" --quick "$T0_BUILD" 2>"$tmp/said"
	is $? 0 'the kit gets over a hang, a fault, a reset and a slow packet'
	diag "$(cat "$tmp/said")"
	for step in dispatch memory latency; do
		is "$(grep -c "^begin $step\$" "$T0_CARD/journal")" 2 \
			"$step went wrong"
		is "$(grep "^end $step " "$T0_CARD/journal")" "end $step 0" \
			'and was done again'
	done
	is "$(grep '^end' "$T0_CARD/journal" | grep -v ' 0$')" '' \
		'every step of the kit has its answer'
	"$T0_BUILD/t0-sim" fit "$T0_CARD/card.jsonl" --number 1 --csv --quiet \
		>"$tmp/out"
	is "$(sed 's/=/ /' "$tmp/costs" | while read -r name v; do
		awk -F, -v name="$name" -v v="$v" '
			$1 == name { r = $4 / v; got = $2 " " $4 }
			END {
				if (r < 0.95 || r > 1.05)
					print name, got, "is", v
			}' "$tmp/out"
	done)" '' 'and the fit finds all 25 hidden costs within 5 %'
fi
plan_done
