#!/bin/sh
# kfd/abi.h against the kernel's header, which the product does not use: every
# ioctl that T0 makes or answers has its number, size, fields and flags.
. tests/tap.sh

cc=$(command -v gcc || command -v clang-19 || command -v cc) ||
	skip_all 'there is no C compiler'
if ! [ -e /usr/include/linux/kfd_ioctl.h ]; then
	diag 'SKIPPED: linux-libc-dev has no linux/kfd_ioctl.h here'
	skip_all 'there is no linux/kfd_ioctl.h'
fi
# Of drm/drm.h, which Debian keeps elsewhere, it needs the types alone.
mkdir "$tmp/drm"
echo '#include <linux/types.h>' >"$tmp/drm/drm.h"
ok 'both headers compile together' "$cc" -std=gnu11 -I. -I"$tmp" \
	-o "$tmp/uapi" tests/data/abi/uapi.c
exits 0 'they can be compared' "$tmp/uapi"
cp "$tmp/out" "$tmp/list"
while read -r result name; do
	[ "$result" = version ] || is "$result" good "$name"
done <"$tmp/list"
diag "compared with KFD $(sed -n 's/^version //p' "$tmp/list")"
plan_done
