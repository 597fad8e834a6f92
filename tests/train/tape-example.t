#!/bin/sh
# The program in the comment of engine/train/tape/tape.h is cut out, compiled
# and run; docs/training.md has the same, and commands that work.
. tests/tap.sh
unset T0_DB

sed -n '/^ \*	#include <stdio.h>$/,/^ \*	}$/p' engine/train/tape/tape.h |
	sed 's/^ \*	\{0,1\}//' >"$tmp/example.c"
has "$tmp/example.c" 'int main(void)' 'there is a program'
# shellcheck disable=SC2016 # fences
sed -n '/^```c$/,/^```$/p' docs/training.md | sed '/^```/d' >"$tmp/page.c"
ok 'docs/training.md has the same' diff "$tmp/example.c" "$tmp/page.c"
# The libraries of a sanitizer's build tree need its run-time library.
case $T0_BUILD in
*/asan) san=-fsanitize=address,undefined ;;
*/tsan) san=-fsanitize=thread ;;
*/cov) san=--coverage ;;
*) san= ;;
esac
set --
for room in engine-train-tape engine-train engine-state engine-weights \
	engine-text engine-files autotune-cpu base; do
	set -- "$@" "$T0_BUILD/lib$room.a"
done
# shellcheck disable=SC2086 # the compiler may be two words, the flag none
exits 0 'it compiles without a warning' \
	${CC:-gcc} $san -std=gnu11 -Wall -Wextra -Werror -I. -o "$tmp/example" \
	"$tmp/example.c" "$@" -pthread -ljansson -lpcre2-8 -lutf8proc -lxxhash -lm
exits 0 'it runs' "$tmp/example"
is "$(cat "$tmp/out")" 'loss below 0.1' 'and learns'
plan_done
