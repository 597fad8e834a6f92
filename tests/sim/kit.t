#!/bin/sh
# The kit for the first day with a card: its list, and how it gets over hangs and
# reboots.
. tests/tap.sh

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
plan_done
