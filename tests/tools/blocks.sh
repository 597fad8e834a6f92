# What a document tells a user to type, run block by block: for readme.t and
# manual.t, behind tests/tap.sh.
build=$T0_BUILD
unset T0_DB T0_DEVICE
export T0_DEVICE=soft PATH="$build:$PATH" GIT_CEILING_DIRECTORIES="$tmp"

# room NAME: an empty folder that looks like a clone after `make`
room() {
	mkdir -p "$tmp/$1/build"
	ln -s "$build" "$tmp/$1/build/rel"
	for name in tests scripts GNUmakefile docs base autotune engine; do
		ln -s "$T0_SRC/$name" "$tmp/$1/"
	done
}

# `make` in a room only says what it would do; the other tests run it.
make() {
	command make -n -C "$T0_SRC" "$@" >/dev/null
}

# The libraries of a sanitizer's build tree need its run-time library.
case $build in
*/asan) san=-fsanitize=address,undefined ;;
*/tsan) san=-fsanitize=thread ;;
*/cov) san=--coverage ;;
*) san= ;;
esac
cc() {
	# shellcheck disable=SC2086 # the compiler may be two words, the flag none
	command ${CC:-gcc} $san "$@"
}

# Another suite may run beside this one: a port that is not README's.
port=$((10000 + $$ % 20000))

# run_blocks FILE FENCE: each block from a line FENCE to ``` is one script
run_blocks() {
	room "$1"
	awk -v fence="$2" -v to="$tmp/$1-block" '
		on && $0 == "```" { on = 0; close(f); next }
		on { print >f; next }
		$0 == fence { on = 1; f = to (100 + ++n) }' "$3"
	for block in "$tmp/$1-block"*; do
		[ -e "$block" ] || continue
		if grep -q 't0-soft run' "$block" &&
			[ ! -e "$build/libt0-soft-preload.so" ]; then
			skip "$1: sanitizer builds cannot be loaded into programs"
			continue
		fi
		[ "$2" = '```sh' ] || sed -i 's/\\\\/\\/g' "$block"
		sed -i "s/8091/$port/" "$block"
		exits 0 "$1: $(sed -n 1p "$block")" in_room "$tmp/$1" "$block"
	done
}

in_room() (
	cd "$1" || exit
	set -e
	trap 'kill "$!" 2>/dev/null || :' EXIT # a server
	# shellcheck disable=SC1090 # a block of the documentation
	. "$2"
)

