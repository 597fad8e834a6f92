"""Compiles three Triton kernels for gfx1100 into the folder that is named."""
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + at, e / tl.sum(e, 0), at < n)


@triton.jit
def matmul(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK)
    sum = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k0 in range(0, n, BLOCK):
        p = tl.load(a + i[:, None] * n + k0 + k[None, :])
        q = tl.load(b + (k0 + k)[:, None] * n + j[None, :])
        sum = tl.dot(p, q, sum)
    tl.store(c + i[:, None] * n + j[None, :], sum)


F, H, I = "*fp32", "*fp16", "i32"
for kernel, types, block in (
    (add, {"x": F, "y": F, "out": F, "n": I}, 256),
    (softmax, {"x": F, "out": F, "n": I}, 512),
    (matmul, {"a": H, "b": H, "c": F, "n": I}, 32),
):
    made = triton.compile(
        ASTSource(kernel, {**types, "BLOCK": "constexpr"}, {"BLOCK": block}),
        target=GPUTarget("hip", "gfx1100", 32))
    name = kernel.fn.__name__
    with open(f"{sys.argv[1]}/{name}.hsaco", "wb") as f:
        f.write(made.asm["hsaco"])
    print(name, made.metadata.num_warps * 32, made.metadata.shared)
