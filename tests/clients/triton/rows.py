"""rows.py - kernels of rows: softmax, norms and their gradients, losses."""
import numpy as np
import triton
import triton.language as tl
from case import Case, ERROR, Memory, memory, random, rounded


@triton.jit
def softmax(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + i, mask=i < width,
                other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * width + i, (e / tl.sum(e, axis=0)).to(
        y.dtype.element_ty), mask=i < width)


@triton.jit
def softmax_tile(x, y, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    v = tl.load(x + at).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=1)[:, None])
    tl.store(y + at, (e / tl.sum(e, axis=1)[:, None]).to(y.dtype.element_ty))


@triton.jit
def log_softmax_online(x, y, width, BLOCK: tl.constexpr):
    """One pass for the maximum and the sum, a second one for the result."""
    row = tl.program_id(0)
    high = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, width, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * width + i, mask=i < width, other=-1e30)
        more = tl.maximum(high, v)
        total = total * tl.exp(high - more) + tl.exp(v - more)
        high = more
    top = tl.max(high, axis=0)
    log = tl.log(tl.sum(total * tl.exp(high - top), axis=0)) + top
    for at in range(0, width, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * width + i, mask=i < width)
        tl.store(y + row * width + i, v - log, mask=i < width)


@triton.jit
def layernorm(x, w, b, y, mean, rstd, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + i, mask=i < width, other=0.0).to(tl.float32)
    m = tl.sum(v, axis=0) / width
    d = tl.where(i < width, v - m, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, axis=0) / width + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    scale = tl.load(w + i, mask=i < width)
    shift = tl.load(b + i, mask=i < width)
    tl.store(y + row * width + i, (d * r * scale + shift).to(
        y.dtype.element_ty), mask=i < width)


@triton.jit
def rmsnorm(x, w, y, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, width, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * width + i, mask=i < width, other=0.0).to(
            tl.float32)
        squares += v * v
    r = tl.rsqrt(tl.sum(squares, axis=0) / width + eps)
    for at in range(0, width, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * width + i, mask=i < width).to(tl.float32)
        scale = tl.load(w + i, mask=i < width)
        tl.store(y + row * width + i, (v * r * scale).to(y.dtype.element_ty),
                 mask=i < width)


