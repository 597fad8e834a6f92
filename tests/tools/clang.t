#!/bin/sh
# clang lacks some of what gcc has for vectors: the sources that use them are
# understood by both.
. tests/tap.sh
cd "$T0_SRC" || exit 2
if ! command -v clang-19 >/dev/null; then
	skip 'no clang-19, so it is not asked what it understands'
	plan_done
fi
# pkg-config prints a list of options.
# shellcheck disable=SC2046
for source in $(find engine autotune kfd -name '*_simd.c' | sort); do
	for level in ${T0_SLOW:+v2} v4; do
		exits 0 "$source, $level" clang-19 -std=gnu11 -D_GNU_SOURCE \
			-I. $(pkg-config --cflags libdrm) -fsyntax-only \
			-march=x86-64-$level -DSIMD_LEVEL=$level "$source"
	done
done
plan_done
