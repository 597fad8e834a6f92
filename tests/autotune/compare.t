#!/bin/sh
# t0-tune compare: a product that clang compiled from plain C beside our winner;
# what is wrong is told, and the figures follow from the times.
. "$T0_SRC/tests/tap.sh"
tune=$T0_BUILD/t0-tune sim=$T0_BUILD/t0-sim
data=$T0_SRC/tests/data/kernels
export T0_DEVICE=soft
cd "$tmp" || exit 2
if ! command -v clang-19 >/dev/null || ! command -v ld.lld-19 >/dev/null; then
	echo '1..0 # SKIP clang-19 and ld.lld-19 are not installed'
	exit 0
fi
# C = A B and, as it stands in the folder, C += A B.
sed 's/\] += sum/] = sum/' "$data/sgemm.cl" >plain.cl
ok 'the source was changed' sh -c '! cmp -s "$1" plain.cl' - "$data/sgemm.cl"
exits 0 'it is compiled' clang-19 -x cl -cl-std=CL2.0 -O2 -I"$data" \
	-target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib plain.cl -o plain.co

compare() { # OBJECT M N K OPTION...
	object=$1 m=$2 n=$3 k=$4
	shift 4
	"$tune" compare --csv --db a.db --shapes "${m}x${n}x$k" --dtype f32 \
		"$object" sgemm "buf:$((m * k)):f32" "buf:$((k * n)):f32" \
		"buf:$((m * n)):f32" "u32:$m" "u32:$n" "u32:$k" \
		--grid "$(((n + 15) / 16 * 16)),$(((m + 15) / 16 * 16))" \
		--block 16,16 "$@"
}
cell() { # WHO COLUMN of the table in `out`
	tr -d '\r' <out | awk -F, -v who="$1" -v column="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
		$1 == who { print $at }'
}
exits 1 'without a winner' compare plain.co 64 48 96
is "$(cell theirs verdict)" right 'theirs is right'
is "$(cell ours verdict)" '' 'and alone'
has err 'no winner of ours to compare with' 'which is said'
exits 0 'a winner is found' "$tune" --shapes 64x48x96 --dtype f32 \
	--budget quick --db a.db --csv
winner=$(cell 64x48x96 best) time=$(cell 64x48x96 time_us)
exits 0 'with a winner' compare plain.co 64 48 96
is "$(cell theirs verdict) $(cell ours verdict)" 'right right' 'both are right'
is "$(cell ours what) $(cell ours time_us)" "$winner $time" \
	'ours is the winner, as fast as it was found'
is "$(cell ours times_ours)" 1.000 'which is the measure'
# As far as both decimals of a time go.
ok 'theirs in units of ours' awk -v t="$(cell theirs time_us)" -v o="$time" \
	-v r="$(cell theirs times_ours)" 'BEGIN {
		exit !(r > (t - .006) / (o + .006) && r < (t + .006) / (o - .006)) }'
ok 'two operations a product' awk -v t="$(cell theirs time_us)" \
	-v f="$(cell theirs TFLOPS)" 'BEGIN {
		w = 2 * 64 * 48 * 96 / t / 1e6; exit !(f > w - .006 && f < w + .006) }'
# 96 CUs of 2 SIMDs, 32 lanes, 2 FMA of 2 operations at once.
ok 'of the peak in f32' awk -v f="$(cell ours TFLOPS)" \
	-v p="$(cell ours peak_percent)" -v mhz="$(cell ours clock_MHz)" 'BEGIN {
		w = 100 * f * 1e6 / (96 * 2 * 32 * 2 * 2 * mhz)
		exit !(p > w - .15 && p < w + .15) }'
# That of kernels of microseconds, less by the little that they load a card.
ok 'at the same clock, but for what they load' awk \
	-v t="$(cell theirs clock_MHz)" -v o="$(cell ours clock_MHz)" 'BEGIN {
		exit !(t > .99 * o && t < 1.01 * o && o <= 3000 && o > 2900) }'
theirs=$(cell theirs time_us)
"$sim" -q --json --db a.db plain.co sgemm buf:6144:f32 buf:4608:f32 \
	buf:3072:f32 u32:64 u32:48 u32:96 --grid 48,64 --block 16,16 >out
ok 't0-sim says the same time' awk -v t="$theirs" -v s="$(sed -n \
	's/.*"gpu".*//;s/^ *"time_s": \([0-9.e-]*\),$/\1/p' out | tail -n 1)" \
	'BEGIN { d = t - s * 1e6; exit !(d > -.006 && d < .006) }'

# ---- what is wrong ----
exits 1 'one that adds to C' compare "$data/sgemm.co" 64 48 96
is "$(cell theirs verdict)" wrong 'is wrong'
has err 'theirs is wrong: element (' 'and says where'
exits 1 'half of the grid' "$tune" compare --csv --db a.db --shapes 64x48x96 \
	--dtype f32 plain.co buf:6144:f32 buf:4608:f32 buf:3072:f32 u32:64 \
	u32:48 u32:96 --grid 48,32 --block 16,16
is "$(cell theirs verdict)" wrong 'is wrong'
exits 1 'another layout' compare plain.co 64 48 96 --layout nt
is "$(cell theirs verdict)" wrong 'is wrong'
exits 1 'reading far beyond A' "$tune" compare --csv --db a.db --dtype f32 \
	--shapes 64x48x96 plain.co buf:6144:f32 buf:4608:f32 buf:3072:f32 \
	u32:64 u32:48 u32:20000 --grid 48,64 --block 16,16
has err 'theirs is wrong: ' 'is wrong'

# ---- refused ----
exits 2 'a matrix that is too small' "$tune" compare --db a.db --dtype f32 \
	--shapes 64x48x96 plain.co buf:6143:f32 buf:4608:f32 buf:3072:f32 \
	u32:64 u32:48 u32:96
has err "'buf:6143:f32' is A of the product: 24572 bytes, wanted at least 24576" \
	'is named'
exits 2 'two products' "$tune" compare --db a.db --shapes 64x48x96,8x8x8 \
	plain.co buf:1
has err '2 products' 'are one too many'
exits 2 'no product' "$tune" compare --db a.db plain.co buf:1
exits 2 'an epilogue' compare plain.co 64 48 96 --epilogue relu
has err 'judged plain' 'is refused'
exits 2 'cold caches' compare plain.co 64 48 96 --caches cold
exits 2 'the host' compare plain.co 64 48 96 --device host
plan_done
