#!/bin/sh
# Every header compiles alone and speaks of what there is, and folders include
# downwards only.
. tests/tap.sh

MAKEFLAGS= MFLAGS= exits 0 'every header compiles alone' \
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

# below FOLDER ALLOWED...: what it may include (DESIGN.md, "Folders")
below() {
	folder=$1
	shift
	[ -d "$folder" ] || { skip "there is no $folder/ yet"; return; }
	allowed=$(echo "$@" | tr ' ' '|')
	find "$folder" -name '*.[ch]' -o -name '*.def' | sort >"$tmp/files"
	xargs grep -nE '^#[[:space:]]*include "' <"$tmp/files" >"$tmp/includes"
	grep -vE "include \"($allowed)/" "$tmp/includes" >"$tmp/wrong"
	is "$(cat "$tmp/wrong")" '' "$folder includes only $*"
}
below base base
below isa isa base
below results results base
below kfd kfd isa base
below compiler compiler results isa base
below probes probes kfd compiler results isa base
below autotune autotune probes kfd compiler results isa base
below engine engine autotune probes kfd compiler results isa base
plan_done
