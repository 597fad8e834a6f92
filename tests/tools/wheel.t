#!/bin/sh
# The Python wheel that `make wheel` makes: what is in it, that it installs and
# runs, and that `pytest --t0-soft` runs tests with the soft card.
. tests/tap.sh
[ -e "$T0_BUILD/wheel/t0-soft" ] ||
	skip_all 'this build has no wheel (make check builds it; sanitizers cannot be preloaded)'
for tool in python3 readelf objdump nm; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
python3 -c 'import ensurepip, venv' 2>/dev/null ||
	skip_all 'python3 makes no virtual environments (python3-venv)'
unset T0_SOFT_ROOT T0_DEVICE PYTHONPATH PYTEST_ADDOPTS PYTEST_PLUGINS VIRTUAL_ENV
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
	PIP_CONFIG_FILE=/dev/null PIP_NO_COMPILE=1 TMPDIR="$tmp"
built=$T0_BUILD/wheel

# ------------------------------------------------------------- the file
exits 0 'it is made' scripts/wheel "$built" "$tmp/one"
wheel=$(cat "$tmp/out")
(umask 077 && TZ=Asia/Tokyo scripts/wheel "$built" "$tmp/two") >/dev/null
ok 'twice the same' cmp "$wheel" "$tmp/two/${wheel##*/}"
newest=$(objdump -T "$built"/* | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1)
case "${wheel##*/}" in
t0_soft-*-py3-none-manylinux_2_"${newest#GLIBC_2.}"_"$(uname -m)".whl) right=0 ;;
*) right=1 ;;
esac
is $right 0 "its name tells the C library that it needs ($newest)"
is "$(objdump -p "$built"/* | awk '$1 == "NEEDED" { print $2 }' |
	grep -vE '^(libc|libm|ld-linux-x86-64)\.so')" '' 'and it needs no more'
is "$(nm -D --defined-only "$built"/* | grep -iE ' (XXH|json)')" '' \
	'what is linked in is not seen by the program'
mkdir "$tmp/shared"
ln -s "$T0_BUILD/t0-soft" "$T0_BUILD/libt0-soft-preload.so" "$tmp/shared/"
exits 2 'programs that need libraries are refused' scripts/wheel "$tmp/shared" \
	"$tmp/three"
has "$tmp/err" 'which not every machine has' 'and it says so'
exits 2 'a folder without them is refused' scripts/wheel "$tmp" "$tmp/three"
has "$tmp/err" 'make wheel builds it' 'and it says what to do'

cat >"$tmp/record.py" <<'END'
import base64, csv, hashlib, io, sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
info = next(n for n in z.namelist() if n.endswith("/RECORD"))
rows = list(csv.reader(io.StringIO(z.read(info).decode())))
assert sorted(r[0] for r in rows) == sorted(z.namelist()), "other files"
assert [info, "", ""] in rows
for name, digest, size in rows:
    if name != info:
        kind, value = digest.split("=", 1)
        got = hashlib.new(kind, z.read(name)).digest()
        assert base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)) == got, name
        assert int(size) == len(z.read(name)), name
modes = {n: z.getinfo(n).external_attr >> 16 & 0o777 for n in z.namelist()}
assert all(m == (0o755 if "/bin/" in n else 0o644) for n, m in modes.items()), modes
assert any(n.endswith("/licenses/NOTICE") for n in z.namelist())
END
exits 0 'RECORD names every file with its hash and size' python3 \
	"$tmp/record.py" "$wheel"

# ----------------------------------------------------------- installed
# With the pip of another one, if there is one: to make it takes seconds.
bin=$tmp/venv/bin
if [ -e "$T0_SRC/build/clients/wheels.stamp" ]; then
	without=--without-pip
	pip() {
		"$T0_SRC/build/clients/wheels/bin/pip" --python "$bin/python" "$@"
	}
else
	without=
	pip() {
		"$bin/pip" "$@"
	}
