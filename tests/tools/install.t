#!/bin/sh
# What `make install` and `make deb` give works away from the build tree.
. tests/tap.sh
for tool in scdoc dpkg-deb dpkg-shlibdeps; do
	command -v $tool >/dev/null || skip_all "no $tool: scripts/setup test installs it"
done
[ -e "$T0_BUILD/libt0-soft.so" ] || skip_all 'this mode builds no shared library'
unset T0_DB T0_DEVICE
build=$tmp/build
mkdir -p "$build/man"
cp "$T0_BUILD"/t0-* "$T0_BUILD"/libt0-soft*.so "$build/"
tools=
for tool in "$build"/t0-*; do
	name=${tool##*/}
	scripts/manual "$tool" "$(find . -path "./*/$name.scd")" \
		>"$build/man/$name.1" || exit 2
	tools="$tools $name"
done

# shellcheck disable=SC2086 # a list of tools
exits 0 'it installs' scripts/install "$build" "$tmp/usr" $tools
is "$(find "$tmp/usr/bin" -type f | wc -l)" "$(echo "$tools" | wc -w)" \
	'every tool is there'
exits 0 'an installed t0-soft finds its library' env PATH="$tmp/usr/bin:$PATH" \
	t0-soft run -q -- t0-device list
has "$tmp/out" gfx1100 'and the program sees the card'
exits 0 'a program compiles against the installed header' sh -c '
	printf "%s\n" "#include <libt0-soft.h>" \
		"int main(void) { return !t0_soft_status_name(0); }" >"$1/x.c" &&
	gcc -I"$1/usr/include/t0" -o "$1/x" "$1/x.c" \
		-L"$1/usr/lib/t0" -lt0-soft -Xlinker -rpath -Xlinker "$1/usr/lib/t0" &&
	"$1/x"' sh "$tmp"
sed -n '/^cat >line.c/,/^END/p' compiler/cmd/t0-cc.scd | sed '1d; $d' >"$tmp/line.c"
exits 0 'an installed t0-cc compiles a source with the installed headers' \
	"$tmp/usr/bin/t0-cc" -o "$tmp/line.co" "$tmp/line.c"
# complete_words TOOL WORD...: what the last word may become
complete_words() {
	bash -c '
		. "$1/share/bash-completion/completions/$2" &&
		shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) &&
		_"${1//-/_}" && printf "%s\n" "${COMPREPLY[@]}"' \
		sh "$tmp/usr" "$@"
}
for tool in $tools; do
	exits 0 "bash completes $tool" complete_words "$tool" --vers
	is "$(cat "$tmp/out")" --version "$tool: --vers becomes --version"
done
is "$(complete_words t0-isa ver)" verify 'commands are completed'
is "$(complete_words t0-isa verify --al)" --allow= 'and what one of them takes'
is "$(complete_words t0-isa list --al)" '' 'which another does not'

is "$(complete_words t0-results list --color al)" always \
	'values that the help lists are completed'
PATH=$tmp/usr/bin:$PATH
devices='soft
soft:gfx1010
soft:gfx1030
soft:gfx1101
soft:gfx1102
soft:gfx1103
soft:gfx1150
soft:gfx1151
soft:gfx1200
soft:gfx1201'
is "$(complete_words t0-run --device so)" "$devices" 'and devices'
is "$(complete_words t0-run --device = so)" "$devices" 'behind a sign, too'
"$build/t0-isa" verify tests/data/kernels/reduce.co --db "$tmp/runs.db" >/dev/null
is "$(T0_DB=$tmp/runs.db complete_words t0-results show 1)" 1 \
	'and the numbers of runs'
has "$tmp/usr/share/zsh/site-functions/_t0-run" '#compdef t0-run' \
	'zsh has a function'
! command -v zsh >/dev/null || ok 'which zsh reads' \
	zsh -n "$tmp/usr/share/zsh/site-functions/_t0-run"
has "$tmp/usr/share/fish/vendor_completions.d/t0-run.fish" \
	'complete -c t0-run -l device' 'and fish'
! command -v fish >/dev/null || ok 'which fish reads' \
	fish -n "$tmp/usr/share/fish/vendor_completions.d/t0-run.fish"

# It is compressed as fast as dpkg can.
# shellcheck disable=SC2086 # a list of tools
exits 0 'the package is made' env DPKG_DEB_COMPRESSOR_TYPE=gzip \
	DPKG_DEB_COMPRESSOR_LEVEL=1 scripts/package "$build" "$tmp" $tools
deb=$(echo "$tmp"/t0_*.deb)
exits 0 'dpkg reads it' dpkg-deb -f "$deb" Package Architecture Depends
has "$tmp/out" 'Package: t0' 'its name'
has "$tmp/out" libsqlite3-0 'it depends on the libraries that it uses'
dpkg-deb -x "$deb" "$tmp/root"
exits 0 'a tool of the package runs' "$tmp/root/usr/bin/t0-isa" info v_add_f32
exits 0 'its manual is compressed' gzip -t "$tmp/root/usr/share/man/man1/t0-isa.1.gz"
plan_done
