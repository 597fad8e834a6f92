#!/bin/sh
# t0-probe discover as a user meets it: a whole run on the soft device, a
# second one, a killed one, and everything that can be wrong with its inputs.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

probe=${T0_BUILD:-build/rel}/t0-probe
dir=$tmp
db=$dir/t0.db
export T0_DEVICE=soft
unset T0_DB

# slots_of FILE.csv ENCODING VERDICT: how many.
slots_of() {
	awk -F, -v e="$2" -v v="$3" '
		NR > 1 && (e == "" || $1 == e) && $4 == v { n++ }
		END { print n + 0 }' "$1"
}

# ---- the whole run, without and with a disassembler ----

"$probe" discover --db "$db" --oracle none >"$dir/out" 2>"$dir/err"
is "$?" 0 'a whole discovery exits 0'
has "$dir/err" 'device: soft' 'it says which device it took'
is "$(sed -n 1p "$dir/out")" 'No differences.' \
	'what was found is what the table says'
has "$dir/out" 'is the first of its kind' \
	'the first run has nothing to be compared with'
has "$dir/out" 's_code_end' 'an erratum explains s_code_end'

"$probe" discover --db "$db" --oracle none --csv -q -o "$dir/all.csv"
is "$?" 0 'a second run writes CSV'
is "$(($(wc -l <"$dir/all.csv") - 1))" 4403 'every slot has a row'
# Slots per encoding, from the widths of the opcode fields (RDNA3 ISA 15).
want='DS 256 EXP 1 FLAT 128 GLOBAL 128 LDSDIR 4 MIMG 256 MIMG_NSA 256'
want="$want MTBUF 16 MUBUF 256 RESERVED 51 SCRATCH 128 SEG3 128 SMEM 256"
want="$want SOP1 256 SOP2 96 SOPC 128 SOPK 29 SOPP 128 VINTERP 128 VOP1 256"
want="$want VOP2 62 VOP3 1024 VOP3P 128 VOPC 256 VOPDX 16 VOPDY 32"
got=$(awk -F, 'NR > 1 { n[$1]++ } END { for (e in n) print e, n[e] }' \
	"$dir/all.csv" | LC_ALL=C sort | tr '\n' ' ')
is "${got% }" "$want" 'every encoding has as many slots as opcodes'
# Instructions per encoding that gfx11 has; the rest are GWS, which the soft
# device lacks, graphics, and what stops a wave by design.
for line in SOP1:64 SOP2:52 SOPC:18 SOPK:27 SOPP:33 SMEM:14 VOP1:86 VOP2:46 \
	VOPC:190 VOP3:438 VOP3P:34 VOPDX:14 VOPDY:17 DS:116 FLAT:52 GLOBAL:55 \
	SCRATCH:22 MUBUF:79 MTBUF:16 SEG3:0 RESERVED:0 EXP:0; do
	is "$(slots_of "$dir/all.csv" "${line%:*}" executes)" "${line#*:}" \
		"${line%:*}: the number of slots that execute"
done
is "$(slots_of "$dir/all.csv" SEG3 illegal)" 128 \
	'the reserved flat segment is illegal throughout'
is "$(slots_of "$dir/all.csv" RESERVED illegal)" 51 \
	'reserved encodings are illegal throughout'
is "$(slots_of "$dir/all.csv" '' hangs)" 1 'one slot hangs: s_sendmsghalt'
is "$(slots_of "$dir/all.csv" '' faults)" 1 'one slot faults: s_trap'

for _ in first again; do
	"$probe" discover --db "$db" --oracle none -q --encoding SMEM >"$dir/out"
done
has "$dir/out" 'nothing changed' \
	'the same run again says that nothing changed'
"$T0_BUILD/t0-results" list --db "$db" >"$dir/out" 2>&1
has "$dir/out" 't0-probe discover' 't0-results lists the runs'

# ---- against llvm-mc ----

