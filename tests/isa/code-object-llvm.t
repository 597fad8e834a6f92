#!/bin/sh
# The kernels and arguments that t0-run --list reads, against what
# llvm-readelf-19 prints of the same files.
run="$T0_BUILD/t0-run"
data="$T0_SRC/tests/data/kernels"
echo "TAP version 13"
if ! command -v llvm-readelf-19 >/dev/null; then
	echo "1..0 # SKIP llvm-readelf-19 is not installed"
	exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0

# The note -> kernel,argument,kind,name,offset,bytes,lds,scratch,wave.
# Keys come sorted, so a kernel's own fields follow its arguments.
from_llvm() {
	llvm-readelf-19 -n "$1" | awk '
	function flush_arg() {
		if (kind != "" && kind !~ /^hidden_/)
			row[rows++] = kind "," name "," offset "," size
		kind = name = offset = size = ""
	}
	{ value = $0; sub(/^[^:]*: */, "", value); sub(/^!str /, "", value)
	  gsub(/\047/, "", value) }
	/^      - \./ { flush_arg() }
	/^      *(- )?\.name:/ && !/^    \.name/ { name = value }
	/\.offset:/ { offset = value }
	/\.size:/ { size = value }
	/\.value_kind:/ { kind = value }
	/^    \.group_segment_fixed_size:/ { flush_arg(); lds = value }
	/^    \.name:/ { kernel = value }
	/^    \.private_segment_fixed_size:/ { scratch = value }
	/^    \.wavefront_size:/ {
		for (i = 0; i < rows; i++)
			print kernel "," i "," row[i] "," lds "," scratch "," value
		rows = 0
	}' | sort
}

from_t0() {
	"$run" --list --csv "$1" | tr -d '\r' | awk -F , 'NR > 1 {
		print $1 "," $2 "," $3 "," $5 "," $6 "," $7 "," $9 "," $10 \
			"," $11 }' | sort
}

for file in "$data"/*.co; do
	[ "${file##*/}" = relocs.co ] && continue # has no metadata
	n=$((n + 1))
	from_llvm "$file" >"$dir/llvm"
	from_t0 "$file" >"$dir/t0"
	if [ -s "$dir/llvm" ] && cmp -s "$dir/llvm" "$dir/t0"; then
		echo "ok $n - ${file##*/}: $(wc -l <"$dir/t0") arguments agree"
	else
		echo "not ok $n - ${file##*/}: arguments agree with llvm-readelf"
		diff "$dir/llvm" "$dir/t0" | sed 's/^/# /' >&2
	fi
done
echo "1..$n"
