#!/bin/sh
# t0-qwen3 train: a small model learns from texts that every Debian system has,
# the engine runs it; a run that is killed goes on to the same bits.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3

# ---- small runs ----
printf 'one two three, %s.\n' $(seq 400) >"$tmp/text"
small="--length 24 --rows 3 --layers 2 --hidden 32 --heads 2
	--kv-heads 1 --ffn 64 --vocab 300 --steps 14 --eval-every 5 --save-every 2
	--threads 2"
# train STATUS WHAT INTO OPTION...
train() {
	status=$1 what=$2 into=$tmp/$3
	shift 3
	# shellcheck disable=SC2086 # words
	exits "$status" "$what" "$q" train -q --data "$tmp/text" $small "$@" "$into"
}
# same WHAT A B: models and checkpoints.
same() {
	for file in model.safetensors checkpoint log.csv; do
		ok "$1: $file" cmp -s "$tmp/$2/$file" "$tmp/$3/$file"
	done
}
train 0 'a run' whole
for file in config.json tokenizer.json model.safetensors log.csv; do
	ok "leaves $file" [ -s "$tmp/whole/$file" ]
done
is "$(sed -n '2,$s/,.*//p' "$tmp/whole/log.csv" | tr '\n' ' ')" '5 10 14 ' \
	'looks at what is held out as often as asked, and at the end'
exits 0 'the engine generates from it' "$q" generate -q -m "$tmp/whole" \
	-p 'one two' -n 5 -g
exits 0 'on the other backend, too' "$q" generate -q -m "$tmp/whole" \
	-p 'one two' -n 5 -g --backend gpu --device soft
train 0 'on the gfx1100 in software' card --backend gpu --device soft
ok 'its losses are within 1e-3' sh -c "paste -d, '$tmp/whole/log.csv' \
	'$tmp/card/log.csv' | awk -F, 'NR == 1 { n = NF / 2 } NR > 1 {
	d = \$3 - \$(n + 3); if (d > 1e-3 || d < -1e-3) exit 1; rows++ }
	END { exit rows != 3 }'"
train 2 'a device without its backend' none --device soft
train 0 'the same by one thread' one --threads 1
same 'one thread and two' one whole
train 0 'another seed' other --seed 1
ok 'is another model' sh -c "! cmp -s '$tmp/other/model.safetensors' \
	'$tmp/whole/model.safetensors'"

# What training calls the loss is what the engine says of the same tokens.
printf '\003\000\011\000\007\000\001\000\012\000\377\000\004\000' >"$tmp/seven.bin"
train 0 'seven tokens are held out' seven --valid "$tmp/seven.bin" --steps 1
loss=$(sed -n '2s/,[^,]*$//; 2s/.*,//p' "$tmp/seven/log.csv")
exits 0 'the engine judges them' "$q" eval -q -m "$tmp/seven" \
	--ids 3,9,7,1,10,255,4 --csv
bits=$(sed -n 2p "$tmp/out" | tr -d '\r' | cut -d, -f3)
ok 'and agrees' awk "BEGIN { d = $loss / log(2) / $bits - 1
	exit !(d < 1e-5 && d > -1e-5) }"

# ---- killed and resumed ----
# killed NAME TIMES OPTION...: SIGKILL after random times, until it is done.
killed() {
	name=$1 times=$2
	shift 2
	awk -v n="$times" 'BEGIN { srand(7); for (i = 0; i < n; i++)
		print .02 + .28 * rand() }' >"$tmp/times"
	while read -r after; do
		# shellcheck disable=SC2086 # words
		timeout -s KILL "$after" "$q" train -q --data "$tmp/text" $small --steps 60 "$@" \
			--resume "$tmp/$name" >"$tmp/out" 2>"$tmp/err"
		tap_got=$?
		[ $tap_got = 137 ] && kills=$((kills + 1))
		[ $tap_got = 137 ] || [ $tap_got = 0 ] || diag "$(cat "$tmp/err")"
		# Done too early to be killed often: once more from the start.
		[ $tap_got != 0 ] || mv "$tmp/$name" "$tmp/$name.$after"
	done <"$tmp/times"
	train 0 "$name: goes on to the end" "$name" --steps 60 "$@" --resume
	diag "$name: killed $kills times"
}
times=8 kills=0
[ -z "${T0_SLOW-}" ] || times=50
train 0 'an undisturbed run' calm --steps 60
killed rough $times
same 'killed at random moments' rough calm
ok 'it was killed' [ $kills -gt 0 ]
train 0 'bf16 without masters, a moving average, Muon, undisturbed' calm2 \
	--steps 60 --precision bf16 --no-masters --average .9 --optimizer muon
