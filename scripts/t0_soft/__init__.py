"""The gfx1100 in software as the card of programs that Python starts.

    subprocess.run(["rocminfo"], env=t0_soft.environment())

What it computes is what a card computes; its figures are emulated.
"""
import atexit
import os
import subprocess
import sys
import tempfile

_library = "libt0-soft-preload.so"
_variables = ("LD_PRELOAD", "T0_SOFT_ROOT", "T0_SOFT_OPTIONS", "T0_SOFT_LOG")
_cards = {}


def program():
    """The path of the program t0-soft."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "t0-soft")
    if not os.access(path, os.X_OK):
        raise RuntimeError(
            f"{path}: wanted an executable program, and it is not; install the "
            "wheel with pip, and not on a file system mounted noexec")
    return path


def active():
    """Whether this process has the software card: its library is loaded."""
    with open("/proc/self/maps", "rb") as maps:
        return any(line.rstrip().endswith(_library.encode()) for line in maps)


def describe():
    """One line about the card that this process has, from its files in /sys."""
    where = "/sys/class/kfd/kfd/topology/nodes/1/properties"
    with open(where, encoding="ascii") as file:
        facts = {name: int(value) for name, value in map(str.split, file)}
    version = facts["gfx_target_version"]
    name = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return (f"{name}, {facts['simd_count'] // facts['simd_per_cu']} CUs "
            "(emulated: in software, by t0-soft)")


def _hold(options):
    """A `t0-soft run` that keeps a card's files until this process ends.

    It waits for the end of its standard input, which comes even when this
    process is killed."""
    names = " ".join(f'"${name}"' for name in _variables)
    with tempfile.TemporaryFile() as errors:
        holder = subprocess.Popen(
            [program(), "run", "-q", *options, "--", "sh", "-c",
             rf"printf '%s\0' {names}; exec cat >/dev/null"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True)
        text = b""
        while text.count(b"\0") < len(_variables):
            more = os.read(holder.stdout.fileno(), 65536)
            if not more:
                status = holder.wait()
                holder.stdin.close()
                holder.stdout.close()
                errors.seek(0)
                raise RuntimeError(
                    f"t0-soft run ended with {status}, wanted a card: "
                    f"{errors.read().decode(errors='replace').strip()}")
            text += more
    owner = os.getpid()

    def release():
        holder.stdin.close()
        if os.getpid() == owner:
            holder.terminate()
            holder.wait()
        holder.stdout.close()

    atexit.register(release)
    return dict(zip(_variables, os.fsdecode(text).split("\0")))


def environment(*options):
    """os.environ, and what gives a child process the software card.

    OPTIONS are those of `t0-soft run`, such as "--threads", "2".  The card is
    there until this process ends.  Within `t0-soft run` the environment is as
    it should be already; it cannot have options then."""
    result = dict(os.environ)
    if active():
        if options:
            raise RuntimeError(
                f"got options {options} for a card, and this process has one "
                "already; give them to the t0-soft run that started it")
        return result
    if options not in _cards:
        _cards[options] = _hold(options)
    card = {name: value for name, value in _cards[options].items() if value}
    old = os.environ.get("LD_PRELOAD")
    ours = card["LD_PRELOAD"].split(":", 1)[0]
    card["LD_PRELOAD"] = f"{ours}:{old}" if old else ours
    result.update(card)
    return result


def main():
    """The command t0-soft."""
    try:
        path = program()
    except RuntimeError as e:
        sys.exit(f"t0-soft: {e}")
    os.execv(path, ["t0-soft", *sys.argv[1:]])
