#!/bin/sh
# Makes the files that recipes.def names, in the current folder.
# $T0_BUILD has the tools, $T0_SRC the sources.
set -eu
b=$T0_BUILD data=$T0_SRC/tests/data
export T0_DEVICE=soft XDG_CACHE_HOME="$PWD/cache" T0_DB="$PWD/t0.db"
cp "$data/kernels/saxpy.co" "$data/kernels/reduce.co" "$data/check/race.co" \
	"$data/printf/hip.co" "$data/ssa/nest.ssa" "$data/asm/triple.s" .
"$b/t0-cc" -k axpy -S -o axpy.s
printf 'v_add_f32 v1, v1, v2\ns_mov_b32 s0, 0x1234\ns_endpgm\n' >code.txt
"$b/t0-isa" asm --lines code.txt >code.hex
sed -n '/^cat >line.c/,/^END/p' "$T0_SRC/compiler/cmd/t0-cc.scd" |
	sed '1d; $d; s/\\\\/\\/g' >line.c
cp "$T0_SRC/tests/data/asm/loop.s" .
"$b/t0-isa" asm loop.s -o loop.co
printf 'waves 1\nloop 12 9\n' >loop.affine
"$b/t0-run" -q saxpy.co saxpy f32:2 buf:64:f32=iota out:64:f32=1 u32:64 \
	--grid 64 --block 64 --trace saxpy.trace >text
head -c 256 saxpy.co >in.bin
printf 'name,value,unit,source\n%s\n%s\n' 'branch.taken,31,clk,a paper' \
	'mem.l2,200-240,clk,"a table, page 3"' >costs.csv
printf '%s\n' '{"code":"000100060301000600000006","kernel":"k","sha":"x","events":[[7,"I",0,0,""],[8,"I",0,4,""],[9,"I",0,8,""]]}' \
	>traces.jsonl
printf '%s\n' 'source_doc,system,M,N,K,tile_m,tile_n,tile_k,split_k,wg_mode,other,tflops' \
	'a,Triton,1024,1024,1024,128,128,32,,,reliability=good,50' >rows.csv
"$b/t0-qwen3" make -q -m model
"$b/t0-qwen3" convert -q model model.gguf --type q4_0
echo 'hello, world: 1 2 3' >prompt.txt
seq 300 >numbers.txt
printf 'rate 1e-3 2e-3\n' >sweep.txt
echo '[{"role":"system","content":"be"},{"role":"user","content":"say \"so\""}]' \
	>talk.json
echo '[{"type":"function","function":{"name":"f","parameters":{"a":1}}}]' \
	>tools.json
printf 'loop_tokens 40 # fewer\ntop_share 0.5\n' >limits.txt
printf 'commit 1234567 : it helps\nenv A=1 : it does\n' >changes.txt
awk -f "$data/results/fixture.awk" >lines.jsonl
sed 's/"uuid":"run-/"uuid":"far-/' lines.jsonl >more.jsonl
"$b/t0-results" import -q lines.jsonl
"$b/t0-results" import -q more.jsonl --db other.db
"$b/t0-results" baseline accept 4 -q >text
"$b/t0-results" note add -q --status null --hypothesis 'a note' >text
"$b/t0-probe" tiers -q >text
"$b/t0-probe" discover --encoding SOPP --oracle none -q >text
rm -rf text cache