@triton.jit
def layernorm_input_gradient(dy, x, w, mean, rstd, dx, width,
                             BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    keep = i < width
    g = tl.load(dy + row * width + i, mask=keep, other=0.0)
    v = tl.load(x + row * width + i, mask=keep, other=0.0)
    s = tl.load(w + i, mask=keep, other=0.0)
    r = tl.load(rstd + row)
    h = tl.where(keep, (v - tl.load(mean + row)) * r, 0.0)
    gs = g * s
    a = tl.sum(h * gs, axis=0) / width
    b = tl.sum(gs, axis=0) / width
    tl.store(dx + row * width + i, (gs - (h * a + b)) * r, mask=keep)


@triton.jit
def column_sums(x, y, rows, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    col = tl.arange(0, WIDTH)
    sums = tl.zeros((ROWS, WIDTH), tl.float32)
    for at in range(0, rows, ROWS):
        row = at + tl.arange(0, ROWS)
        sums += tl.load(x + row[:, None] * WIDTH + col[None, :],
                        mask=row[:, None] < rows, other=0.0)
    tl.store(y + col, tl.sum(sums, axis=0))


@triton.jit
def cross_entropy(x, label, loss, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + i, mask=i < width, other=float("-inf"))
    top = tl.max(v, axis=0)
    log = tl.log(tl.sum(tl.exp(v - top), axis=0)) + top
    right = tl.load(x + row * width + tl.load(label + row))
    tl.store(loss + row, log - right)


@triton.jit
def merged(n0, m0, s0, n1, m1, s1):
    n = n0 + n1
    share = tl.where(n == 0, 0.0, n1 / n)
    d = m1 - m0
    return n, m0 + d * share, s0 + s1 + d * d * n0 * share


@triton.jit
def variance(x, y, width, BLOCK: tl.constexpr):
    """Welford's by pairs: a reduction of three values at once."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + i, mask=i < width, other=0.0)
    n = tl.where(i < width, 1.0, 0.0)
    n, mean, squares = tl.reduce((n, v, v * 0), 0, merged)
    tl.store(y + row * 2, mean)
    tl.store(y + row * 2 + 1, squares / n)


def soft(v):
    e = np.exp(v - v.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_cases():
    for kind, width, block, warps in (("f32", 100, 128, 1),
                                      ("f32", 700, 1024, 4),
                                      ("f16", 300, 512, 4),
                                      ("bf16", 513, 1024, 8)):
        x = rounded(random(200 + width).standard_normal((3, width)) * 3, kind)
        yield Case(f"softmax_{kind}_{width}_w{warps}", softmax, (3, 1, 1),
                   {"x": memory(x, kind),
                    "y": memory(np.zeros(x.shape), kind,
                                soft(x.astype(np.float64)), ERROR[kind]),
                    "width": width}, {"BLOCK": block}, warps)
    for kind, rows, width, warps in (("f32", 4, 64, 2), ("f16", 8, 128, 4)):
        x = rounded(random(220).standard_normal((rows * 2, width)), kind)
        yield Case(f"softmax_tile_{kind}", softmax_tile, (2, 1, 1),
                   {"x": memory(x, kind),
                    "y": memory(np.zeros(x.shape), kind,
                                soft(x.astype(np.float64)), ERROR[kind])},
                   {"ROWS": rows, "WIDTH": width}, warps)
    x = random(230).standard_normal((2, 333)).astype(np.float32)
    yield Case("log_softmax_online", log_softmax_online, (2, 1, 1),
               {"x": Memory(x),
                "y": Memory(np.zeros_like(x), np.log(soft(x.astype(
                    np.float64))), ERROR["f32"]), "width": 333},
               {"BLOCK": 128}, 4)


def norm_cases():
    eps = 1e-5
    for kind, width, block, warps in (("f32", 200, 256, 4),
                                      ("f16", 500, 512, 8),
                                      ("bf16", 96, 128, 1)):
        g = random(240 + width)
        x = rounded(g.standard_normal((3, width)) + 1, kind)
        w, b = g.standard_normal((2, width)).astype(np.float32)
        v = x.astype(np.float64)
        m = v.mean(axis=1)
        r = 1 / np.sqrt(v.var(axis=1) + eps)
        yield Case(f"layernorm_{kind}_{width}", layernorm, (3, 1, 1),
                   {"x": memory(x, kind), "w": Memory(w), "b": Memory(b),
                    "y": memory(np.zeros(x.shape), kind,
                                (v - m[:, None]) * r[:, None] * w + b,
                                ERROR[kind]),
                    "mean": Memory(np.zeros(3, np.float32), m, 2e-5),
                    "rstd": Memory(np.zeros(3, np.float32), r, 2e-5),
                    "width": width, "eps": eps}, {"BLOCK": block}, warps)
        if kind == "f32":
            dy = g.standard_normal((3, width)).astype(np.float32)
            h = (v - m[:, None]) * r[:, None]
            gs = dy.astype(np.float64) * w
            dx = (gs - (h * (h * gs).mean(axis=1)[:, None] +
                        gs.mean(axis=1)[:, None])) * r[:, None]
            yield Case("layernorm_gradient", layernorm_input_gradient,
                       (3, 1, 1),
                       {"dy": Memory(dy), "x": Memory(x), "w": Memory(w),
                        "mean": Memory(m.astype(np.float32)),
                        "rstd": Memory(r.astype(np.float32)),
                        "dx": Memory(np.zeros_like(x), dx, 2e-5),
                        "width": width}, {"BLOCK": block}, warps)
    for kind in "f32", "f16":
        g = random(260)
        x = rounded(g.standard_normal((2, 300)), kind)
        w = g.standard_normal(300).astype(np.float32)
        v = x.astype(np.float64)
        yield Case(f"rmsnorm_{kind}", rmsnorm, (2, 1, 1),
                   {"x": memory(x, kind), "w": Memory(w),
                    "y": memory(np.zeros(x.shape), kind, v * w / np.sqrt(
                        (v * v).mean(axis=1, keepdims=True) + eps),
                        ERROR[kind]), "width": 300, "eps": eps},
                   {"BLOCK": 128}, 4)


def cases():
    yield from softmax_cases()
    yield from norm_cases()
    g = random(270)
    x = g.standard_normal((45, 64)).astype(np.float32)
    yield Case("column_sums", column_sums, (1, 1, 1),
               {"x": Memory(x), "y": Memory(
                   np.zeros(64, np.float32),
                   x.astype(np.float64).sum(axis=0), 2e-5), "rows": 45},
               {"WIDTH": 64, "ROWS": 16}, 4)
    x = g.standard_normal((4, 250)).astype(np.float32)
    label = g.integers(0, 250, 4).astype(np.int32)
    loss = -np.log(soft(x.astype(np.float64)))[np.arange(4), label]
    yield Case("cross_entropy", cross_entropy, (4, 1, 1),
               {"x": Memory(x), "label": Memory(label),
                "loss": Memory(np.zeros(4, np.float32), loss, 2e-5),
                "width": 250}, {"BLOCK": 256}, 4)
    x = (g.standard_normal((2, 230)) + 5).astype(np.float32)
    v = x.astype(np.float64)
    yield Case("variance", variance, (2, 1, 1),
               {"x": Memory(x), "y": Memory(
                   np.zeros((2, 2), np.float32),
                   np.stack([v.mean(axis=1), v.var(axis=1)], axis=1), 2e-5),
                "width": 230}, {"BLOCK": 256}, 4)