fi
# shellcheck disable=SC2086 # a word or none
exits 0 'a fresh environment' python3 -m venv $without "$tmp/venv"
exits 0 'pip installs it without an index' pip install -q "$wheel"
is "$(pip list --format freeze | sed -n 's/^t0[-_]soft==//p')" \
	"$("$T0_BUILD/t0-soft" --version |
		sed 's/^[^ ]* \([^ ]*\) (\([^+)]*\)+*)$/\1+\2/')" \
	'in the version of the program'
exits 0 'its t0-soft runs a program' "$bin/t0-soft" run -q -- \
	"$T0_BUILD/t0-run" -q --device kfd tests/data/kernels/saxpy.co saxpy \
	-g 64 -b 64 f32:2 buf:64:f32=iota out:64:f32=1 u32:64
has "$tmp/out" '1 3 5 7 9 11 13 15' 'on the card'
exits 7 'and passes its exit status on' "$bin/t0-soft" run -- sh -c 'exit 7'

cat >"$tmp/environment.py" <<'END'
import os, subprocess, sys, t0_soft
gpu = "/sys/class/kfd/kfd/topology/nodes/1/gpu_id"
env = t0_soft.environment("--vram", "17179869184")
assert env is not t0_soft.environment("--vram", "17179869184")
assert env["T0_SOFT_ROOT"] == t0_soft.environment("--vram", "17179869184")["T0_SOFT_ROOT"]
print(subprocess.check_output(["cat", gpu], env=env, text=True).strip())
print(subprocess.check_output(["cat", "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties"],
    env=env, text=True).split("size_in_bytes ")[1].split()[0])
print(t0_soft.active(), "LD_PRELOAD" in os.environ)
again = [sys.executable, "-c", "import t0_soft; print(t0_soft.active(), t0_soft.describe());"
    "e = t0_soft.environment(); print(e['LD_PRELOAD'].count('preload'))"]
subprocess.run(again, env=env, check=True)
try:
    t0_soft.environment("--kfd-minor", "20")
except RuntimeError as e:
    print("--kfd-minor" in str(e))
print(env["T0_SOFT_ROOT"], flush=True)
if len(sys.argv) > 1:
    os.kill(os.getpid(), 9)
END
exits 0 'environment() is one for children' "$bin/python" "$tmp/environment.py"
is "$(head -n 6 "$tmp/out" | tr '\n' ' ')" \
	'41852 17179869184 False False True gfx1100, 96 CUs (emulated: in software, by t0-soft) 1 True ' \
	'which have the card, as its options want it, and know it'
ok 'afterwards the files of the card are gone' test ! -e \
	"$(tail -n 1 "$tmp/out")"
exits 137 'a process that is killed' "$bin/python" "$tmp/environment.py" kill
left=$(tail -n 1 "$tmp/out")
for try in $(seq 600); do
	[ -e "$left" ] || break
	sleep 0.1
done
ok 'leaves none either' test ! -e "$left"

program=$(find "$tmp/venv" -path '*/t0_soft/bin/t0-soft')
chmod -x "$program"
exits 1 'a program that lost its x is not run' "$bin/t0-soft" run -- true
has "$tmp/err" 'install the wheel with pip' 'and it says why'
chmod +x "$program"

# --------------------------------------------------------------- pytest
files=$T0_SRC/build/clients/wheels/files
# shellcheck disable=SC2086
if ! pip install -q --find-links "$files" pytest pytest-xdist \
	2>"$tmp/err"; then
	diag 'SKIPPED: pytest is not in build/clients/wheels; scripts/clients 60 wheels fetches it'
	skip 'pytest is not there: scripts/clients 60 wheels fetches it'
	plan_done
fi
mkdir "$tmp/tests"
cat >"$tmp/tests/conftest.py" <<'END'
import os
with open(os.environ["TMPDIR"] + "/read", "a") as file:
    file.write("conftest\n")
