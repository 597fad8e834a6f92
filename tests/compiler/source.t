#!/bin/sh
# t0-cc FILE.c: kernels in C built by the host's compiler, and every mistake.
. tests/tap.sh
cc=$T0_BUILD/t0-cc
isa=$T0_BUILD/t0-isa
cd "$tmp" || exit 2
mkdir tmp
TMPDIR=$tmp/tmp
export TMPDIR

# The example of the manual page.
sed -n "/^cat >line.c/,/^END/p" "$T0_SRC/compiler/cmd/t0-cc.scd" |
	sed '1d; $d; s/\\\\/\\/g' >line.c

exits 0 'the example of the manual is compiled' "$cc" line.c --stats --json \
	--verify -o line.co
has out '"kernel": "line"' 'with its statistics'
has err ' bytes of code pass the verifier' 'and what the verifier says'
exits 0 'the verifier finds nothing' "$isa" verify line.co
exits 0 'it runs on the soft device' "$T0_BUILD/t0-run" -q --device soft \
	--check --grid 128 --block 64 line.co line \
	out:128:f32=7 buf:128:f32=iota f32:2 f32:1 u32:5
has out '1 3 5 7 9 7 7 7' 'computes a x + b, and writes nothing behind'

# ---- options ----
for level in 0 1 2 3; do
	exits 0 "level $level" "$cc" --O$level -o "o$level.co" line.c
done
ok 'levels differ' sh -c '! cmp -s o0.co o3.co'
exits 0 'assembly' "$cc" -S -o line.s line.c
exits 0 'is what t0-isa takes' "$isa" asm line.s -o again.co
exits 0 'a stage is shown' "$cc" --dump select line.c
has err 'v_fma_f32' 'with its instructions'
exits 0 'lines are those of the source' "$cc" -S line.c
has out "; line $(grep -n STORE_IF line.c | cut -d: -f1)" 'by number'

# ---- several kernels, parameters ----
cat >two.c <<'END'
#include "compiler/dsl/dsl.h"
#ifndef SIZE
#define SIZE 64
#endif
static void fill(struct dsl *k, int value)
{
	struct val out = ARG_PTR(k, DSL_I32, "out", 0);

	STORE(out, CAST(DSL_U32, GLOBAL_ID(k, 0)), value);
}

T0_KERNEL(seven)
{
	struct dsl *k = KERNEL("seven", SIZE);

	fill(k, 7);
	return dsl_finish(k, e);
}

T0_KERNEL(eight)
{
	struct dsl *k = KERNEL("eight", SIZE);

	fill(k, 8);
	return dsl_finish(k, e);
}
END
exits 0 'a source with two kernels' "$cc" --stats two.c
has out 'seven ' 'has the first'
has out 'eight ' 'and the second'
exits 2 'one object for both is refused' "$cc" -o two.co two.c
has err '--kernel chooses' 'with the remedy'
exits 0 'one is chosen' "$cc" -k eight -o eight.co two.c
exits 0 'and runs' "$T0_BUILD/t0-run" -q --device soft --check \
	--grid 64 --block 64 eight.co eight out:64:i32
has out '8 8 8 8' 'and is the right one'
exits 2 'an unknown one is refused' "$cc" -k nine two.c
has err "no kernel 'nine'" 'by name'
CFLAGS='-DSIZE=32 -O1' exits 0 'CFLAGS reach the compiler' "$cc" -k eight \
	-o eight.co two.c
unset CFLAGS
exits 0 'the object' "$isa" meta eight.co
has out '32' 'is another one'

# ---- mistakes of the DSL name their line and show it ----
# bad WHAT WORDS LINE...: a kernel with this line.
bad() {
	what=$1
	words=$2
	{
		echo '#include "compiler/dsl/dsl.h"'
		echo 'T0_KERNEL(bad)'
		echo '{'
		echo 'struct dsl *k = KERNEL("bad", 64);'
		echo 'struct val p = ARG_PTR(k, DSL_F32, "p", 0);'
		echo "$3"
		echo 'STORE(p, 0, 1.0);'
		echo 'return dsl_finish(k, e);'
		echo '}'
	} >bad.c
	exits 2 "$what is refused" "$cc" bad.c
	has err 'bad.c:6: ' "$what: with its line"
	has err "$words" "$what: with what is wrong"
	has err "    6 | $3" "$what: and the line itself"
}
bad 'a type mismatch' 'type mismatch' 'STORE(p, 1, GROUP_ID(k, 0));'
bad 'an undefined value' 'undefined value' 'struct val u = {0}; STORE(p, 1, u);'
bad 'too much LDS' '65536' 'LDS(k, DSL_F32, 20000, "much");'
bad 'an unsupported width' 'unsupported width' 'LOADV(p, 0, 17);'
bad 'a parameter' 'no such tile' 'FAIL(k, "no such tile");'

# ---- mistakes around it ----
echo 'in x;' >bad.c
exits 2 'what is no C is refused' "$cc" bad.c
has err 'bad.c:1:' 'with what the C compiler says'
echo 'int x;' >bad.c
exits 2 'a source without the DSL' "$cc" bad.c
has err 'include "compiler/dsl/dsl.h"' 'is told what it lacks'
echo '#include "compiler/dsl/dsl.h"' >bad.c
exits 2 'a source without a kernel' "$cc" bad.c
has err 'T0_KERNEL(name)' 'as well'
printf '%s\n' '#include "compiler/dsl/dsl.h"' 'T0_KERNEL(none) { return NULL; }' \
	>bad.c
exits 2 'a kernel that gives nothing' "$cc" bad.c
has err 'bad.c:2: none' 'is named'
printf '%s\n' '#include "compiler/dsl/dsl.h"' 'void away(void);' \
	'T0_KERNEL(none) { away(); return NULL; }' >bad.c
exits 2 'an unknown function' "$cc" bad.c
has err 'away' 'is named'
CC=no-such-compiler exits 2 'without a C compiler' "$cc" line.c
has err "no C compiler 'no-such-compiler'" 'its name is told'
CC='env cc -O1' exits 0 'CC may have words' "$cc" line.c
unset CC
exits 2 'a file that is not there' "$cc" none.c
has err 'none.c' 'is named'
TMPDIR=$tmp/none exits 2 'a place that is not there' "$cc" line.c
has err 'TMPDIR' 'with the remedy'
is "$(ls tmp)" '' 'nothing is left behind'
plan_done
