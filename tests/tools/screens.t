#!/bin/sh
# What every command shows on a terminal of 80 columns: no line is longer, and
# the text is that of tests/data/screens, figures masked.  Those who changed a
# text write it again with `tests/tools/screens.t --write`, and look at it.
. tests/tap.sh
unset T0_DB NO_COLOR CLICOLOR_FORCE T0_VERBOSE COLUMNS
export T0_DEVICE=soft NO_COLOR=1 TERM=xterm LC_ALL=C.UTF-8
export PATH="$T0_BUILD:$PATH" T0_CACHE="$tmp/cache" T0_DB=runs.db
command -v script >/dev/null || skip_all 'no script(1), which makes a terminal'
screens=$PWD/tests/data/screens
write=
[ "${1-}" != --write ] || write=1

room=$tmp/room
mkdir "$room"
cp tests/data/kernels/saxpy.co tests/data/kernels/sgemm.co \
	tests/data/check/race.co tests/data/ssa/nest.ssa "$room/"
awk -f tests/data/results/fixture.awk >"$room/fixture.jsonl"
head -c 600 LICENSE >"$room/prompt.txt"
echo 's_endpgm' >"$room/code.txt"
cat >"$room/rows.csv" <<'END'
source_doc,system,M,N,K,tile_m,tile_n,tile_k,split_k,wg_mode,other,tflops
a book,Triton,1024,1024,1024,128,128,32,,,reliability=good,50
a book,Triton,2048,2048,2048,128,128,32,,,reliability=good,75
END
printf 'name,value,unit,source\nvalu.latency,5,cycle,a book\n' >"$room/costs.csv"
cd "$room" || exit 2
t0-results import -q --db fixture.db fixture.jsonl
t0-results baseline accept -q --db fixture.db 4 >/dev/null 2>&1

# masked: a figure is #, a unit that goes with it the basic one, blanks between
# columns are two; of what is drawn over itself the last is left.
masked() {
	iconv -c -f UTF-8 -t UTF-8 | perl -CSD -wpe '
		s/^.*\r(?=[^\r\n])//; s/\r//g; s/\033\[[0-9]*[A-Za-z]//g;
		s/\d{4}-\d\d-\d\dT[\d:]+Z/DATE/g; s/\b0x[0-9a-f]+\b/#/g;
		s/\b(?=[a-f]*\d)[0-9a-f]{12,}\b/#/g;
		s/(?<![\w.])[-+±]?\d+(\.\d+)?(e[-+]?\d+)?(?![\w.]*\w)/#/g;
		s/# +(ns|\x{b5}s|ms|min)\b/# s/g; s/# +[KMGT]iB\b/# B/g;
		s/# +[kMGT](B|FLOP|op)\/s/# $1\/s/g; s/\bv[234], #/vN, #/; s/\bAVX\S*( \S+)?/UNIT/;
		s/[:,] # tokens\/s$//; s/(?<=\S)  +/  /g; s/^ +(?=#)//; s/ +$//'
}

# at80 COMMAND: what it prints on a terminal of 80 columns
at80() {
	script -qec "stty cols 80; $1" /dev/null </dev/null
}

while read -r name kept command; do
	case $name in '' | '#'*) continue ;; esac
	case $command in 't0-soft run '*)
		[ -e "$T0_BUILD/libt0-soft-preload.so" ] || {
			skip "$command: sanitizers cannot be preloaded" 2
			continue
		}
	esac
	at80 "$command" >"$tmp/raw" 2>&1
	sed 's/\x1b\[[0-9]*[A-Za-z]//g' "$tmp/raw" | tr '\r' '\n' >"$tmp/out"
	is "$(awk 'length > 80' "$tmp/out")" '' "$command fits"
	[ "$kept" != device ] || [ ! -e /dev/kfd ] || kept=width
	[ "$kept" != width ] || continue
	# Messages are folded 2 columns in, or 4, and cells below themselves.
	[ "$kept" != joined ] ||
		perl -i -0777 -pe 's/\r?\n( {2}| {4}| {20,})(?=\S)/ /g' "$tmp/raw"
	{
		echo "\$ $command"
		masked <"$tmp/raw"
	} >"$tmp/text"
	case $kept in [0-9]*) sed -i "$((kept + 1))q" "$tmp/text" ;; esac
	[ -z "$write" ] || cp "$tmp/text" "$screens/$name.txt"
	ok "$command shows what is expected" sh -c 'diff -u "$1" "$2" >&2' - \
		"$screens/$name.txt" "$tmp/text"
done <"$screens/commands"

# What is kept is of commands that there are.
[ -z "$write" ] || for text in "$screens"/*.txt; do
	name=${text##*/}
	grep -q "^${name%.txt}[[:blank:]]*[^w[:blank:]]" "$screens/commands" ||
		rm "$text"
done
for text in "$screens"/*.txt; do
	name=${text##*/}
	grep -q "^${name%.txt}[[:blank:]]" "$screens/commands" ||
		echo "$text"
done >"$tmp/unused"
is "$(cat "$tmp/unused")" '' 'every text has a command'
plan_done
