#!/bin/sh
# t0-device: soft is always listed; an explicit choice that cannot be had is an
# error, never another device.
. tests/tap.sh

tool=$T0_BUILD/t0-device
unset T0_DEVICE

exits 0 'list works without a GPU' "$tool" list
has "$tmp/out" soft 'soft is listed'
has "$tmp/out" emulated 'with its origin'
has "$tmp/out" gfx1100 'and its chip'
exits 0 'list has JSON' "$tool" list --json
has "$tmp/out" '"device": "soft"' 'with the columns as keys'
exits 0 'list has CSV' "$tool" list --csv
has "$tmp/out" 'index,device,name,gfx,CUs' 'with the columns as its head'

exits 0 'info shows the soft device' "$tool" info --csv --device soft
has "$tmp/out" 'compute units,96,' '96 compute units'
has "$tmp/out" 'VRAM,25753026560,byte' 'memory in bytes'
has "$tmp/err" 'device: soft' 'the chosen device is said on stderr'
exits 0 'quiet says nothing of it' "$tool" info -q --device soft
is "$(cat "$tmp/err")" '' 'nothing at all'
exits 0 'info writes to a file' "$tool" info -q --device soft --json \
	-o "$tmp/info.json"
has "$tmp/info.json" '"gfx1100"' 'the file has the facts'
T0_DEVICE=soft exits 0 'T0_DEVICE chooses too' "$tool" info
has "$tmp/err" 'asked for' 'and counts as asked for'

if [ -e /dev/kfd ]; then
	skip 'this host has /dev/kfd'
else
	exits 77 'an explicit kfd is not replaced by soft' "$tool" info \
		--device kfd
	has "$tmp/err" '/dev/kfd' 'the file is named'
	has "$tmp/err" 'found no GPU' 'and the reason'
	is "$(cat "$tmp/out")" '' 'nothing is printed'
	exits 0 'without a choice, soft is taken' "$tool" info
	is "$(cat "$tmp/err")" 't0-device: device: soft gfx1100, emulated (no GPU here)' \
		'and it is said why in a word'
	exits 0 'or at length' "$tool" info -v
	has "$tmp/err" '(no GPU here): /dev/kfd: ' 'with the reason'
	exits 0 'the list' "$tool" list
	has "$tmp/err" "no device of the kernel's: /dev/kfd: " 'says it, too'
fi
exits 2 'an unknown device word is refused' "$tool" info --device banana
has "$tmp/err" 'wanted soft, kfd' 'with what is known'
exits 2 'an unknown verb is refused' "$tool" frobnicate
exits 2 'no verb is refused' "$tool"
exits 2 'json and csv exclude each other' "$tool" list --json --csv
exits 2 'a full disk is an error' sh -c '"$1" list >/dev/full' sh "$tool"
plan_done