if command -v llvm-mc-19 >/dev/null; then
	"$probe" discover --db "$dir/l.db" -q --encoding VOP3 >"$dir/out"
	is "$?" 0 'a run that asks llvm-mc-19 exits 0'
	is "$(sed -n 1p "$dir/out")" 'No differences.' \
		'table, device and llvm-mc-19 agree but for the errata'
	"$probe" discover --db "$dir/l.db" -q --csv -o "$dir/l.csv"
	is "$("$T0_BUILD/t0-results" sql --db "$dir/l.db" --csv "SELECT count(*),
		sum(difference <> '' AND errata = '') FROM v_latest_slots" |
		tr -d '\r' | sed -n 2p)" 4403,0 'in all of them'
	# Columns: encoding opcode name verdict signature reason expected
	# oracle, which is "" where it refuses.  What it decodes and is not
	# graphics, by verdict:
	got=$(awk -F, 'NR > 1 && $8 !~ /^(|"")$/ && $7 != "decode-only" {
			n[$4]++ } END { printf "%d %d %d %d %d", n["executes"],
			n["unproven"], n["illegal"], n["faults"], n["hangs"] }
		' "$dir/l.csv")
	is "$got" '1369 7 3 1 1' \
		'all that llvm-mc-19 decodes executes, but for GWS and errata'
	got=$(awk -F, 'NR > 1 && $8 == "\"\"" && $4 == "executes" {
			printf "%s:%s ", $1, $2 }' "$dir/l.csv")
	is "$got" 'VOP1:102 VOP3:412 VOPDX:13 VOPDY:13 ' \
		'what it refuses is illegal, but for the errata'
else
	for n in 'exits 0' agreement 'all of them' 'what it decodes' \
		'what it refuses'; do
		skip "llvm-mc-19 is not installed: $n"
	done
fi
"$probe" discover --db "$dir/o.db" --encoding LDSDIR \
	--oracle no-such-tool >"$dir/out" 2>"$dir/err"
is "$?" 0 'a disassembler that is not there is not needed'
has "$dir/err" 'no-such-tool is not installed' 'and that is said'
mkdir -m 755 "$dir/closed" "$dir/closed/in"
chmod 0 "$dir/closed"
PATH="$PATH:$dir/closed/in" "$probe" discover --db "$dir/o.db" \
	--encoding LDSDIR --oracle no-such-tool >"$dir/out" 2>"$dir/err"
is "$?" 0 'nor where a folder of PATH is closed'
chmod 700 "$dir/closed"

# ---- the emulation as second opinion ----

"$probe" discover --db "$dir/s.db" --encoding VOP2 --oracle none -q \
	--second-opinion --csv -o "$dir/s.csv"
is "$(awk -F, 'NR > 1 && $9 == 1 { n++ } END { print n + 0 }' "$dir/s.csv")" \
	46 'the soft device agrees with itself on all of VOP2'

# ---- a slot that hangs, a run that is killed ----

"$probe" discover --db "$dir/h.db" --encoding SOPP --oracle none -q \
	--replace SOPP:0=0xbfa0ffff --deadline 0.2 --csv -o "$dir/h.csv"
is "$?" 0 'a run with an endless loop in it completes'
is "$(slots_of "$dir/h.csv" SOPP hangs)" 2 'the loop costs itself only'
is "$(slots_of "$dir/h.csv" SOPP executes)" 32 'all others are as before'
has "$dir/h.csv" 'the table knows it' 'and it is a difference'

# It gets stuck at s_wakeup, in the middle, and is killed there.
set -- "$probe" discover --db "$dir/k.db" --oracle none --batch 64 \
	--replace SOPP:52=0xbfa0ffff
"$@" -q --deadline 60 >"$dir/out" 2>&1 &
pid=$!
# Stuck: the database, which every child adds to, stands still.
size=none
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	sleep 2
	now=$(wc -c "$dir"/k.db* 2>/dev/null | tail -n 1)
	[ "$now" = "$size" ] && break
	size=$now