killed rough2 $((times / 2)) --precision bf16 --no-masters --average .9 \
	--optimizer muon
same 'bf16 and Muon, killed' rough2 calm2
# Rows so short that their gradients overflow in f16 at first.
f16='--precision f16 --rows 1 --length 2'
# shellcheck disable=SC2086 # words
{
	train 0 'f16, undisturbed' calm4 --steps 60 $f16
	killed rough4 $((times / 4)) $f16
	exits 0 'f16 that overflows' "$q" train --data "$tmp/text" $small $f16 \
		"$tmp/f16"
}
same 'f16, killed' rough4 calm4
has "$tmp/err" 'step 0: skipped, f16 overflows with the loss times 65536; from now on times 32768' \
	'says that it skips a step'
has "$tmp/err" 'loss times 32768, 1 steps skipped' 'and how many so far'
has "$tmp/f16/model.safetensors" '"dtype":"F16"' 'its model is f16'

# Stopped, it keeps what it has done: no checkpoint is due before the end.
long='--threads 1 --steps 6000 --save-every 6000 --eval-every 6000'
# shellcheck disable=SC2086 # words
{
	train 0 'a longer one, undisturbed' calm3 $long
	for after in .02 .04 .08 .16 .32 .64 1.28 2.56 5.12 10; do
		[ -e "$tmp/stopped/checkpoint" ] && break
		timeout --preserve-status -s TERM "$after" "$q" train -q \
			--data "$tmp/text" $small $long --resume \
			"$tmp/stopped" >/dev/null 2>"$tmp/err"
		tap_got=$?
	done
	is "$tap_got" 143 'SIGTERM ends it'
	ok 'and leaves a checkpoint' [ -s "$tmp/stopped/checkpoint" ]
	train 0 'and it goes on' stopped $long --resume
}
same 'stopped' stopped calm3

# ---- options ----
for how in '--optimizer sgd --rate .5' '--precision bf16' '--precision f16' \
	'--untied' '--schedule wsd --cooldown 3' '--accumulate 2' '--recompute all'; do
	# shellcheck disable=SC2086 # words
	train 0 "$how" "with$how" $how
	awk -F, 'NR == 2 { a = $3 } END { exit !($3 < a - .02) }' \
		"$into/log.csv"
	tap_result $? "$how: the loss falls"
done
exits 0 'f16: the engine takes it' "$q" generate -q -m "$tmp/with--precision f16" \
	-p 'one two' -n 5 -g
ok 'made again: the same weights' cmp -s "$into/model.safetensors" \
	"$tmp/whole/model.safetensors"
train 0 'from a folder' more --model "$tmp/whole" --steps 2
# Adapters: what is merged and runs is what was trained.
train 0 'adapters' lora --model "$tmp/whole" --lora 3 --lora-targets all \
	--valid "$tmp/seven.bin" --rate .01
loss=$(tail -n 1 "$tmp/lora/log.csv" | cut -d, -f6)
best=$(sed 1d "$tmp/lora/log.csv" | cut -d, -f6 | sort -g | head -n 1)
exits 0 'the merged model is judged' "$q" eval -q -m "$tmp/lora" \
	--ids 3,9,7,1,10,255,4 --csv
