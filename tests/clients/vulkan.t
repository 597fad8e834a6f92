#!/bin/sh
# Vulkan: Debian's Mesa (RADV, with its compiler ACO) as installed, on the device
# in software.
. tests/clients/clients.sh
radv=/usr/share/vulkan/icd.d/radeon_icd.x86_64.json
[ -e $radv ] || skip_all "$radv is not there: mesa-vulkan-drivers"
[ -e /usr/include/vulkan/vulkan.h ] || skip_all 'libvulkan-dev is not installed'
for program in cc glslangValidator; do
	command -v $program >/dev/null || skip_all "$program is not installed"
done
vulkan() { timeout -k 5 120 "$soft" run -q -- env VK_ICD_FILENAMES=$radv "$@"; }

if need vulkaninfo; then
	exits 0 'vulkaninfo runs' vulkan vulkaninfo --summary
	has "$tmp/out" 'RADV GFX1100' 'and knows the card'
	has "$tmp/out" '0x744c' 'by its identity'
fi
for name in shared floats atomics branches subgroups; do
	exits 0 "$name: a shader" glslangValidator -V --target-env vulkan1.2 \
		"-D$(echo $name | tr a-z A-Z)" tests/data/clients/vulkan.comp \
		-o "$tmp/$name.spv"
done
ok 'a program compiles' cc -O1 -o "$tmp/vulkan" tests/data/clients/vulkan.c \
	-lvulkan -lm
exits 0 'it runs' vulkan "$tmp/vulkan" "$tmp"
lines "$tmp/out"
is "$(grep -c '^good' "$tmp/out")" 11 'to its end'
is "$(grep 'refused: \(queue\|ioctl AMDGPU\)' "$tmp/err")" '' \
	'no packet was refused'
plan_done
