#!/bin/sh
# The manual pages: what they tell a user to type works, they are good roff, and
# they have every option.
. tests/tap.sh
. tests/tools/blocks.sh

for page in */cmd/t0-*.scd; do
	tool=$(basename "$page" .scd)
	run_blocks "$tool" '```' "$page"
done

for tool in "$build"/t0-*; do
	[ -x "$tool" ] && [ -f "$tool" ] || continue
	name=${tool##*/}
	if ! command -v scdoc >/dev/null; then
		skip "no scdoc, so the page of $name is not made"
		continue
	fi
	exits 0 "$name has a manual page" scripts/manual "$tool" "$(
		find . -path "./*/$name.scd")"
	cp "$tmp/out" "$tmp/$name.1"
	if ! command -v man >/dev/null; then
		skip "no man, so the page of $name is not read"
		continue
	fi
	MANROFFOPT=-ww MANWIDTH=80 exits 0 "$name: the page is good roff" \
		man --warnings -E UTF-8 -l "$tmp/$name.1"
	is "$(cat "$tmp/err")" '' "$name: and gives no warning"
	{
		"$tool" --help
		"$tool" --help | sed -n \
			'/^Commands:/,/^$/s/^  \([a-z][a-z0-9-]*\) .*/\1/p' |
			while read -r command; do
				"$tool" "$command" --help
			done
	} >"$tmp/pages"
	grep -o -- '^ .*--[a-z-]*' "$tmp/pages" | grep -o -- '--[a-z-]*' |
		sort -u >"$tmp/options"
	missing=
	while read -r option; do
		grep -qF -e "$option" "$tmp/out" || missing="$missing $option"
	done <"$tmp/options"
	is "$missing" '' "$name: the page explains every option"
	is "$(awk 'length > 80' "$tmp/pages")" '' "$name: its help fits a terminal"
done
plan_done
