#!/bin/sh
# The program in the comment of isa/text/text.h is cut out, compiled and run.
. tests/tap.sh

# From the include up to the end of main: the comment goes on behind it.
awk '{ print } /^ \*	int main/ { main = 1 } main && /^ \*	}$/ { exit }' \
	>"$tmp/all" <<END
$(sed -n '/^ \*	#include <stdio.h>$/,/^ \*\/$/p' isa/text/text.h)
END
sed 's/^ \*	\{0,1\}//' "$tmp/all" >"$tmp/example.c"
has "$tmp/example.c" 'int main(void)' 'there is a program'
# The libraries of a sanitizer's build tree need its run-time library.
case $T0_BUILD in
*/asan) san=-fsanitize=address,undefined ;;
*/tsan) san=-fsanitize=thread ;;
*/cov) san=--coverage ;;
*) san= ;;
esac
# shellcheck disable=SC2086 # the compiler may be two words, the flag none
exits 0 'it compiles without a warning' \
	${CC:-gcc} $san -std=gnu11 -Wall -Wextra -Werror -I. -o "$tmp/example" \
	"$tmp/example.c" "$T0_BUILD/libisa-text.a" "$T0_BUILD/libisa-code.a" \
	"$T0_BUILD/libisa-tables.a" "$T0_BUILD/libbase.a" -pthread -lm
exits 0 'it runs' "$tmp/example"
cat >"$tmp/wanted" <<'END'
v_fma_f32 v0, -v1, s2, 1.0
  writes v0+1
  reads v1+1
  reads s2+1
  reads s126+1
global_load_b64 v[4:5], v2, s[8:9] offset:16
  writes v4+2
  reads v2+1
  reads s8+2
  reads s126+1
v_add_f32 v0, v1: too few operands
END
is "$(cat "$tmp/out")" "$(cat "$tmp/wanted")" 'and says what it should'
plan_done
