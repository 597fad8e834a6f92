# Sourced by tests of `t0-soft run`: $soft, and a TMPDIR in memory, as what a
# program maps lies in files there.
# shellcheck shell=sh
. tests/tap.sh

soft=$T0_BUILD/t0-soft
[ -e "$T0_BUILD/libt0-soft-preload.so" ] ||
	skip_all 'this build mode has no adapter (sanitizers cannot be preloaded)'
unset T0_SOFT_ROOT T0_DEVICE T0_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES \
	HSA_OVERRIDE_GFX_VERSION
if [ -w /dev/shm ]; then
	TMPDIR=$(mktemp -d -p /dev/shm) || exit 2
	trap 'rm -rf "$tmp" "$TMPDIR"' EXIT
else
	TMPDIR=$tmp
fi
export TMPDIR

# run PROGRAM...: under the soft card, a minute at most.
run() {
	timeout -k 5 60 "$soft" run "$@"
}
