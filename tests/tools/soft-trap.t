#!/bin/sh
# t0-soft run --trap: programs that make system calls themselves see the gfx1100
# in software: statically linked ones, and those without any library.
. tests/tap.sh

soft=$T0_BUILD/t0-soft
[ -e "$T0_BUILD/soft-trap" ] ||
	skip_all 'this build has no loader (sanitizers, or no static libc)'
unset T0_SOFT_ROOT T0_DEVICE LD_PRELOAD
TMPDIR=$tmp
export TMPDIR

run() {
	timeout -k 5 60 "$soft" run --trap "$@"
}
if ! run -- true 2>"$tmp/err" && grep -q 'refuses a seccomp' "$tmp/err"; then
	skip_all "$(cat "$tmp/err")"
fi
ok 'a client without any library compiles' gcc -Wall -Wextra -O1 -I. -static \
	-nostdlib -fno-stack-protector -fno-builtin -o "$tmp/raw" \
	tests/data/clients/raw.c
ok 'a statically linked one, too' gcc -Wall -D_GNU_SOURCE -static -pthread \
	-o "$tmp/static" tests/data/clients/hooks.c

# ------------------------------------------------------- exit and signals
exits 7 'the exit status is passed on' run -- sh -c 'exit 7'
exits 143 'and the signal that ended it' run -- "$tmp/raw" killed
exits 2 'a program that is not there is trouble' run -- no-such-program
exits 2 'without --trap a static program is warned of' \
	timeout 60 "$soft" run -- "$tmp/raw"
has "$tmp/err" 'will not see the device without --trap' 'with the remedy'

# ------------------------------------------------------ without a library
exits 9 'a kernel runs, and all threads end by themselves' run -- \
	"$tmp/raw" run
{
	printf '%s\n' blocked complete '3 signals'
	i=0
	while [ "$i" -lt 64 ]; do
		echo $((i * i + 1000))
		i=$((i + 1))
	done
} >"$tmp/wanted"
ok 'it computed what was asked; signals came through the wait' \
	cmp "$tmp/out" "$tmp/wanted"
exits 0 'another version of the driver' run --kfd-minor 12 -- "$tmp/raw" version
is "$(cat "$tmp/out")" 1.12 'is seen'
exits 0 'forked and executed programs' run -- "$tmp/raw" fork
is "$(tr '\n' ' ' <"$tmp/out")" '9 5 1.14 0 ' \
	'a child gets EBADF of its parents node; without environment, it works'
exits 0 'pages of the program: a user pointer and an SVM range' run -- \
	"$tmp/raw" pages
sed -i '1,3d' "$tmp/wanted"
awk '{ print $1 + 1000 } END { print "11 is the signal of a fault" }' \
	"$tmp/wanted" >"$tmp/more"
ok 'are read and written, and faults are told to the program' \
	cmp "$tmp/out" "$tmp/more"

# ------------------------------------------------------------ static libc
# Its child of fork() opens the device without executing anything.
alone='and its own device when it opens one'
run -- "$tmp/static" >"$tmp/out" 2>"$tmp/err"
is "$(grep -c . "$tmp/out")" "$(grep -c 'say(' tests/data/clients/hooks.c |
	awk '{ print $1 - 1 }')" 'the static client comes to its end'
while read -r result name; do
	wanted=good
	[ "$name" != "$alone" ] || wanted=bad
	is "$result" "$wanted" "static: $name"
done <"$tmp/out"
has "$tmp/err" 'a child of fork() has no device until it executes a program' \
	'which is refused by name'

# --------------------------------------------------------------------- Go
if command -v go >/dev/null; then
	ok 'a client in Go compiles' env GO111MODULE=off CGO_ENABLED=0 \
		GOCACHE="$tmp/cache" go build -o "$tmp/go" tests/data/clients/raw.go
	exits 0 'and runs' run -- "$tmp/go"
	is "$(tr '\n' ' ' <"$tmp/out")" '[1 14] 41852 card0 renderD128 true ' \
		'with threads, collections, a program and a recovered fault'
else
	skip 'there is no go'
fi

# -------------------------------------------------------- other programs
exits 0 'nodes are character devices' run -- stat -c '%F %t:%T' /dev/kfd
is "$(cat "$tmp/out")" 'character special file 1ff:0' 'for dynamic programs'
printf '#!/bin/sh -e\necho "$#" "$1"\nls "$2"\n' >"$tmp/script"
chmod +x "$tmp/script"
exits 0 'scripts work' run -- "$tmp/script" 'a b' /sys/class/drm
is "$(tr '\n' ' ' <"$tmp/out")" '2 a b card0 renderD128 ' \
	'and what they execute'
# shellcheck disable=SC2016 # the shell inside expands it
exits 0 'many arguments' run -- sh -c \
	'env -i /bin/sh -c '\''echo "$#"'\'' $(seq 300)'
is "$(cat "$tmp/out")" 299 'are passed on'
exits 126 'what is no program' run -- sh -c '"$1"' sh "$tmp/err"
exits 0 'our own runtime' run -- "$T0_BUILD/t0-run" -q --device kfd \
	tests/data/kernels/saxpy.co saxpy -g 64 -b 64 f32:2 \
	buf:64:f32=iota out:64:f32=1 u32:64
has "$tmp/out" '1 3 5 7 9 11 13 15' 'computes'
if command -v python3 >/dev/null; then
	cat >"$tmp/client.py" <<-'EOF'
		import ctypes
		call = ctypes.CDLL(None).syscall
		fd = call(2, b"/dev/kfd", 2)
		version = (ctypes.c_uint32 * 2)()
		print(call(16, fd, ctypes.c_long(0x80084b01), version), *version)
	EOF
	exits 0 'raw calls of a program with libraries' run -- python3 \
		"$tmp/client.py"
	is "$(cat "$tmp/out")" '0 1 14' 'find the device'
fi
is "$(find "$TMPDIR" -name 't0-soft-*')" '' 'no folder is left behind'
plan_done
