#!/bin/sh
# t0-qwen3 and models that are not what they seem: said by name, never run
# wrongly, never a signal.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/tiny
bad=$tmp/bad

exits 0 'a tiny model is made' scripts/make-model "$m"
cp -r "$m" "$bad"

# The engine would run the first layer alone.
sed 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' "$m/config.json" \
	>"$bad/config.json"
exits 2 'a layer too many' "$q" info -m "$bad"
has "$tmp/err" 'tensor model.layers.1.input_layernorm.weight has no place' \
	'is named'
cp "$m/config.json" "$bad"

# A header longer by one byte: every tensor lies at an odd place.
n=$(od -An -tu8 -N8 "$m/model.safetensors" | tr -d ' ')
{
	printf "\\$(printf %03o $(((n + 1) % 256)))"
	tail -c +2 "$m/model.safetensors" | head -c $((n + 7))
	printf ' '
	tail -c +$((n + 9)) "$m/model.safetensors"
} >"$bad/model.safetensors"
exits 0 'logits' "$q" logits -m "$m" --ids 1,2 --out "$tmp/even"
exits 0 'logits of tensors at odd places' "$q" logits -m "$bad" --ids 1,2 \
	--out "$tmp/odd"
ok 'are the same' cmp "$tmp/even" "$tmp/odd"

rm "$bad/model.safetensors"
mkfifo "$bad/model.safetensors"
exits 2 'a pipe is no file of weights' timeout 120 "$q" info -m "$bad"
has "$tmp/err" 'model.safetensors: not a file' 'it says so'
rm "$bad/model.safetensors"

cp "$m/model.safetensors" "$bad"
"$q" generate -m "$bad" -q --ids 1,2,3 -g -n 40000 --context 40000 \
	>"$tmp/long" 2>"$tmp/err" &
pid=$!
i=0
while ! [ -s "$tmp/long" ] && [ $((i += 1)) -lt 200 ]; do sleep 0.05; done
truncate -s 4096 "$bad/model.safetensors"
wait $pid
is $? 2 'a file that becomes shorter while it is read'
has "$tmp/err" "$bad: a file of the model became shorter" 'is told'

# A name that a terminal would obey: ESC [31m.
name='{"\u001b[31m":{"dtype":"X"}}'
printf "\\$(printf %03o ${#name})\\0\\0\\0\\0\\0\\0\\0%s" "$name" \
	>"$bad/model.safetensors"
exits 2 'a tensor of an unknown type' "$q" info -m "$bad"
has "$tmp/err" 'tensor ?[31m: dtype is X' 'its name is made visible'

# Ids need no tokenizer, be it damaged.
cp -r "$m" "$tmp/words-bad"
printf '{' >"$tmp/words-bad/tokenizer.json"
exits 0 'logits of ids' "$q" logits -m "$tmp/words-bad" --ids 1,2 \
	--out "$tmp/odd"
ok 'do not read the tokenizer' cmp "$tmp/even" "$tmp/odd"
exits 2 'a text does' "$q" eval -m "$tmp/words-bad" -p 'a b'
has "$tmp/err" 'tokenizer.json:1:' 'and names the damage'

# Written where another model was, its files are not read instead.
exits 0 'a model in one file' scripts/make-model "$tmp/same"
exits 0 'in three, over it' scripts/make-model "$tmp/same" --shards 3 --seed 5
exits 0 'the same elsewhere' scripts/make-model "$tmp/else" --shards 3 --seed 5
exits 0 'logits over it' "$q" logits -m "$tmp/same" --ids 1 --out "$tmp/over"
exits 0 'logits elsewhere' "$q" logits -m "$tmp/else" --ids 1 --out "$tmp/new"
ok 'agree' cmp "$tmp/over" "$tmp/new"
mkdir "$tmp/words"
printf '{}' >"$tmp/words/vocab.json"
exits 0 'another tokenizer over it' scripts/make-model "$tmp/same" \
	--tokenizer "$tmp/words"
ok 'is the only one' test ! -e "$tmp/same/tokenizer.json"
plan_done
