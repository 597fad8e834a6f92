# Sourced behind tests/tap.sh: a model that has learnt something, for tests of
# what runs models.
#
#	. tests/engine/learnt.sh
#	learnt_model
#
# makes $learnt, a folder of 0.4 M parameters in f32 that knows licences, and
# $learnt/log.csv; $learnt_text is what it learnt from, the last tenth held out.
# The first test that asks trains it, others wait for that.  It is kept with the
# build, and made again when the tool is newer.

learnt=$T0_BUILD/learnt
learnt_text=$learnt/text

# What every Debian system has (base-files); of other versions other texts.
learnt_train() {
	rm -rf "$learnt"
	mkdir -p "$learnt" || return
	(cd /usr/share/common-licenses && cat GPL-2 GPL-3 LGPL-2.1 Apache-2.0 \
		MPL-2.0 GFDL-1.3) >"$learnt_text" 2>/dev/null
	"$T0_BUILD/t0-qwen3" train -q --data "$learnt_text" --steps 120 \
		--rows 8 --length 128 --hidden 96 --heads 3 --kv-heads 1 \
		--layers 3 --vocab 600 --optimizer muon --rate 0.01 \
		--eval-every 60 "$learnt" >"$learnt/out" 2>&1 &&
		touch "$learnt/done"
}

learnt_is_new() {
	[ -e "$learnt/done" ] &&
		[ -z "$(find "$T0_BUILD/t0-qwen3" -newer "$learnt/done")" ]
}

learnt_model() {
	exec 9>"$learnt.lock"
	flock 9
	learnt_is_new || learnt_train
	tap_result $? 'a model of 0.4 M parameters learns from licences' ||
		diag "$(cat "$learnt/out")"
	exec 9>&-
}

# Is the text that of Debian 12?  Only of that losses are known.
learnt_is_known() {
	[ "$(sha256sum <"$learnt_text" | cut -c 1-64)" = \
		7e0445e4e8133dda5cff8d276a804430684398c96dda903358d60db60686b026 ]
}