bits=$(sed -n 2p "$tmp/out" | tr -d '\r' | cut -d, -f3)
ok 'as the adapters were' awk "BEGIN { d = $best / log(2) / $bits - 1
	exit !(d < 1e-5 && d > -1e-5) }"
for key in '"peft_type": "LORA"' '"r": 3' '"lora_alpha": 3' '"gate_proj"'; do
	has "$tmp/lora/adapter/adapter_config.json" "$key" "adapters: $key"
done
has "$tmp/lora/adapter/adapter_model.safetensors" \
	'base_model.model.model.layers.1.mlp.up_proj.lora_B.weight":{"dtype":"F32","shape":[64,3]' \
	'adapters: names and shapes as peft has them'
train 0 'adapters in bf16' lora16 --model "$tmp/whole" --lora 2 --precision bf16 \
	--rate .01 --steps 60
cp -r "$tmp/lora16" "$tmp/kept16"
train 0 'go on behind the end' lora16 --model "$tmp/whole" --lora 2 \
	--precision bf16 --rate .01 --steps 60 --resume
same 'and change nothing' lora16 kept16
sum=$(cksum "$tmp/whole/model.safetensors")
for how in '--steps 1' '--lora 2' '--medusa 1' '--eagle 1'; do
	train 2 "a model into itself: $how" whole/../whole --model "$tmp/whole" $how
	has "$tmp/err" 'are the same folder' 'is told'
done
is "$(cksum "$tmp/whole/model.safetensors")" "$sum" 'and is as it was'
: >"$tmp/file"
train 2 'heads into a file' file --model "$tmp/whole" --medusa 1 --steps 9999999
has "$tmp/err" 'Not a directory' 'are refused before they learn'
exits 0 'a model by a database' "$q" train -q --data "$tmp/text" --length 8 \
	--rows 1 --layers 1 --hidden 8 --heads 1 --kv-heads 1 --vocab 265 \
	--steps 2 --db "$tmp/t0.db" "$tmp/rows"
is "$(sqlite3 "$tmp/t0.db" "SELECT count(*) FROM v_results WHERE area = 'train'
	AND metric = 'loss' AND origin = 'hardware'")" 2 'has its losses as rows'

# What is left of a run may be little, and names may be odd.
long=$(printf '%0240d' 7)
exits 0 'a long name' "$q" train -q --data "$tmp/text" --length 8 --rows 1 \
	--layers 1 --hidden 8 --heads 1 --kv-heads 1 --vocab 265 --steps 2 \
	--db "$tmp/t0.db" "$tmp/$long"
is "$(sqlite3 "$tmp/t0.db" "SELECT count(*) FROM cases WHERE name = '$long'")" \
	2 'is that of its rows'
rm "$tmp/$long/log.csv"
exits 0 'a run that ended, without its log' "$q" train -q --data "$tmp/text" \
	--length 8 --rows 1 --layers 1 --hidden 8 --heads 1 --kv-heads 1 \
	--vocab 265 --steps 2 --resume --csv "$tmp/$long"
ok 'says what is left' grep -q '^2,16,,,,2,' "$tmp/out"
odd=$tmp/$(printf 'b\377d')
mv "$tmp/$long" "$odd"
exits 0 'adapters of what is not UTF-8' "$q" train -q --data "$tmp/text" \
	--length 8 --rows 1 --steps 1 --lora 1 --model "$odd" "$tmp/of-odd"
has "$tmp/of-odd/adapter/adapter_config.json" \
	'"base_model_name_or_path": null' 'have no name of it'
exits 2 'rows of nothing' "$q" train -q --data "$tmp/text" --model "$odd" \
	--length 0 "$tmp/none"
has "$tmp/err" 'rows of 0 tokens' 'rows of nothing: says why'

