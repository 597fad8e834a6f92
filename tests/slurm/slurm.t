#!/bin/sh
# A sharded search on a real Slurm of this test's own - munged, slurmctld, three
# slurmds, all on this machine - of which a node is killed in the middle; held
# against the same search in one piece.  Only `make test-slurm` runs it.
. tests/tap.sh
unset T0_DB T0_SHARD T0_DEVICE ROCR_VISIBLE_DEVICES SLURM_CONF
[ "$(id -u)" = 0 ] || skip_all 'not root, who runs slurmd'
for program in slurmctld slurmd sbatch munged sqlite3; do
	PATH=$PATH:/usr/sbin command -v $program >/dev/null ||
		skip_all "no $program (Debian: slurmctld slurmd slurm-client munge sqlite3)"
done
PATH=$PATH:/usr/sbin
dir=$tmp/cluster host=$(hostname -s)
r=$T0_BUILD/t0-results
export T0_BUILD SLURM_CONF="$dir/slurm.conf"

# Processes of this cluster, by the environment that all inherit but munged.
ours() {
	for p in /proc/[0-9]*; do
		tr '\0' '\n' <"$p/environ" |
			grep -qxF "SLURM_CONF=$dir/slurm.conf" &&
			echo "${p#/proc/}"
	done 2>/dev/null
}
# Without this script's own: daemons, and what they started.
daemons() {
	for p in $(ours); do
		case $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) in
		*slurm.t*) ;;
		*slurm* | *t0-*) echo "$p" ;;
		esac
	done
}
stop() {
	scancel -u root >/dev/null 2>&1
	for p in "$dir"/run/*.pid; do
		[ -s "$p" ] && kill "$(cat "$p")" 2>/dev/null
	done
	sleep 1
	for p in $(daemons); do
		kill -9 "$p" 2>/dev/null
	done
	[ -z "${munged-}" ] || kill "$munged" 2>/dev/null
	sleep 0.5
}
trap 'stop; rm -rf "$tmp"' EXIT

# ---- the cluster ----
base=$((20000 + $$ % 20000))
mkdir "$dir" "$dir/state" "$dir/spool" "$dir/run" "$dir/munge"
chmod 755 "$tmp" "$dir"
head -c 128 /dev/urandom >"$dir/munge/key"
chmod 400 "$dir/munge/key"
chown -R munge:munge "$dir/munge"
setpriv --reuid=munge --regid=munge --clear-groups \
	munged --foreground --key-file="$dir/munge/key" \
	--socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
	--log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
	--num-threads=2 >/dev/null 2>&1 &
munged=$!
cat >"$SLURM_CONF" <<CONF
ClusterName=t0
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$base
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
SlurmdTimeout=10
KillWait=1
ReturnToService=2
JobRequeue=1
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=t[1-3] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + 3))] CPUs=1
PartitionName=all Nodes=t[1-3] Default=YES MaxTime=INFINITE State=UP
CONF
wait_for() { # SECONDS COMMAND...
	left=$(($1 * 5))
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || return 1
		sleep 0.2
	done
}
wait_for 20 test -S "$dir/munge/socket"
slurmctld -i
for node in t1 t2 t3; do
	slurmd -N $node
done
idle() {
	[ "$(sinfo -h -N -o '%N %T' | grep -c idle)" -eq "$1" ]
}
ok 'three nodes are up' wait_for 60 idle 3

# ---- one run, and its baseline ----
set -- --shapes 64x64x64,64x48x96,32x80x64,64x64x128,48x48x48,96x64x32,32x32x256 \
	--budget quick -j1 -q --device soft
"$T0_BUILD/t0-tune" "$@" --shard 1/1 --db "$tmp/single.db" >/dev/null
"$r" merge -q --db "$tmp/one.db" "$tmp/single.db"
rows() { # DB: what was found, without times, machines and runs
	sqlite3 -readonly "$1" "SELECT c.area, c.name, c.params, x.metric,
		x.value, x.n, x.clock_hz, x.origin, r.tool, r.inputs, r.state
		FROM results x JOIN cases c ON c.id = x.case_id JOIN runs r
		ON r.id = x.run WHERE x.origin <> 'published' AND
		r.tool = 't0-tune' ORDER BY 1, 2, 3, 4;
		SELECT target, op, m, n, k, config, state, reason, time_s, object,
		winner, second, class FROM v_tunes ORDER BY 1, 2, 3, 4, 5, 6;
		SELECT target, op, config, object, class, verdict, worst,
		compared, seed FROM tune_checks ORDER BY 1, 2, 3, 4, 5, 8"
}
rows "$tmp/one.db" >"$tmp/one"
is "$(sqlite3 "$tmp/one.db" 'SELECT count(*) FROM tune_winners')" 7 \
	'one run finds seven products'

# ---- seven shards on three nodes, one of which is killed ----
jobs=$(scripts/slurm/submit -n 7 -d "$tmp/work" -o "$tmp/all.db" tune "$@")
array=${jobs% *} merge=${jobs#* }
ok 'two jobs are submitted' test -n "$array" -a "$array" != "$merge"
works_on() { # a shard is in the middle of its work there
	job=$(squeue -h -w t2 -t R -o %K)
	[ -n "$job" ] && [ "$(sqlite3 "$tmp/work/shard.$job.db" \
		'SELECT count(*) FROM results' 2>/dev/null || echo 0)" -gt 0 ]
}
ok 'the second node works' wait_for 120 works_on
victim=$job
# As if its power were cut: those that would tell of the others' end first.
number=$(squeue -h -w t2 -t R -o %A)
kill -9 "$(cat "$dir/run/t2.pid")"
for p in $(ours); do
	case $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) in
	*"slurmstepd: [$number."*) kill -9 "$p" 2>/dev/null ;;
	esac
done
for p in $(ours); do
	if tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" |
		grep -qx 'SLURMD_NODENAME=t2'; then
		kill -9 "$p" 2>/dev/null
	fi
done
diag "killed node t2 in shard $victim"
is_down() {
	sinfo -h -n t2 -o %T | grep -q down
}
ok 'Slurm finds the node down' wait_for 120 is_down
rm -f "$dir/run/t2.pid"
slurmd -N t2
over() {
	[ -z "$(squeue -h -o %A)" ]
}
ok 'all jobs come to an end' wait_for 400 over
ok 'the shard was begun again' grep -q 'attempt 2' "$tmp/work/$victim.log"
is "$(grep -l 'attempt 2' "$tmp"/work/[0-9]*.log | wc -l)" 1 'and no other'
rows "$tmp/all.db" >"$tmp/all"
ok 'the merged rows are those of one run' cmp "$tmp/one" "$tmp/all"
cmp -s "$tmp/one" "$tmp/all" || diff "$tmp/one" "$tmp/all" | head -n 5 >&2
ok 'the gate ran behind the merge' grep -q '' "$tmp/work/merge.log"
is "$(scontrol show job "$merge" | grep -o 'ExitCode=[0-9]*')" 'ExitCode=1' \
	'and without baselines did not pass'

# ---- a shard that fails keeps the merge from running ----
jobs=$(scripts/slurm/submit -n 2 -d "$tmp/bad" tune --shapes none)
ok 'a work that fails ends, too' wait_for 120 over
is "$(scontrol show job "${jobs#* }" | grep -o 'JobState=[A-Z]*')" \
	JobState=CANCELLED 'its merge does not run'
ok 'and no database comes of it' sh -c "! test -e '$tmp/bad/t0.db'"

# ---- a sweep of training runs ----
printf 'one two three, %s.\n' $(seq 400) >"$tmp/text"
printf 'rate 1e-3 8e-3\nseed 1 2\n' >"$tmp/sweep"
set -- -q --data "$tmp/text" --length 16 --rows 2 --layers 1 --hidden 16 \
	--heads 2 --kv-heads 1 --vocab 265 --steps 12 --eval-every 4 --threads 1 \
	--sweep "$tmp/sweep"
"$T0_BUILD/t0-qwen3" train "$@" --shard 1/1 --db "$tmp/plain.db" \
	"$tmp/plain" >/dev/null
scripts/slurm/submit -n 3 -d "$tmp/learn" -o "$tmp/learnt.db" train "$@" \
	"$tmp/learnt" >/dev/null
ok 'a sweep in three shards ends' wait_for 200 over
is "$(readlink "$tmp/learnt/best")" "$(readlink "$tmp/plain/best")" \
	'the same run is the best'
ok 'with the same weights' cmp -s "$tmp/learnt/best/model.safetensors" \
	"$tmp/plain/best/model.safetensors"
learnt() {
	"$r" sql --db "$1" --csv "SELECT name, params, metric, value FROM
		v_results WHERE tool = 't0-qwen3 train' ORDER BY 1, 2, 3"
}
ok 'rows are there' test "$(learnt "$tmp/plain.db" | wc -l)" -gt 40
is "$(learnt "$tmp/learnt.db" | cksum)" "$(learnt "$tmp/plain.db" | cksum)" \
	'and are the same'

# ---- the frontier of a model's formats ----
"$T0_BUILD/t0-qwen3" make -q --model "$tmp/tiny" --shape tiny >/dev/null
set -- -q --threads 1 "$tmp/tiny"
"$T0_BUILD/t0-qwen3" quantize --frontier "$@" --shard 1/1 \
	--db "$tmp/formats.db" >/dev/null
scripts/slurm/submit -n 3 -d "$tmp/f" -o "$tmp/found.db" frontier "$@" >/dev/null
ok 'the formats of a model in three shards' wait_for 200 over
formats() { # but for times
	"$r" sql --db "$1" --csv "SELECT name, params, metric, value FROM
		v_results WHERE metric <> 'token_time' ORDER BY 1, 2, 3"
}
ok 'rows are there' test "$(formats "$tmp/formats.db" | wc -l)" -gt 60
is "$(formats "$tmp/found.db" | cksum)" "$(formats "$tmp/formats.db" | cksum)" \
	'and are the same'

# ---- cards: which are visible ----
cat >"$tmp/show" <<'SHOW'
#!/bin/sh
echo "${T0_DEVICE-none} ${T0_VISIBLE_DEVICES-none} $T0_SHARD" >"$SHOWN"
SHOW
chmod 755 "$tmp/show"
card() { # NAME=VALUE...
	env SLURM_ARRAY_TASK_ID=2 T0_SLURM_SHARDS=3 T0_SLURM_WORK=w \
		T0_SLURM_DIR="$tmp" SHOWN="$tmp/shown" "$@" \
		scripts/slurm/shard "$tmp/show" >/dev/null
	cat "$tmp/shown"
}
is "$(card A=b)" 'none none 2/3:w' 'without cards it is the default device'
is "$(card SLURM_JOB_GPUS=1,2)" 'kfd 1,2 2/3:w' 'with cards it is those'
is "$(card SLURM_JOB_GPUS=1 ROCR_VISIBLE_DEVICES=0)" 'kfd none 2/3:w' \
	'the runtime itself obeys ROCR_VISIBLE_DEVICES'

# ---- nothing is left ----
stop
is "$(daemons)" '' 'no process is left'
ok 'no munged either' sh -c "! kill -0 $munged 2>/dev/null"
munged=
plan_done
