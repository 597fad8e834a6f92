#!/bin/sh
# On a terminal of 80 columns no line of a table is longer, no key is cut, and
# what is dropped is empty or stands above the table; colours are for terminals
# that want them.
. tests/tap.sh
unset T0_DB T0_DEVICE NO_COLOR CLICOLOR_FORCE
export T0_DEVICE=soft T0_DB="$tmp/t0.db" TERM=xterm
command -v script >/dev/null || skip_all 'no script(1), which makes a terminal'
PATH=$T0_BUILD:$PATH
{
	awk -f tests/data/results/fixture.awk
} | t0-results import --quiet -
t0-results baseline accept 4 --quiet >"$tmp/none" 2>&1

# at80 COMMAND: what it prints on a terminal of 80 columns
at80() {
	script -qec "stty cols 80; $1" /dev/null </dev/null | tr -d '\r'
}

while read -r command; do
	NO_COLOR=1 at80 "$command" >"$tmp/out"
	is "$(awk 'length > 80 && !/^(method|the sides)/' "$tmp/out")" '' "$command fits"
	ok "$command prints something" [ "$(wc -l <"$tmp/out")" -gt 1 ]
	ok "$command has no column without a value" sh -c \
		'! awk "{ print \$NF }" "$1" | grep -qx n/a ||
			awk "{ print \$NF }" "$1" | grep -qvx n/a' sh "$tmp/out"
done <<'END'
t0-device list 2>/dev/null
t0-isa list | head -n 20
t0-isa info v_add_f32
t0-run --list tests/data/kernels/saxpy.co
t0-results list
t0-results show 1
t0-results show 4
t0-results costs
t0-results devices
t0-results compare 4 4
t0-results baseline list
t0-results history 'engine/*'
t0-results plot --list
t0-sim costs
t0-sim -q tests/data/kernels/saxpy.co saxpy
END

# Machine-readable forms have every column and every digit.
t0-results show 1 --json >"$tmp/json"
t0-results show 1 >"$tmp/whole"
has "$tmp/json" '"unit": "' 'JSON has the unit'
is "$(NO_COLOR=1 at80 't0-results devices' | head -n 1 | grep -c '\.\.\.')" 0 \
	'a head is never cut'

# Verdicts are green and red, heads bold; nothing else, and only where wanted.
esc=$(printf '\033')
at80 't0-results baseline list' >"$tmp/out"
has "$tmp/out" "$esc[1m" 'a terminal gets a bold head'
NO_COLOR=1 at80 't0-results baseline list' >"$tmp/out"
is "$(grep -c "$esc" "$tmp/out")" 0 'but with NO_COLOR'
t0-results baseline list >"$tmp/out"
is "$(grep -c "$esc" "$tmp/out")" 0 'a file does not'
t0-results baseline list --color always >"$tmp/out"
has "$tmp/out" "$esc[1m" 'but with --color always'
exits 2 'no other word' t0-results baseline list --color often

# The name of the file chooses the form.
exits 0 'markdown' t0-results devices -o "$tmp/devices.md"
has "$tmp/devices.md" '| --- |' 'by the name of the file'
exits 0 'JSON' t0-results devices -o "$tmp/devices.json"
is "$(head -c 1 "$tmp/devices.json")" '[' 'likewise'

# Names that are mistyped are answered with those that are near.
exits 2 'an instruction that there is not' t0-isa info v_add_f3
has "$tmp/err" 'did you mean v_add_f' 'one that is near is named'
exits 2 'a kernel that there is not' t0-cc --kernel rms_nrm
has "$tmp/err" 'did you mean rms_norm?' 'likewise'
plan_done