# ---- refused ----
cp -r "$tmp/whole" "$tmp/kept"
mkfifo "$tmp/pipe"
exits 2 'a pipe' timeout 120 "$q" train -q --data "$tmp/pipe" "$tmp/none"
has "$tmp/err" 'is a pipe, and texts are read more than once' 'says why'
exits 2 'a folder with a run' "$q" train -q --data "$tmp/text" "$tmp/whole"
has "$tmp/err" resume 'asks for --resume'
ok 'and is left as it was' diff -r "$tmp/kept" "$tmp/whole"
train 2 'another run' whole --resume --rate .1
has "$tmp/err" '"rate 0.10' 'is told from its checkpoint'
cp -r "$tmp/whole" "$tmp/damaged"
printf x | dd of="$tmp/damaged/checkpoint" bs=1 seek=20000 conv=notrunc 2>"$tmp/dd"
train 2 'a damaged checkpoint' damaged --resume
has "$tmp/err" 'its checksum' 'is found out'
head -c 9000 "$tmp/whole/checkpoint" >"$tmp/damaged/checkpoint"
train 2 'a checkpoint that was cut' damaged --resume
has "$tmp/err" 'too short' 'is found out, too'
while IFS='|' read -r what said options; do
	# shellcheck disable=SC2086 # options
	train 2 "$what" none $options
	has "$tmp/err" "$said" "$what: says why"
done <<'EOF'
heads that do not divide|multiple of --kv-heads|--heads 3 --kv-heads 2
an unknown optimizer|adamw, sgd or muon|--optimizer adam
an unknown schedule|constant, cosine, linear or wsd|--schedule step
adapters of nothing|without --model|--lora 4
unknown targets|q_proj|--lora-targets lm_head
integers|f32, bf16 or f16|--precision int8
f16 without masters|wanted them, or bf16|--precision f16 --no-masters
a step of nothing|wanted at least 1|--steps 0
too much of all to fit|MiB are free|--length 4096 --rows 4096 --hidden 4096 --head-dim 64
EOF
exits 2 'nothing to learn from' "$q" train -q "$tmp/none"
has "$tmp/err" --data 'asks for --data'

# ---- it learns ----
. tests/engine/learnt.sh
learnt_model
if ! learnt_is_known; then
	diag 'the licences are others than those of Debian 12'
	plan_done
	exit
fi
tail -n 1 "$learnt/log.csv" | awk -F, '{ print "# loss " $3 ", " $7 \
	" bits per byte held out" > "/dev/stderr"
	exit !($3 > 2 && $3 < 3.3 && $7 > 1 && $7 < 2.5) }'
tap_result $? 'to a loss below 3.3, and 2.5 bits per byte of what is held out'
exits 0 'the engine goes on with its words' "$q" generate -q -m "$learnt" \
	-p 'the License' -n 120 --temperature .9 --top-k 0 --seed 3
ok 'in words of the text' awk '{ for (i = 1; i <= NF; i++)
	n += $i ~ /^(the|of|to|or|a|and|any|this|License|work)$/ }
	END { exit !(n >= 4) }' "$tmp/out"

# Adapters of under 2 % of its parameters learn a style that it never saw.
tail -c 1000 "$tmp/text" >"$tmp/style"
exits 0 'the model does not expect lists' "$q" eval -q -m "$learnt" \
	-f "$tmp/style" --csv
was=$(sed -n 2p "$tmp/out" | tr -d '\r' | cut -d, -f3)
exits 0 'adapters learn them' "$q" train -q --data "$tmp/text" \
	--model "$learnt" --lora 1 --lora-targets all --steps 30 --rows 4 \
	--length 64 --rate .01 "$tmp/lists"
exits 0 'with them it does' "$q" eval -q -m "$tmp/lists" -f "$tmp/style" --csv
is=$(sed -n 2p "$tmp/out" | tr -d '\r' | cut -d, -f3)
diag "bits per token: $was, then $is"
ok 'the loss falls by a tenth and more' awk "BEGIN { exit !($is < .9 * $was) }"
# Bytes of both files, f32; the smaller one has a head of some 4 KB.
size() { wc -c <"$1.safetensors"; }
ok 'by under 2 % of the parameters' [ \
	$((50 * ($(size "$tmp/lists/adapter/adapter_model") - 4096))) -lt \
	"$(size "$learnt/model")" ]
plan_done
