"""attention.py - attention by blocks: forward, and both gradients."""
import numpy as np
import triton
import triton.language as tl
from case import Case, ERROR, Memory, memory, random, rounded


@triton.jit
def attend(q, k, v, o, log, scale, LENGTH: tl.constexpr, HEAD: tl.constexpr,
           TM: tl.constexpr, TN: tl.constexpr, CAUSAL: tl.constexpr):
    row = tl.program_id(0) * TM + tl.arange(0, TM)
    lane = tl.arange(0, HEAD)
    head = tl.program_id(1) * LENGTH * HEAD
    ask = tl.load(q + head + row[:, None] * HEAD + lane[None, :])
    high = tl.full((TM,), -1e30, tl.float32)
    total = tl.zeros((TM,), tl.float32)
    sums = tl.zeros((TM, HEAD), tl.float32)
    end = (tl.program_id(0) + 1) * TM if CAUSAL else LENGTH
    for at in range(0, end, TN):
        col = at + tl.arange(0, TN)
        key = tl.load(k + head + col[None, :] * HEAD + lane[:, None])
        s = tl.dot(ask, key) * scale
        if CAUSAL:
            s = tl.where(row[:, None] >= col[None, :], s, -1e30)
        more = tl.maximum(high, tl.max(s, axis=1))
        p = tl.exp(s - more[:, None])
        fade = tl.exp(high - more)
        total = total * fade + tl.sum(p, axis=1)
        value = tl.load(v + head + col[:, None] * HEAD + lane[None, :])
        sums = tl.dot(p.to(value.dtype), value, sums * fade[:, None])
        high = more
    tl.store(o + head + row[:, None] * HEAD + lane[None, :],
             (sums / total[:, None]).to(o.dtype.element_ty))
    tl.store(log + tl.program_id(1) * LENGTH + row, high + tl.log(total))


@triton.jit
def query_gradient(q, k, v, do, log, delta, dq, scale, LENGTH: tl.constexpr,
                   HEAD: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr):
    row = tl.program_id(0) * TM + tl.arange(0, TM)
    lane = tl.arange(0, HEAD)
    ask = tl.load(q + row[:, None] * HEAD + lane[None, :])
    out = tl.load(do + row[:, None] * HEAD + lane[None, :])
    norm = tl.load(log + row)
    less = tl.load(delta + row)
    sums = tl.zeros((TM, HEAD), tl.float32)
    for at in range(0, LENGTH, TN):
        col = at + tl.arange(0, TN)
        key = tl.load(k + col[:, None] * HEAD + lane[None, :])
        value = tl.load(v + col[:, None] * HEAD + lane[None, :])
        p = tl.exp(tl.dot(ask, tl.trans(key)) * scale - norm[:, None])
        ds = p * (tl.dot(out, tl.trans(value)) - less[:, None]) * scale
        sums = tl.dot(ds.to(key.dtype), key, sums)
    tl.store(dq + row[:, None] * HEAD + lane[None, :], sums)


@triton.jit
def key_gradient(q, k, v, do, log, delta, dk, dv, scale,
                 LENGTH: tl.constexpr, HEAD: tl.constexpr, TM: tl.constexpr,
                 TN: tl.constexpr):
    col = tl.program_id(0) * TN + tl.arange(0, TN)
    lane = tl.arange(0, HEAD)
    key = tl.load(k + col[:, None] * HEAD + lane[None, :])
    value = tl.load(v + col[:, None] * HEAD + lane[None, :])
    keys = tl.zeros((TN, HEAD), tl.float32)
    values = tl.zeros((TN, HEAD), tl.float32)
    for at in range(0, LENGTH, TM):
        row = at + tl.arange(0, TM)
        ask = tl.load(q + row[:, None] * HEAD + lane[None, :])
        out = tl.load(do + row[:, None] * HEAD + lane[None, :])
        norm = tl.load(log + row)
        less = tl.load(delta + row)
        p = tl.exp(tl.dot(key, tl.trans(ask)) * scale - norm[None, :])
        values = tl.dot(p.to(out.dtype), out, values)
        dp = tl.dot(value, tl.trans(out))
        ds = p * (dp - less[None, :]) * scale
        keys = tl.dot(ds.to(ask.dtype), ask, keys)
    tl.store(dk + col[:, None] * HEAD + lane[None, :], keys)
    tl.store(dv + col[:, None] * HEAD + lane[None, :], values)


