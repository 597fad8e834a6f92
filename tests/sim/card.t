#!/bin/sh
# The kit for a card (kit.t) on one of other costs, which is found out, and what
# its file keeps to itself.  T0_SLOW=1 rehearses it against such a card with faults.
. tests/soft-run.sh

export T0_CARD="$tmp/kit"
card=scripts/card

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
