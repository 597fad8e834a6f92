#!/bin/sh
# t0-qwen3 chat: turns, the cache between them, commands, thoughts, a terminal.
. tests/tap.sh
unset T0_DB NO_COLOR CLICOLOR_FORCE
q=$T0_BUILD/t0-qwen3
m=$tmp/model
export HOME="$tmp/home"
exits 0 'a tiny model is made' scripts/make-model "$m"
count() { "$q" tokenize -q -m "$m" "$@" | tr ',' ' ' | wc -w; }
# there N: what the remark of the Nth answer says of its prompt
found() { sed -n "s/.* prompt of \([0-9]*\) tokens, of which \([0-9]*\) .*/\1 \2/p" "$tmp/err" | sed -n "$1p"; }

# ---- only what is new is computed ----
printf '%s\n' 'The program' 'Why is it so?' 'And now?' >"$tmp/lines"
exits 0 'lines are turns' "$q" chat -m "$m" -n 6 --seed 3 --temperature 1 <"$tmp/lines"
is "$(grep -c 'token limit after 6 tokens' "$tmp/err")" 3 'three answers'
first=$(printf '<|im_start|>user\nThe program<|im_end|>\n<|im_start|>assistant\n' | count)
turn=$(printf '<|im_end|>\n<|im_start|>user\nWhy is it so?<|im_end|>\n<|im_start|>assistant\n' | count)
last=$(printf '<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n' | count)
is "$(found 1)" "$first 0" 'of the first turn all is computed'
# The last token of an answer that has reached its limit was never fed.
is "$(found 2)" "$((first + 6 + turn)) $((first + 5))" 'of the second only what is new'
is "$(found 3)" "$((first + 6 + turn + 6 + last)) $((first + 6 + turn + 5))" 'and of the third'

exits 2 'a line without end' "$q" chat -q -m "$m" </dev/zero
has "$tmp/err" 'line 1: too long' 'is told'
exits 2 'what cannot be read' "$q" chat -q -m "$m" <.
has "$tmp/err" 'stdin: cannot read: Is a directory' 'is no end of lines'

# ---- a model that has learnt to think ----
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	cat <<'END'
{"messages":[{"role":"user","content":"Hello there"},{"role":"assistant","content":"<think>\nThe user greets me.\n</think>\n\nGood day to you, my friend!"}]}
{"messages":[{"role":"user","content":"Hello there"},{"role":"assistant","content":"Good day to you, my friend!"},{"role":"user","content":"What is the sea?"},{"role":"assistant","content":"<think>\nA question.\n</think>\n\nThe sea is salt water, and large."}]}
END
done >"$tmp/talk.jsonl"
t=$tmp/talker
exits 0 'a model learns a talk' "$q" train -q --data "$tmp/talk.jsonl" --valid "$tmp/talk.jsonl" \
	--steps 120 --length 96 --rows 4 --hidden 64 --heads 2 --kv-heads 1 \
	--layers 2 --vocab 400 --optimizer muon --rate 0.01 --eval-every 60 "$t"
say() { "$q" chat -m "$t" --greedy --cache f32 --threads 1 "$@"; }
printf 'Hello there\nWhat is the sea?\n' >"$tmp/lines"
exits 0 'thoughts are shown' say --thinking show <"$tmp/lines"
printf '%s\n' '<think>' 'The user greets me.' '</think>' '' 'Good day to you, my friend!' \
	'<think>' 'A question.' '</think>' '' 'The sea is salt water, and large.' >"$tmp/want"
ok 'as they were learnt' cmp "$tmp/out" "$tmp/want"
exits 0 'or hidden' say --thinking hide <"$tmp/lines"
printf '%s\n' 'Good day to you, my friend!' 'The sea is salt water, and large.' >"$tmp/want"
ok 'with the breaks behind them' cmp "$tmp/out" "$tmp/want"
exits 0 'or dim' say --color=always <"$tmp/lines"
esc=$(printf '\033')
ok 'from mark to mark' grep -q "^${esc}\[2m<think>" "$tmp/out"
ok 'and no longer' grep -q "^</think>${esc}\[22m$" "$tmp/out"
exits 0 'without colours dim is plain' say --color=never <"$tmp/lines"
is "$(grep -c "$esc" "$tmp/out")" 0 'no escapes'

# What the cache had, computed anew: thoughts of turns before are left out.
cat >"$tmp/messages" <<'END'
[{"role":"user","content":"Hello there"},
 {"role":"assistant","content":"<think>\nThe user greets me.\n</think>\n\nGood day to you, my friend!"},
 {"role":"user","content":"What is the sea?"}]
END
"$q" generate -q -m "$t" --messages "$tmp/messages" --greedy --cache f32 --threads 1 >"$tmp/want"
printf 'Hello there\nWhat is the sea?\n' | say -q 2>"$tmp/err" | tail -n 5 >"$tmp/second"
ok 'the second answer is that of generate --messages' cmp "$tmp/second" "$tmp/want"

