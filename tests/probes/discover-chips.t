#!/bin/sh
# t0-probe discover on chips of every generation.  What exists says llvm-mc-19
# for that chip, slot by slot; what differs from it is listed here.  Some
# encodings of each chip, all of all chips with T0_SLOW.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

probe=${T0_BUILD:-build/rel}/t0-probe
dir=$tmp
unset T0_DB T0_DEVICE

command -v llvm-mc-19 >/dev/null || {
	skip 'llvm-mc-19 is not installed' 1
	plan_done
	exit
}
some='SOP1,SOPP,SMEM,VOP2,VOP3P,VOPDX,DS,GLOBAL,MUBUF,VSAMPLE,RESERVED'
[ -n "${T0_SLOW-}" ] && some=

# Slots whose instruction llvm-mc-19 has and which do not execute, by verdict.
# Stopping by design: s_rfe_b64, s_trap, s_code_end, s_sendmsghalt; the word 0;
# graphics among VOP3 of gfx10; what the device in software refuses by name.
stops11='SOP1:74=illegal SOPP:16=faults SOPP:31=illegal SOPP:55=hangs
	VOP2:0=illegal'
gws='DS:24=unproven DS:25=unproven DS:26=unproven DS:27=unproven
	DS:28=unproven DS:29=unproven DS:63=unproven'
stops10='SOP1:34=illegal SOPP:17=hangs SOPP:18=faults SOPP:31=illegal
	VOP2:0=illegal VOP3:512=illegal VOP3:513=illegal VOP3:514=illegal
	VOP3:834=illegal VOP3:835=illegal VOP3:858=illegal VOP1:65=unproven
	VOP3:449=unproven'
# Slots that execute and which llvm-mc-19 does not have.
more11='VOP1:102 VOP3:412 VOPDX:13 VOPDY:13'

# expected LIST: those of the encodings that run, sorted.
expected() {
	for s in $1; do
		case ",${some:-${s%%:*}}," in *",${s%%:*},"*) echo "$s" ;; esac
	done | LC_ALL=C sort | tr '\n' ' '
}

encodings() {
	echo "$some" | tr , '\n' | sed '/./s/^/--encoding /'
}

# chip NAME SLOTS STOPS MORE
chip() {
	csv=$dir/$1.csv
	# shellcheck disable=SC2046 # words
	"$probe" discover --device "soft:$1" --db "$dir/$1.db" -q --csv --deadline 1 \
		-o "$csv" $(encodings) 2>"$dir/err"
	is "$?" 0 "$1: discovery exits 0"
	[ -n "$some" ] || is "$(($(wc -l <"$csv") - 1))" "$2" \
		"$1: every slot of every encoding has a row"
	# Columns: encoding opcode name verdict signature reason expected
	# oracle, which is "" where it refuses.
	is "$(awk -F, 'NR > 1 && $7 != "decode-only" &&
		$8 !~ /^(|"")$/ && $4 != "executes" {
			print $1 ":" $2 "=" $4 }' "$csv" | LC_ALL=C sort |
		tr '\n' ' ')" "$(expected "$3")" \
		"$1: what llvm-mc-19 has executes"
	is "$(awk -F, 'NR > 1 && $8 == "\"\"" && $4 == "executes" {
			print $1 ":" $2 }' "$csv" | LC_ALL=C sort |
		tr '\n' ' ')" "$(expected "$4")" \
		"$1: what it has not does not execute"
	is "$(awk -F, 'NR > 1 && $4 == "executes" && $5 == "" { n++ }
		END { print n + 0 }' "$csv")" 0 \
		"$1: of what executes it is known what it changes"
	"$T0_BUILD/t0-results" sql "SELECT count(*) FROM v_latest_slots WHERE
		difference IS NOT NULL AND errata IS NULL" --db "$dir/$1.db" \
		--csv >"$dir/n"
	is "$(tail -n 1 "$dir/n" | tr -d '\r')" 0 \
		"$1: no difference is unexplained"
}

chip gfx1010 4743 "$stops10 $gws" ''
chip gfx1030 4743 "$stops10 $gws" ''
chip gfx1151 4403 "$stops11 $gws" "$more11"
chip gfx1201 4341 "$stops11 LDSDIR:1=unproven GLOBAL:115=unproven" 'VOP3:412'
if [ -n "${T0_SLOW-}" ]; then
	chip gfx1100 4403 "$stops11 $gws" "$more11"
	chip gfx1103 4403 "$stops11 $gws" "$more11"
	chip gfx1150 4403 "$stops11 $gws" "$more11"
	chip gfx1200 4341 "$stops11 LDSDIR:1=unproven GLOBAL:115=unproven" 'VOP3:412'
fi

# A database with many chips keeps them apart.
db=$dir/all.db
for c in gfx1030 gfx1201 gfx1030; do
	"$probe" discover --device "soft:$c" --db "$db" --encoding SOPC \
		--oracle none >"$dir/out.$c" 2>"$dir/err"
done
has "$dir/out.gfx1030" 'nothing changed' \
	'a chip is compared with the last run of the same chip'
"$T0_BUILD/t0-results" sql "SELECT gfx || '=' || count(*) FROM v_latest_slots
	WHERE verdict = 'executes' GROUP BY gfx" --db "$db" --csv >"$dir/n"
# s_cmp_*_f32, f16 and their negations are gfx12's: 28 more (RDNA4 ISA 16.4).
is "$(sed 1d "$dir/n" | tr -d '\r' | tr '\n' ' ')" 'gfx1030=18 gfx1201=46 ' \
	'each has its own rows'
plan_done
