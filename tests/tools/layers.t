#!/bin/sh
# Every header compiles alone and speaks of what there is, rooms use only what is
# below them, and functions are short and named.
. tests/tap.sh

exits 0 'every header compiles alone' \
	make --no-print-directory check-headers

# In comments of headers: functions as name(), files by their path.
find base isa results kfd compiler probes autotune engine -name '*.[chS]' \
	-o -name '*.def' >"$tmp/sources"
perl -0777 -e '
	my (%seen, @said);
	for my $file (map { chomp; split /\n/ } <STDIN>) {
		open my $in, "<", $file or next;
		my $text = <$in>;
		while ($file =~ /\.h$/ && $text =~ m{/\*.*?\*/}gs) {
			my $about = $&;
			push @said, [$file, $1] while $about =~ /\b(\w+)\(\)/g;
			while ($about =~ m{\b(\w+/[\w/-]+\.[a-z]+)\b}g) {
				-e $1 or print "$file: there is no $1\n";
			}
		}
		$text =~ s{/\*.*?\*/}{}gs;
		$seen{$1} = 1 while $text =~ /\b([A-Za-z_]\w*)/g;
	}
	$seen{$$_[1]} or print "$$_[0]: there is no $$_[1]()\n" for @said;
' <"$tmp/sources" >"$tmp/wrong"
is "$(cat "$tmp/wrong")" '' 'headers speak of what there is'

# In the documents: `name()`, and `folder/file` or `folder/room` in back quotes.
for doc in README.md ARCHITECTURE.md; do
	grep -oE '`[a-z0-9_]+\(\)' "$doc" | tr -d '`()' | sort -u |
		while read -r name; do
			grep -rqw --include='*.[ch]' -e "$name" base isa results \
				kfd compiler probes autotune engine tests ||
				echo "$doc: there is no $name()"
		done
	grep -oE '`[a-z0-9_]+/[A-Za-z0-9_./-]*[a-z0-9]`' "$doc" | tr -d '\140' |
		grep -v '^build/' | sort -u | while read -r path; do
			[ -e "$path" ] || echo "$doc: there is no $path"
		done
done >"$tmp/wrong"
is "$(cat "$tmp/wrong")" '' 'documents speak of what there is'

# ---- rooms use what the table of GNUmakefile lets them use ----
make --no-print-directory print-rooms >"$tmp/table"
is "$(scripts/layers "$T0_BUILD" <"$tmp/table")" '' \
	'no room includes or calls what is above it'

# The lowest rooms with one line more: base includes, or calls, what is above it.
grep -E '^(base|isa/tables|results/(stats|db)) ' "$tmp/table" >"$tmp/few"
mkdir "$tmp/plant" "$tmp/built"
for folder in isa results kfd compiler probes autotune engine; do
	ln -s "$PWD/$folder" "$tmp/plant/"
	ln -s "$T0_BUILD/$folder" "$tmp/built/"
done
cp -r base "$tmp/plant/"
cp -r "$T0_BUILD/base" "$tmp/built/"
sed -i '$a #include "isa/tables/tables.h"' "$tmp/plant/base/err.c"
layers=$PWD/scripts/layers
(cd "$tmp/plant" && "$layers" "$tmp/built" <"$tmp/few") >"$tmp/out"
is "$(cat "$tmp/out")" "base/err.c:$(wc -l <"$tmp/plant/base/err.c"): includes \
isa/tables/tables.h: base may not use isa/tables" 'an include upwards is found'
cp base/err.c "$tmp/plant/base/"
printf '%s\n' 'int res_open(void);' 'int planted(void);' \
	'int planted(void) { return res_open(); }' >"$tmp/plant/base/planted.c"
${CC:-cc} -c -o "$tmp/built/base/planted.o" "$tmp/plant/base/planted.c"
(cd "$tmp/plant" && "$layers" "$tmp/built" <"$tmp/few") >"$tmp/out"
is "$(cat "$tmp/out")" "$tmp/built/base/planted.o: calls res_open of \
results/db: base may not use results/db" 'a call upwards is found'

# ---- a folder can be taken in ----
is "$(find base isa results kfd compiler probes autotune engine tests \
	-name '*.c' | sed 's,/[^/]*$,,' | sort | uniq -c | awk '$1 > 30')" '' 'no folder holds more than 30 C files'

# ---- names and lengths (CONTRIBUTING.md, "Style") ----
if git rev-parse >/dev/null 2>&1; then
	scripts/measures >"$tmp/measures"
	is "$(sed -n 's/^  above 100 lines *//p' "$tmp/measures")" 0 \
		'no function has more than 100 lines'
	is "$(sed -n 's/^  one word in more than three files *\([0-9]*\).*/\1/p' \
		"$tmp/measures")" 0 'no word names functions of four files'
	is "$(awk '/^static functions named by one word/ { print ($(NF - 1) <= 5) }' \
		"$tmp/measures")" 1 'at most 5 % of functions are named by one word'
else
	skip 'no git here, which lists the files to measure'
fi
plan_done
