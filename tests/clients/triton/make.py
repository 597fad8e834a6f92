"""make.py DIR - compile every case for gfx1100 into DIR.

NAME.hsaco is the object, NAME.amdgcn its assembly, NAME.json what Triton says of it, NAME.I.in the memory
of argument I before the run, NAME.I.type, .want and .error what it has to be
after it.  DIR/jobs has a line for each, its words separated by tabs: NAME, the
options of t0-run, object, kernel, arguments.  No GPU is needed.
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
import triton
from triton.backends.compiler import GPUTarget
import attention
import matmul
import rows
import shared
from case import Memory

TARGET = GPUTarget("hip", "gfx1100", 32)


def type_of(value):
    if isinstance(value, Memory):
        return value.type()
    return "i32" if isinstance(value, int) else "fp32"


def compiled(case):
    signature = {n: type_of(v) for n, v in case.args.items()}
    signature.update({n: "constexpr" for n in case.constants})
    order = {n: signature[n] for n in case.kernel.arg_names}
    source = triton.compiler.ASTSource(fn=case.kernel, signature=order,
                                       constexprs=case.constants)
    return triton.compile(source, target=TARGET, options={
        "num_warps": case.warps, "num_stages": case.stages})


def operands(folder, case):
    """In the order of the kernel's parameters, then two that Triton adds."""
    words = []
    for name in case.kernel.arg_names:
        value = case.args.get(name)
        if name in case.constants:
            continue
        if not isinstance(value, Memory):
            words.append(f"{'i32' if isinstance(value, int) else 'f32'}:"
                         f"{value!r}")
            continue
        path = f"{folder}/{case.name}.{len(words)}"
        with open(path + ".in", "wb") as f:
            f.write(value.bytes())
        words.append(f"buf:{len(value.bytes())}=file:{path}.in>{path}.out")
    return words + ["null", "null"]


def main(folder):
    os.makedirs(folder, exist_ok=True)
    os.environ["TRITON_CACHE_DIR"] = folder + "/cache"
    jobs = []
    for module in matmul, rows, attention, shared:
        for case in module.cases():
            kernel = compiled(case)
            said = kernel.metadata._asdict()
            path = f"{folder}/{case.name}"
            with open(path + ".hsaco", "wb") as f:
                f.write(kernel.asm["hsaco"])
            with open(path + ".amdgcn", "w") as f:
                f.write(kernel.asm["amdgcn"])
            with open(path + ".json", "w") as f:
                json.dump({n: said[n] for n in (
                    "name", "shared", "num_warps", "num_stages",
                    "triton_version")}, f)
            threads = 32 * case.warps
            grid = (threads * case.grid[0], *case.grid[1:])
            jobs.append("\t".join([
                case.name, "--lds", str(said["shared"]),
                "--grid", ",".join(map(str, grid)), "--block", str(threads),
                path + ".hsaco", said["name"], *operands(folder, case)]))
    with open(folder + "/jobs", "w") as f:
        f.write("\n".join(jobs) + "\n")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
