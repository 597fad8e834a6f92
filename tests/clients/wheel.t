#!/bin/sh
# The Python wheel where its users live: a fresh environment with tinygrad and
# Triton, in which `pytest --t0-soft` runs tests that compute on the card.
. tests/clients/clients.sh
[ -e "$T0_BUILD/wheel/t0-soft" ] ||
	skip_all 'this build has no wheel (make check builds it)'
fetched wheels
unset PYTHONPATH PYTEST_ADDOPTS PYTEST_PLUGINS VIRTUAL_ENV
export PIP_NO_INDEX=1 PIP_FIND_LINKS="$part/files" PIP_NO_CACHE_DIR=1 \
	PIP_NO_COMPILE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONFIG_FILE=/dev/null

exits 0 'the wheel is made' scripts/wheel "$T0_BUILD/wheel" "$tmp"
wheel=$(cat "$tmp/out")
python=$tmp/venv/bin/python
exits 0 'a fresh environment' python3 -m venv --without-pip "$tmp/venv"
exits 0 'pip installs it beside tinygrad' "$part/bin/pip" --python "$python" \
	install -q "$wheel" pytest pytest-xdist tinygrad numpy
cp tests/data/clients/test_tinygrad.py tests/data/clients/test_triton.py "$tmp"

# tested STATUS NAME ARGUMENT...: of pytest, in the folder of the tests
# shellcheck disable=SC2317 # exits calls it
inside() (
	cd "$tmp" && timeout -k 5 200 "$@"
)
tested() {
	status=$1 name=$2
	shift 2
	exits "$status" "$name" inside "$tmp/venv/bin/pytest" --t0-soft "$@"
}
if /sbin/ldconfig -p | grep -q libLLVM; then
	export CACHEDB="$tmp/tinygrad.db" DEV=AMD
	tested 0 'tinygrad computes' -n 2 test_tinygrad.py
	has "$tmp/out" '4 passed' 'in all tests'
	has "$tmp/out" 't0-soft: gfx1100' 'on the card'
else
	diag 'SKIPPED: tinygrad needs libLLVM, which is not installed (libllvm19)'
	skip 'libLLVM is not installed'
fi

# As it was fetched: a copy of it would be one of a gigabyte.
triton=$(find "$T0_SRC/build/clients/triton" -name triton -path '*-packages/*' \
	-prune -print 2>/dev/null | head -n 1)
if [ -e "$T0_SRC/build/clients/triton.stamp" ] && [ -n "$triton" ]; then
	echo "${triton%/*}" >"$("$python" -c \
		'import sysconfig; print(sysconfig.get_path("purelib"))')/triton.pth"
	export TRITON_CACHE_DIR="$tmp/cache" T0_RUN="$T0_BUILD/t0-run" \
		TRITON_KERNELS="$T0_SRC/tests/data/clients/triton-kernels.py"
	tested 0 'kernels of Triton compute' test_triton.py
	has "$tmp/out" '4 passed' 'in all tests'
else
	diag 'SKIPPED: Triton is not there; make test-clients fetches it'
	skip 'Triton is not there: make test-clients fetches it'
fi
is "$(find "$TMPDIR" -name 't0-soft-*')" '' 'no folder is left behind'
plan_done
