#!/bin/sh
# With less and less address space a tool does its work or says what it had no
# memory for: status 0 or 2, never a signal and never half of the work.
. tests/tap.sh
export T0_DEVICE=soft T0_DB="$tmp/t0.db" T0_CACHE="$tmp/cache"
b=$T0_BUILD data=tests/data/kernels
[ -e "$b/libt0-soft.so" ] || skip_all 'sanitizers need all addresses'

# within KIB COMMAND...
within() (
	ulimit -c 0
	ulimit -v "$1"
	shift
	exec "$@" >"$tmp/out" 2>"$tmp/err"
)

# shrinks NAME COMMAND...: from as much as it needs down to what --version needs.
shrinks() {
	what=$1 kib=4000 said=0 odd=
	shift
	until within $kib "$1" --version 2>"$tmp/shell"; do
		kib=$((kib + kib / 32))
	done
	while [ $kib -lt 400000000 ]; do
		within $kib "$@"
		status=$?
		[ $status = 0 ] && break
		grep -q "^${1##*/}: " "$tmp/err" && said=$((said + 1)) ||
			status="$status without a message"
		[ "$status" = 2 ] || odd="$odd $kib KiB: $status"
		kib=$((kib + kib / 8))
	done
	is "$odd" '' "$what: ends with 2 and a message, $said times"
	is "$status" 0 "$what: or does its work, with $kib KiB"
}

exits 0 'a tiny model' scripts/make-model "$tmp/tiny"
exits 0 'a database' "$b/t0-probe" tiers -q
exits 0 'its lines' "$b/t0-results" export -q -o "$tmp/lines"
rows=$("$b/t0-results" sql 'SELECT count(*) FROM v_results' --csv | tail -n 1)
saxpy="saxpy f32:2 buf:64:f32=iota out:64:f32=1 u32:64 --grid 64 --block 64"

shrinks 'devices' "$b/t0-device" info -q
shrinks 'instructions' "$b/t0-isa" list
shrinks 'a disassembly' "$b/t0-isa" dis "$data/fft.co"
shrinks 'faults' "$b/t0-isa" verify "$data/reduce.co"
shrinks 'a kernel' "$b/t0-cc" --kernel softmax -o "$tmp/softmax.co"
# shellcheck disable=SC2086 # words of a command
{
	shrinks 'a run' "$b/t0-run" -q "$data/saxpy.co" $saxpy
	shrinks 'a run that is checked' "$b/t0-run" -q "$data/saxpy.co" $saxpy \
		--check --json
}
shrinks 'a kernel with LDS' "$b/t0-run" -q "$data/reduce.co" reduce \
	buf:1k:f32=1 out:4:f32 u32:1024 --grid 1024 --block 256
shrinks 'a prediction' "$b/t0-sim" "$data/saxpy.co" saxpy
shrinks 'costs' "$b/t0-probe" latency --device sim --inst v_add_f32 --quick -q
shrinks 'launches' "$b/t0-probe" dispatch --quick -q
shrinks 'a search' "$b/t0-tune" --sizes 128 --budget quick -q --db "$tmp/u.db"
shrinks 'a text' "$b/t0-qwen3" generate -q -m "$tmp/tiny" --ids 1,2 -n 4
shrinks 'a text of the device' "$b/t0-qwen3" generate -q -m "$tmp/tiny" \
	--ids 1,2 -n 4 --backend gpu
shrinks 'a model' "$b/t0-qwen3" make -q -m "$tmp/new" --shape tiny
shrinks 'rows' "$b/t0-results" show last
shrinks 'pictures' "$b/t0-results" plot -q -o "$tmp/plots"
shrinks 'a merge' "$b/t0-results" merge -q "$T0_DB" --db "$tmp/merged.db"
shrinks 'an import' "$b/t0-results" import -q "$tmp/lines" --db "$tmp/new.db"
is "$("$b/t0-results" sql 'SELECT count(*) FROM v_results' --db "$tmp/new.db" \
	--csv | tail -n 1)" "$rows" 'has all rows'

# A line that is longer than the memory.
{
	printf '{"t0":{"export":1,"schema":1}}\n{"run":{"uuid":"'
	head -c 30000000 /dev/zero | tr '\0' a
	printf '"}}\n'
} >"$tmp/long"
within 40000 "$b/t0-results" import "$tmp/long" --db "$tmp/long.db"
is $? 2 'a line that does not fit'
has "$tmp/err" 'out of memory' 'is told'
plan_done