# ---- commands ----
{
	printf '/system Be kind.\nHello there\n/save %s\n' "$tmp/saved"
	printf '/reset\n/system\n/load %s\nWhat is the sea?\n' "$tmp/messages2"
} >"$tmp/lines"
sed '$d' "$tmp/messages" | sed '$s/,$/]/' >"$tmp/messages2"
exits 0 'commands' say --thinking hide <"$tmp/lines"
is "$(tail -n 1 "$tmp/out")" 'The sea is salt water, and large.' 'a talk is loaded'
ok 'what was saved has the system' grep -q 'Be kind' "$tmp/saved"
exits 0 'and is what generate takes' "$q" generate -q -m "$t" -n 4 --messages "$tmp/saved"
printf 'Hello there\n/undo\nWhat is the sea?\n/save %s\n' "$tmp/undone" >"$tmp/lines"
exits 0 'a turn is taken back' say -q <"$tmp/lines"
is "$(sqlite3 :memory: "SELECT json_array_length(readfile('$tmp/undone')) ||
	json_extract(readfile('$tmp/undone'), '\$[0].content')")" '2What is the sea?' 'and gone'
printf 'Hello there\n/retry\n/save %s\n' "$tmp/retried" >"$tmp/lines"
exits 0 'another answer' "$q" chat -q -m "$m" -n 8 --temperature 2 <"$tmp/lines"
is "$(sqlite3 :memory: "SELECT json_array_length(readfile('$tmp/retried'))")" 2 'replaces the last'
is "$(sort -u "$tmp/out" | wc -l)" "$(wc -l <"$tmp/out")" 'and is another'
printf '/set temperature 0.5\n/set tokens 7\n/set thinking hide\n/set\n' >"$tmp/lines"
exits 0 'settings' say <"$tmp/lines"
has "$tmp/out" 'temperature 0.5' 'are kept, greedy or not'
has "$tmp/out" 'tokens 7' 'and counts'
has "$tmp/out" 'thinking hide' 'and words'
printf 'Hello \\\nthere\n' >"$tmp/lines"
exits 0 'a line goes on' say <"$tmp/lines"
is "$(grep -c 'prompt of' "$tmp/err")" 1 'it is one turn'
echo '/help' >"$tmp/lines"
exits 0 'help' say <"$tmp/lines"
has "$tmp/out" '/load FILE' 'lists the commands'
printf '/quit\nHello there\n' >"$tmp/lines"
exits 0 'an end' say <"$tmp/lines"
is "$(wc -c <"$tmp/out")" 0 'ends at once'

# ---- mistakes ----
refuse() { printf '%s\n' "$1" >"$tmp/lines"; exits 2 "refused: $1" say <"$tmp/lines"; has "$tmp/err" "$2" "  $2"; }
refuse '/sytem x' 'is /system meant?'
refuse '/undo' 'no turn yet'
refuse '/retry' 'no turn yet'
refuse '/load' "wanted a file's name"
refuse "/load $tmp/none" "$tmp/none"
refuse "/load $tmp/talk.jsonl" "$tmp/talk.jsonl: line 2"
refuse "/save $tmp/no/where" "$tmp/no"
refuse '/set heat 1' 'wanted temperature'
refuse '/set top-p 3' 'wanted 0 to 1'
refuse '/set tokens x' 'wanted a number'
refuse '/set thinking loud' 'wanted show, dim or hide'
exits 2 'thinking that is none' "$q" chat -m "$t" --thinking loud
exits 2 'no answers' "$q" chat -m "$t" --tokens 0
printf 'Hello there\n' >"$tmp/lines"
exits 2 'no room' say --context 8 <"$tmp/lines"
has "$tmp/err" 'leaves no room' 'is said'

# ---- a terminal ----
if ! command -v script >/dev/null; then
	skip 'there is no script, which makes terminals' 9
	plan_done
fi
wait_for() { # TEXT, in what the terminal shows
	for _ in $(seq 120); do
		grep -aqF -e "$1" "$tmp/screen" && return 0
		sleep 0.25
	done
	return 1
}
mkfifo "$tmp/keys"
TERM=xterm script -qefc "'$q' chat -m '$m' --greedy --tokens 1000000 --context 32768 --threads 1" \
	/dev/null <"$tmp/keys" >"$tmp/screen" 2>&1 &
terminal=$!
exec 3>"$tmp/keys"
ok 'it says how to begin' wait_for 'Ctrl-C stops an answer'
printf 'Hello\n' >&3
sleep 1
printf '\003' >&3
ok 'Ctrl-C stops an answer' wait_for 'interrupted after'
printf 'never said\003' >&3
ok 'and drops a line' wait_for '^C'
printf '/sytem\n' >&3
ok 'a mistake is said' wait_for 'is /system meant?'
printf '/set tokens 4\n/set temperature 0.1\nMore of it\n' >&3
ok 'and it goes on' wait_for 'token limit after 4 tokens'
printf '\004' >&3
wait "$terminal"
is "$?" 0 'Ctrl-D ends it'
exec 3>&-
history=$tmp/home/.local/state/t0/chat
ok 'what was typed is kept' grep -q 'More.*of.*it' "$history"
is "$(grep -c 'never' "$history")" 0 'what was dropped is not'
is "$(stat -c %a "$history")" 600 'and is nobody else'\''s'
plan_done
