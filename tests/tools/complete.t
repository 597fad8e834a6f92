#!/bin/sh
# Completion in the shells themselves: commands, their options, values, devices,
# the numbers of runs, instructions and files.
. tests/tap.sh
unset T0_DB T0_DEVICE T0_CACHE
export PATH="$T0_BUILD:$PATH" T0_DB="$tmp/t0.db"
zsh_words=$PWD/tests/tools/complete.zsh
mkdir "$tmp/bash" "$tmp/zsh" "$tmp/fish" "$tmp/room"
for tool in "$T0_BUILD"/t0-*; do
	name=${tool##*/}
	[ -x "$tool" ] || continue
	"$tool" --help=bash >"$tmp/bash/$name" &&
		"$tool" --help=zsh >"$tmp/zsh/_$name" &&
		"$tool" --help=fish >"$tmp/fish/$name.fish" || exit 2
done
cp tests/data/kernels/saxpy.co "$tmp/room/"
awk -f tests/data/results/fixture.awk | t0-results import -q - || exit 2
cd "$tmp/room" || exit 2

# Each prints the words that its shell offers for a line, without the option
# that fish repeats before a value, and without the sign behind an option.
bash_offers() {
	bash -c '
		. "$1/${2%% *}" && read -ra COMP_WORDS <<<"$2"
		[[ $2 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		f=_${2%% *}; ${f//-/_}; printf "%s\n" "${COMPREPLY[@]}"' \
		bash "$tmp/bash" "$(echo "$1" | sed 's/=/ = /')"
}
zsh_offers() {
	zsh -f "$zsh_words" "$tmp/zsh" "$1"
}
fish_offers() {
	fish --no-config -c 'set fish_complete_path $argv[1]
		complete -C $argv[2]' "$tmp/fish" "$1" | cut -f1
}

devices='soft soft:gfx1010 soft:gfx1030 soft:gfx1101 soft:gfx1102 soft:gfx1103 soft:gfx1150 soft:gfx1151 soft:gfx1200 soft:gfx1201'
for shell in bash zsh fish; do
	while IFS='|' read -r line wanted; do
		[ -n "$line" ] || continue
		if ! command -v $shell >/dev/null; then
			skip "no $shell: apt-get install $shell"
			continue
		fi
		is "$(${shell}_offers "$line" | sed 's/^--.*=\(.\)/\1/; s/=$//' |
			LC_ALL=C sort -u | tr '\n' ' ' | sed 's/ $//')" \
			"$(eval echo "$wanted")" "$shell: $line"
	done <<-'END'
		t0-isa ver|verify
		t0-results comp|compare
		t0-device |info list sensors watch
		t0-qwen3 gene|generate
		t0-isa verify --al|--allow
		t0-isa list --al|
		t0-run --vers|--version
		t0-sim --annot|--annotate
		t0-run --device so|$devices
		t0-run --device=so|$devices
		t0-results list --color al|always
		t0-results list --color=ne|never
		t0-sim --costs publ|published
		t0-tune --operands un|uniform
		t0-cc --type b|bf16
		t0-results note --status ke|keep
		t0-results show 3|3 30 31 32 33 34 35 36 37 38 39
		t0-results prune 12|12
		t0-results plot lat|latency
		t0-isa info v_add_f3|v_add_f32
	END
done

# A line of an option that takes no value of a list is completed with files.
if command -v zsh >/dev/null; then
	is "$(zsh_offers 't0-run sax')" saxpy.co 'zsh: files where they are wanted'
fi
if command -v fish >/dev/null; then
	is "$(fish_offers 't0-run sax')" saxpy.co 'fish: likewise'
fi
plan_done
