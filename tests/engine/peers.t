#!/bin/sh
# scripts/bench-peers with a llama-bench, and a tool, whose rates are known.
. tests/tap.sh
unset T0_DB
peers() { PATH="$tmp/bin:$PATH" scripts/bench-peers "$@"; }

exits 77 'without llama-bench' peers --peer "$tmp/none" model
has "$tmp/err" 'llama_cpp_python' 'it says where that is from'
exits 2 'no model' peers
has "$tmp/err" '--depth' 'lists the options'

mkdir "$tmp/bin"
cat >"$tmp/bin/llama-bench" <<'END'
#!/bin/sh
echo "$*" >>"$PEERS_LOG"
case " $* " in
*' -n 0 '*) echo '{"n_prompt": 1, "avg_ts": 50.0}' ;;
*) echo '{"n_prompt": 0, "avg_ts": 8.0}' ;;
esac
END
cat >"$tmp/bin/tool" <<'END'
#!/bin/sh
echo "$*" >>"$TOOL_LOG"
case " $* " in
*' --one prefill '*) echo 1.0 ;;
*' --one decode '*) echo 4.0 ;;
esac
END
chmod 755 "$tmp/bin/llama-bench" "$tmp/bin/tool"
export PEERS_LOG="$tmp/peers" TOOL_LOG="$tmp/tool"
exits 0 'six rounds' peers --tool tool --types q8_0 --threads 2 --depth 0,64 \
	--prefill 100 --decode 16 --rounds 6 model
is "$(awk '$3 == "prefill" && $4 == 64 { print $5, $6, $7, $8 }' "$tmp/out")" \
	'100 50 2 2-2' 'a prompt of 100 in a second is twice 50 a second'
is "$(awk '$3 == "decode" && $4 == 0 { print $5, $6, $7, $8 }' "$tmp/out")" \
	'4 8 0.5 0.5-0.5' '16 tokens in 4 s are half of 8 a second'
is "$(grep -c -- '-p 100 -n 0 -t 2 -d 64 ' "$tmp/peers")" 6 'six turns of theirs'
is "$(grep -c -- '--one decode .*--threads 2 .*--depth 0 ' "$tmp/tool")" 6 \
	'and of ours'
exits 0 'five rounds' peers --tool tool --types q8_0 --threads 1 --rounds 5 model
has "$tmp/out" 'n/a-n/a' 'are too few for an interval'

# The real tool takes what the script gives it.
exits 0 'a tiny model' scripts/make-model "$tmp/tiny"
exits 0 'one round of it' peers --tool "$T0_BUILD/t0-qwen3" --types q4_0 \
	--threads 1 --prefill 16 --decode 4 --depth 8 --rounds 1 "$tmp/tiny"
ok 'has a rate' awk '$3 == "decode" && $5 > 0 { n++ } END { exit n != 1 }' \
	"$tmp/out"
plan_done
