#!/bin/sh
# A model learns something real: of the King James Bible, whose last tenth it has
# not seen, it knows more than xz and zstd that were given the rest.  Half an
# hour on two processors:
#
#	make build/rel/t0-qwen3 && T0_SLOW=1 T0_BUILD=$PWD/build/rel T0_SRC=$PWD \
#		sh tests/train/learns.t
#
# The text is that of Debian's bible-kjv-text 4.38, without the names of verses:
# 4.1 MB of one language, with hardly a long phrase that stands there twice.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
[ -n "${T0_SLOW-}" ] || skip_all 'half an hour of training: T0_SLOW=1 runs it'
case $T0_BUILD in
*/asan | */tsan | */cov | */dbg) skip_all 'this build is too slow to learn in time' ;;
esac
for program in bible xz zstd; do
	command -v $program >/dev/null || skip_all \
		"no $program, so there is no text, or nothing to compare with: apt-get install bible-kjv xz-utils zstd"
done

# ---- the text ----
bible -f Gen1:1-Rev22:21 </dev/null | sed 's/^[^ ]* //' >"$tmp/text"
is "$(sha256sum <"$tmp/text" | cut -d ' ' -f 1)" \
	b5c4940bcfeee072c0935b5200d0f9d88a00a0199cb0961d16133458fcdfae5d \
	'the text is that of bible-kjv-text 4.38'
# The last tenth is held out, but for verses that the rest has nearly so: those
# of whose runs of eight words a quarter stands there.
LC_ALL=C awk -v train="$tmp/train" -v held="$tmp/held" '
	function known(line, ask, n, i, k, run, all, hit, w) {
		n = split(tolower(line), w, /[^a-z]+/)
		for (i = 1; i + 7 <= n; i++) {
			run = w[i]
			for (k = 1; k < 8; k++) run = run " " w[i + k]
			all++
			if (ask) hit += run in seen
			else seen[run] = 1
		}
		return all ? hit / all : 0
	}
	{ line[NR] = $0; bytes += length($0) + 1 }
	END {
		for (i = 1; i <= NR; i++) {
			at += length(line[i]) + 1
			if (at <= .9 * bytes) {
				known(line[i], 0)
				print line[i] >train
			} else if (known(line[i], 1) < .25)
				print line[i] >held
			else
				left_out++
		}
		print left_out " verses are left out: the rest has them nearly so"
	}' "$tmp/text" | sed 's/^/# /' >&2
bytes=$(wc -c <"$tmp/held")
ok 'a tenth is held out' [ "$bytes" -gt 400000 ]
# What two texts share over 80 bytes holds a whole block of 40 of the first.
perl -e '
	local $/;
	my ($train, $held) = map { open my $in, "<", $_ or die; <$in> } @ARGV;
	my (%at, $most);
	for (my $i = 0; $i + 40 <= length $train; $i += 40) {
		push @{$at{substr $train, $i, 40}}, $i;
	}
	for my $i (0 .. length($held) - 40) {
		for my $from (@{$at{substr $held, $i, 40} // []}) {
			my ($low, $high) = (0, 40);
			$low++ while $low < $i && $low < $from &&
				substr($train, $from - $low - 1, 1) eq
				substr($held, $i - $low - 1, 1);
			$high++ while $i + $high < length $held &&
				$from + $high < length $train &&
				substr($train, $from + $high, 1) eq
				substr($held, $i + $high, 1);
			$most = $low + $high if $low + $high > ($most // 0);
		}
	}
	print $most // 0, "\n"' "$tmp/train" "$tmp/held" >"$tmp/shared"
diag "the longest that both parts share: $(cat "$tmp/shared") bytes"
ok 'the border has no near-duplicates: under 80 bytes in a row' \
	[ "$(cat "$tmp/shared")" -lt 80 ]

# ---- what compressors know ----
# bits NAME COMMAND...: bits per byte of the held-out part behind the other.
cat "$tmp/train" "$tmp/held" >"$tmp/both"
bits() {
	name=$1
	shift
	"$@" <"$tmp/both" | wc -c >"$tmp/all"
	"$@" <"$tmp/train" | wc -c >"$tmp/known"
	awk -v all="$(cat "$tmp/all")" -v known="$(cat "$tmp/known")" \
		-v bytes="$bytes" 'BEGIN { print 8 * (all - known) / bytes }' \
		>"$tmp/$name"
	diag "$name: $(cat "$tmp/$name") bits per byte"
	ok "$name compresses it" awk "BEGIN { x = $(cat "$tmp/$name")
		exit !(x > 1 && x < 3) }"
}
bits xz xz -9e -c
bits zstd zstd -q --ultra -22 --long=31 -c

# ---- what is learnt ----
timeout 1500 "$q" train --data "$tmp/train" --valid "$tmp/held" --layers 4 \
	--hidden 192 --heads 3 --kv-heads 1 --head-dim 64 --ffn 512 --vocab 2048 \
	--length 256 --rows 8 --steps 2200 --optimizer muon --rate 0.02 \
	--schedule linear --rate-end 0 --eval-every 220 --threads 2 \
	"$tmp/learnt" >"$tmp/out" 2>"$tmp/err"
status=$?
sed 's/^/# /' "$tmp/err" >&2
# What is best stays in the folder when the time is over.
[ $status != 124 ] || diag 'the 25 minutes were over before the last step'
ok 'it learns, for 25 minutes at most' [ $((status % 124)) = 0 ]
ok 'a model of at most 10 M parameters' awk '/M parameters/ { m = $2 }
	END { exit !(m > 0 && m <= 10) }' "$tmp/err"
best=$(sed 1d "$tmp/learnt/log.csv" | cut -d, -f 7 | sort -g | head -n 1)
diag "the model: ${best:=9} bits per byte"
# All bytes are counted: tokens, their loss and the bits give them back.
tokens=$(sed -n 's/.* and \([0-9]*\) held out;.*/\1/p' "$tmp/err")
ok 'its bits are of every byte held out' awk -F, -v tokens="$tokens" \
	-v bytes="$bytes" 'NR == 2 {
		d = (tokens - 1) * $6 / log(2) / $7 - bytes
		exit !(d < 1 && d > -16) }' "$tmp/learnt/log.csv"
for name in xz zstd; do
	ok "it knows the held-out tenth better than $name" \
		awk "BEGIN { exit !($best < $(cat "$tmp/$name")) }"
done
plan_done