done
kill -9 $pid
wait $pid 2>/dev/null
"$@" --deadline 0.2 >"$dir/out" 2>"$dir/err"
is "$?" 0 'the same command goes on with a killed run'
has "$dir/err" 'going on with run 1' 'and says so'
todo=$(sed -n 's/.*run 1: \([0-9]*\) slots to do.*/\1/p' "$dir/err")
ok "only what was missing is run ($todo slots)" [ "${todo:-9999}" -lt 4000 ]
is "$(awk '$1 == "total" { print $2, $6 }' "$dir/out")" '4403 2' \
	'every slot has its verdict, and the loop hangs'
"$T0_BUILD/t0-results" list --db "$dir/k.db" >"$dir/list" 2>&1
is "$(grep -c 't0-probe discover' "$dir/list")" 1 'it is one run'

# The same, but asked to stop.
"$probe" discover --db "$dir/i.db" --oracle none --encoding SOPP -q \
	--replace SOPP:0=0xbfa0ffff --deadline 60 2>"$dir/err" &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
is "$?" 143 'a run that is asked to stop exits 128 + 15'
has "$dir/err" 'stopped by SIGTERM: the same command goes on with run 1' \
	'and says what to do'
"$probe" discover --db "$dir/i.db" --oracle none --encoding SOPP \
	--replace SOPP:0=0xbfa0ffff --deadline 0.2 >"$dir/out" 2>"$dir/err"
has "$dir/err" 'going on with run 1' 'and can be gone on with'

# ---- one slot ----

"$probe" discover --slot SOPK:0 --csv -q >"$dir/out"
is "$(sed -n 's/^s0,,[0-9a-f]*,//p' "$dir/out" | tr -d '\r')" 00007123 \
	'--slot prints the register that s_movk_i32 changed'
# s_add_u32 s0, 1, 2: words made by hand.
"$probe" discover --slot SOP2:0 --replace SOP2:0=0x80008281 --json -q \
	>"$dir/out"
is "$(sed -n 's/.*"where": *"s0".*"after": *"\([0-9a-f]*\)".*/\1/p' \
	"$dir/out")" 00000003 '1 + 2 is 3'
"$probe" discover --list --encoding VOPDX --csv >"$dir/out"
is "$(($(wc -l <"$dir/out") - 1))" 16 '--list lists without running'

# ---- bad input ----

# refuses CODE TEXT NAME ARGUMENTS...
refuses() {
	code=$1 text=$2 name=$3
	shift 3
	"$probe" "$@" >"$dir/out" 2>"$dir/err"
	is "$?" "$code" "$name: exit code"
	has "$dir/err" "$text" "$name: message"
}
refuses 2 'wanted discover' 'no command'
refuses 2 'there are SOP1 SOP2' 'an unknown encoding' \
	discover --encoding VOP9 --db "$dir/x.db"
refuses 2 'wanted ENCODING:OPCODE' 'a malformed slot' discover --slot VOP2
refuses 2 'there is none' 'a slot that is not there' discover --slot VOP2:99
refuses 2 'wanted ENCODING:OPCODE=WORD' 'a malformed replacement' \
	discover --replace VOP2:1 --db "$dir/x.db"
refuses 2 'option --deadline: "0"' 'no deadline' discover --deadline 0
refuses 2 'at most 60 seconds' 'a deadline too far' discover --deadline 61
refuses 77 'kfd' 'a device that is not there' \
	discover --device kfd:99 --db "$dir/x.db" --encoding EXP
refuses 2 "$dir/no/such" 'a database where no folder is' \
	discover --db "$dir/no/such/t0.db" --encoding EXP
echo 'this is no database, but a text of more than one hundred bytes, so that
sqlite has a whole header to look at and to refuse' >"$dir/text.db"
refuses 2 "$dir/text.db" 'a file that is no database' \
	discover --db "$dir/text.db" --encoding EXP
if [ "$(id -u)" = 0 ]; then
	skip 'permissions do not bind root' 2
else
	mkdir "$dir/ro" && chmod 555 "$dir/ro"
	refuses 2 "$dir/ro" 'a folder that may not be written' \
		discover --db "$dir/ro/t0.db" --encoding EXP
fi
refuses 2 '/dev/full' 'a full disk for the result' \
	discover --list -o /dev/full

plan_done
