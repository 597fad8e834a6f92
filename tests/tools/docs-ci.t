#!/bin/sh
# The blocks of docs/ci.md work, as far as they can here: commands run in a
# copy of the repository that the page speaks of, with the wheel of this build;
# files of CI hosts and of containers are read, and the steps in them run.
. tests/tap.sh
page=docs/ci.md
fetched=$T0_SRC/build/clients/wheels
[ -e "$T0_BUILD/wheel/t0-soft" ] ||
	skip_all 'this build has no wheel (make check builds it; sanitizers cannot be preloaded)'
[ -e "$fetched.stamp" ] ||
	skip_all 'build/clients/wheels is not there: scripts/clients 60 wheels fetches it'
unset T0_SOFT_ROOT T0_DEVICE PYTHONPATH PYTEST_ADDOPTS PYTEST_PLUGINS VIRTUAL_ENV
export PIP_NO_INDEX=1 PIP_FIND_LINKS="$fetched/files" \
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
	PIP_CONFIG_FILE=/dev/null PIP_NO_COMPILE=1 TMPDIR="$tmp"

# Each block becomes a file NUMBER.LANGUAGE, and each step of it one in
# NUMBER.steps: commands of shells in one list, whatever the host calls it.
cat >"$tmp/blocks.py" <<'END'
import json, os, re, sys, yaml
page, to = sys.argv[1:]

def steps_of(language, text):
    if language == "sh":
        return [text]
    if language == "dockerfile":
        kinds = {"FROM", "WORKDIR", "COPY", "RUN", "CMD"}
        lines = [line.split(None, 1) for line in text.splitlines() if line]
        assert all(kind in kinds for kind, _ in lines), "unknown instruction"
        assert lines[0][0] == "FROM"
        return [" ".join("'%s'" % w for w in json.loads(rest)) if kind == "CMD"
            else f"cp -r -T ../repository/{rest}" if kind == "COPY" else rest
            for kind, rest in lines if kind in ("RUN", "CMD", "COPY")]
    file = yaml.safe_load(text)
    if "jobs" in file:  # GitHub, Forgejo
        assert True in file or "on" in file  # YAML 1.1 takes "on" for true
        assert all("runs-on" in job for job in file["jobs"].values())
        return [s["run"] for job in file["jobs"].values() for s in job["steps"]
            if "run" in s or not s["uses"]]
    if "steps" in file:  # Woodpecker
        assert all({"name", "image"} <= set(s) for s in file["steps"])
        return [c for s in file["steps"] for c in s["commands"]]
    return [c for job in file.values() for c in job["script"]]  # GitLab

blocks = re.findall(r"^```(\w*)\n(.*?)^```$", open(page, encoding="utf-8").read(), re.M | re.S)
for n, (language, text) in enumerate(blocks):
    with open(f"{to}/{n:02}.{language}", "w") as file:
        file.write(text)
    if language != "python":
        for i, step in enumerate(steps_of(language, text)):
            with open(f"{to}/{n:02}.step{i:02}", "w") as file:
                file.write(step.rstrip() + "\n")
END
mkdir "$tmp/blocks" "$tmp/repository" "$tmp/repository/ci" "$tmp/repository/tests"
python3 -c 'import ensurepip, venv' 2>/dev/null ||
	skip_all 'python3 makes no virtual environments (python3-venv)'
exits 0 'every block can be read' "$fetched/bin/python" "$tmp/blocks.py" "$page" \
	"$tmp/blocks"
is "$(find "$tmp/blocks" -name '*.yaml' | wc -l)" 4 'four of them are of CI hosts'
is "$(find "$tmp/blocks" -name '*.python' | wc -l)" 1 'one is a test'
cp "$tmp"/blocks/*.python "$tmp/repository/tests/test_card.py"
exits 0 'the wheel is made' scripts/wheel "$T0_BUILD/wheel" "$tmp/repository/ci"

# Hosts bring along a Python with pip: here it is the one of the first block.
# Before the container's the wheel is taken out of it once more.  Steps that two
# hosts have in common run once.
# run_step FILE: in the folder of its block
# shellcheck disable=SC2317 # exits calls it
run_step() (
	cd "$tmp/work" && PATH="$tmp/by-hand/venv/bin:$PATH" timeout -k 5 100 \
		sh -e "$1"
)
# To install it takes long (tests/clients/wheel.t does): pip finds the fetched one.
have_tinygrad() {
	[ -e "$T0_SRC/build/clients/tinygrad.stamp" ] &&
		find "$T0_SRC/build/clients/tinygrad" -name site-packages \
			>"$(echo "$tmp"/by-hand/venv/lib/python3*/site-packages)/tinygrad.pth"
}
: >"$tmp/hosts"
for block in "$tmp"/blocks/*.sh "$tmp"/blocks/*.dockerfile "$tmp"/blocks/*.yaml; do
	case $block in
	*.sh)
		# They follow one another in one folder.
		[ -e "$tmp/by-hand" ] || cp -r "$tmp/repository" "$tmp/by-hand"
		ln -sfn by-hand "$tmp/work"
		;;
	*)
		rm -rf "$tmp/job" "$tmp/work"
		mkdir "$tmp/job"
		case $block in
		*.yaml) cp -r "$tmp/repository/." "$tmp/job" ;;
		*) "$tmp/by-hand/venv/bin/pip" uninstall -q -y t0-soft pytest ;;
		esac
		ln -sfn job "$tmp/work"
		;;
	esac
	for step in "${block%.*}".step*; do
		name="${block##*/}: $(head -n 1 "$step")"
		ok "$name (syntax)" sh -n "$step"
		if grep -qwE 'apt-get|podman|docker' "$step"; then
			skip "$name: needs the network and rights, so it is not run"
			continue
		elif grep -q 'DEV=AMD' "$step" &&
			! /sbin/ldconfig -p | grep -q libLLVM; then
			skip "$name: libLLVM is not installed (libllvm19)"
			continue
		elif grep -q 'DEV=AMD' "$step"; then
			have_tinygrad
		fi
		case $block in
		*.yaml)
			grep -qxF "$(cat "$step")" "$tmp/hosts" && continue
			cat "$step" >>"$tmp/hosts"
			;;
		esac
		exits 0 "$name" run_step "$step"
		if grep -q 'pytest.*--t0-soft' "$step"; then
			has "$tmp/out" 't0-soft: gfx1100' "$name: with the card"
			has "$tmp/out" passed "$name: which tests use"
		fi
	done
done
plan_done