END
cat >"$tmp/tests/test_soft.py" <<'END'
import os, subprocess, sys, pytest, t0_soft

def test_card():
    assert t0_soft.active() and os.path.exists("/dev/kfd")

def test_kernel():
    saxpy = (os.environ["T0_BUILD"] + "/t0-run -q --device kfd "
        + os.environ["T0_SRC"] + "/tests/data/kernels/saxpy.co saxpy -g 64 -b 64 "
        "f32:2 buf:64:f32=iota out:64:f32=1 u32:64")
    out = subprocess.check_output(saxpy.split(), text=True)
    assert "1 3 5 7 9 11 13 15" in out

@pytest.mark.parametrize("text", ["a b", "$HOME 'x'"])
def test_text(text):
    assert text == "a b"

def test_worker(worker_id):
    assert worker_id in ("gw0", "gw1") and t0_soft.active()

def test_without():
    assert not t0_soft.active() and "T0_SOFT_ROOT" not in os.environ

def test_prints():
    print("said on standard output")
    os.write(2, b"written to standard error\n")
    assert False
END
# tested STATUS NAME ARGUMENT...: of pytest, in the folder of the tests
# shellcheck disable=SC2317 # exits calls it
inside() (
	cd "$tmp/tests" && "$@"
)
tested() {
	status=$1 name=$2
	shift 2
	exits "$status" "$name" inside "$bin/pytest" -p no:cacheprovider "$@"
}
# What the last one counted.
counted() {
	is "$(tail -n 1 "$tmp/out" | grep -oE '[0-9]+ (passed|failed)' |
		tr '\n' ' ')" "$1 " "$2"
}
tested 0 'without --t0-soft pytest is as it was' -k without
rm "$tmp/read"
tested 0 'with --t0-soft' --t0-soft 'test_soft.py::test_text[a b]' \
	test_soft.py::test_card test_soft.py::test_kernel
counted '3 passed' 'tests have the card, kernels run, arguments keep blanks'
has "$tmp/out" 't0-soft: gfx1100, 96 CUs (emulated' 'the header says which card'
is "$(cat "$tmp/read")" conftest 'the first process reads no conftest.py'
tested 1 'failing tests are its exit status' --t0-soft \
	"test_soft.py::test_text[\$HOME 'x']" test_soft.py::test_prints
counted '2 failed' 'arguments keep quotes'
is "$(grep -cE '^(said on standard output|written to standard error)$' \
	"$tmp/out")" 2 'what a test printed is shown once'
echo '[pytest]
addopts = --t0-soft' >"$tmp/tests/pytest.ini"
tested 0 'addopts may have it, and workers of xdist' -n 2 -k 'worker or card'
counted '2 passed' 'have the card'
has "$tmp/out" '2 workers' 'both of them'
rm "$tmp/tests/pytest.ini"
exits 0 'python -m pytest does it, too' inside "$bin/python" -B -m pytest \
	-p no:cacheprovider --t0-soft -k card
exits 5 'and a program that calls pytest' inside "$bin/python" -c \
	'import pytest, sys; sys.exit(pytest.main(["--t0-soft", "-k", "nothing"]))'
has "$tmp/out" 't0-soft: gfx1100' 'which is started again as it was'
exits 0 'within t0-soft run it goes on' inside "$bin/t0-soft" run -q -- \
	"$bin/pytest" -p no:cacheprovider --t0-soft -k card
tested 4 'without the plugin the option is unknown' -p no:t0-soft --t0-soft
has "$tmp/err" 'unrecognized arguments: --t0-soft' 'to pytest'
exits 4 'where the library was not loaded it does not try for ever' inside env \
	T0_SOFT_ROOT=/nowhere "$bin/pytest" --t0-soft
has "$tmp/err" 'did not load it' 'and says what is wrong'
is "$(find "$tmp" -name 't0-soft-*' -type d)" '' 'no folder is left behind'
plan_done