def forward(q, k, v, scale, causal):
    s = np.einsum("hid,hjd->hij", q, k) * scale
    if causal:
        s = np.where(np.tri(s.shape[1], dtype=bool), s, -1e30)
    top = s.max(axis=2, keepdims=True)
    e = np.exp(s - top)
    total = e.sum(axis=2, keepdims=True)
    return e / total, (top + np.log(total))[..., 0]


def forward_case(kind, causal, heads, length, head, tile, warps, stages):
    g = random(300 + length + head)
    q, k, v = (rounded(g.standard_normal((heads, length, head)), kind)
               for _ in range(3))
    scale = 1 / np.sqrt(head)
    p, log = forward(q.astype(np.float64), k.astype(np.float64), scale=scale,
                     v=None, causal=causal)
    o = p @ v.astype(np.float64)
    name = (f"attention_{kind}_{'causal_' if causal else ''}{head}_"
            f"{tile[0]}x{tile[1]}_w{warps}_s{stages}")
    return Case(name, attend, (length // tile[0], heads, 1),
                {"q": memory(q, kind), "k": memory(k, kind),
                 "v": memory(v, kind),
                 "o": memory(np.zeros(o.shape), kind, o, 2 * ERROR[kind]),
                 "log": Memory(np.zeros(log.shape, np.float32), log, 1e-4),
                 "scale": float(scale)},
                dict(LENGTH=length, HEAD=head, TM=tile[0], TN=tile[1],
                     CAUSAL=causal), warps, stages)


def backward_cases(kind, length, head, warps):
    g = random(350 + head)
    q, k, v, do = (rounded(g.standard_normal((length, head)), kind)
                   for _ in range(4))
    scale = 1 / np.sqrt(head)
    fq, fk, fv, fo = (x.astype(np.float64) for x in (q, k, v, do))
    p, log = forward(fq[None], fk[None], None, scale, False)
    p, log = p[0], log[0]
    delta = (fo * (p @ fv)).sum(axis=1)
    ds = p * (fo @ fv.T - delta[:, None]) * scale
    ins = {"q": memory(q, kind), "k": memory(k, kind), "v": memory(v, kind),
           "do": memory(do, kind), "log": Memory(log.astype(np.float32)),
           "delta": Memory(delta.astype(np.float32))}
    zero = np.zeros((length, head), np.float32)
    sizes = dict(LENGTH=length, HEAD=head, TM=16, TN=16)
    yield Case(f"attention_dq_{kind}_{head}", query_gradient,
               (length // 16, 1, 1),
               {**ins, "dq": Memory(zero, ds @ fk, 2 * ERROR[kind]),
                "scale": float(scale)}, sizes, warps)
    yield Case(f"attention_dkv_{kind}_{head}", key_gradient,
               (length // 16, 1, 1),
               {**ins, "dk": Memory(zero, ds.T @ fq, 2 * ERROR[kind]),
                "dv": Memory(zero, p.T @ fo, 2 * ERROR[kind]),
                "scale": float(scale)}, sizes, warps)


def cases():
    yield forward_case("f16", False, 2, 32, 16, (16, 16), 1, 1)
    yield forward_case("f16", True, 1, 64, 32, (32, 32), 4, 2)
    yield forward_case("f16", True, 1, 64, 64, (64, 32), 4, 2)
    yield forward_case("f16", False, 1, 64, 32, (32, 16), 2, 3)
    yield forward_case("bf16", True, 1, 64, 32, (32, 32), 4, 2)
    yield from backward_cases("f16", 32, 32, 2)
    yield from backward_cases("bf16", 32, 16, 1)
