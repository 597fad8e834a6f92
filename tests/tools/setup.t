#!/bin/sh
# scripts/setup, with a dpkg, an apt and a sudo of our own that only note what
# they are asked: nothing is installed here.
. tests/tap.sh

mkdir "$tmp/bin" "$tmp/tree" "$tmp/tree/scripts"
cp scripts/setup "$tmp/tree/scripts/setup"
setup=$tmp/tree/scripts/setup
for tool in sh env cat dirname mkdir grep sed; do
	ln -s "$(command -v $tool)" "$tmp/bin/$tool"
done

# fake NAME: a command whose script is stdin
fake() {
	{ echo '#!/bin/sh' && cat; } >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
# $tmp/installed has a package a line; apt-get adds to it.
fake_dpkg() {
	fake dpkg-query <<'END'
shift 3
for package; do
	grep -qx "$package" "$FAKE/installed" && echo "$package installed"
done
exit 1
END
}
fake_dpkg
fake apt-get <<'END'
echo "apt-get $*" >>"$FAKE/log"
[ "${NETWORK-up}" = up ] || exit 100
case " $* " in
*' install '*)
	for word in ${*##* --no-install-recommends }; do
		[ "$word" = "${GONE-}" ] && exit 100
		echo "$word" >>"$FAKE/installed"
	done
	;;
esac
END
fake id <<'END'
echo "${FAKE_UID-0}"
END

fake true </dev/null

FAKE=$tmp
export FAKE

# fresh: a machine with nothing but git and make
fresh() {
	rm -rf "$tmp/tree/build" "$tmp/bin/sudo"
	echo make >"$tmp/installed"
	: >"$tmp/log"
}
# setup STATUS NAME LEVEL [VARIABLE=VALUE...]
setup() {
	status=$1
	name=$2
	level=$3
	shift 3
	exits "$status" "$name" env PATH="$tmp/bin" "$@" sh "$setup" "$level" \
		</dev/null
}

fresh
setup 0 'root: what is missing is installed' build
has "$tmp/log" 'apt-get -q -y' 'without a question'
has "$tmp/log" 'DPkg::Lock::Timeout=300' 'waiting for other package managers'
has "$tmp/installed" libsqlite3-dev 'a library is there then'
is "$(grep -c ' update' "$tmp/log")" 1 'the package lists are fetched once'
is "$(grep -c clang "$tmp/log")" 0 'and the build needs no LLVM'
: >"$tmp/log"
setup 0 'all present: nothing to do' build
is "$(cat "$tmp/log")" '' 'and apt-get is not called'
is "$(cat "$tmp/err")" '' 'and nothing is said'
setup 0 'the tests need more' test
has "$tmp/installed" llvm-19 'the oracles are installed'
has "$tmp/installed" perl 'and prove'

fresh
setup 0 'the wheel needs Python' wheel
has "$tmp/installed" python3 'which is there then'

fresh
setup 2 'make install installs no packages' install
has "$tmp/err" 'missing packages: ' 'it says what is missing'
has "$tmp/err" 'sudo apt-get update' 'and what to run'
is "$(cat "$tmp/log")" '' 'and calls nothing'
setup 2 'no level' ''
has "$tmp/err" 'scripts/setup build' 'is answered with the usage'

fresh
setup 2 'neither root nor sudo: exit 2' build FAKE_UID=1000
has "$tmp/err" 'sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev pkg-config' \
	'the command to run is printed'
is "$(cat "$tmp/log")" '' 'and apt-get is not called'

fresh
fake sudo <<'END'
echo "sudo $*" >>"$FAKE/log"
[ "$1" = -n ] && shift
exec "$@"
END
setup 0 'sudo: what is missing is installed' build FAKE_UID=1000
has "$tmp/log" 'sudo -n env DEBIAN_FRONTEND=noninteractive apt-get' \
	'through sudo, without a password prompt'

fresh
fake sudo <<'END'
exit 1
END
setup 2 'sudo that wants a password, and no terminal: exit 2' build \
	FAKE_UID=1000
rm "$tmp/bin/sudo"

fresh
setup 2 'no network: exit 2' build NETWORK=down
has "$tmp/err" 'apt-get could not install: gcc' 'and the packages are named'

fresh
setup 0 'no LLVM 19 to be had: go on' test GONE=llvm-19
has "$tmp/err" 'WARNING: without llvm-19' 'with a warning'
: >"$tmp/log"
setup 0 'the second time as well' test GONE=llvm-19
has "$tmp/err" 'WARNING: without llvm-19' 'with the same warning'
is "$(cat "$tmp/log")" '' 'but without asking apt-get again'

fresh
setup 0 'everything but LLVM' build
setup 0 'perl and sqlite3 by hand' test GONE=llvm-19
: >"$tmp/log"
rm -rf "$tmp/tree/build"
setup 0 'no root, and only LLVM is missing: go on' test FAKE_UID=1000
has "$tmp/err" 'WARNING' 'with a warning'

fresh
rm "$tmp/bin/dpkg-query"
setup 0 'not Debian: go on' build
has "$tmp/err" 'not a Debian system' 'and say what is needed'

# make by itself installs nothing.
fresh
fake_dpkg
fake pkg-config <<'END'
exit 1
END
mkdir "$tmp/tree/base"
cp "${T0_SRC:-.}/GNUmakefile" "$tmp/tree"
echo '#include <no/such/header.h>' >"$tmp/tree/base/a.c"
exits 2 'make without the packages fails' env PATH="$tmp/bin:$PATH" \
	make -C "$tmp/tree" build/rel/base/a.o
has "$tmp/err" 'sudo apt-get install -y --no-install-recommends gcc' \
	'and says what to run'
ok 'before any compiler runs' sh -c "! grep -q header '$tmp/err'"
is "$(cat "$tmp/log")" '' 'and installs nothing'

setup 2 'an unknown level is refused' tset
has "$tmp/err" 'got "tset", wanted a level: build, test, deb, install, wheel or slurm' 'with a reason'

# A target builds every tool that its commands name: make alone built all before.
awk '
	/^[a-z-]+:/ { target = $1; have = $0; next }
	!/^\t/ { target = ""; next }
	target && /call ready/ { have = have " " $0; next }
	target {
		line = $0
		while (match(line, /\$\(?B\)?\/t0-[a-z0-9]+/)) {
			tool = substr(line, RSTART, RLENGTH)
			sub(/.*t0-/, "", tool)
			line = substr(line, RSTART + RLENGTH)
			if (have !~ /[ ,]all[ ,)]/ &&
			    have !~ ("(t0-|[ ,])" tool "([ ,)]|$)"))
				print target, "t0-" tool
			seen++
		}
	}
	END { print seen > "/dev/stderr" }' GNUmakefile >"$tmp/out" 2>"$tmp/err"
is "$(cat "$tmp/out")" '' 'targets build the tools that they run'
ok 'some do' test "$(cat "$tmp/err")" -gt 10
plan_done
