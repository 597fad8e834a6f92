"""shared.py - atomics, scans, sorts, and what moves elements about."""
import numpy as np
import triton
import triton.language as tl
from case import Case, ERROR, Memory, memory, random, rounded


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(bins + v, 1, mask=i < n)


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def extremes(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.atomic_max(y + i % 8, v)
    tl.atomic_min(y + 8 + i % 8, v)
    tl.atomic_or(y + 16 + i % 8, v)
    tl.atomic_xor(y + 24 + i % 8, v)


@triton.jit
def locked(x, lock, sums, BLOCK: tl.constexpr):
    """A lock by compare and exchange around a read, a sum and a write."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(sums + i, tl.load(sums + i) + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_one(x, part, done, y, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    """Who finishes last adds what the others left."""
    i = tl.arange(0, BLOCK)
    me = tl.program_id(0)
    tl.store(part + me, tl.sum(tl.load(x + me * BLOCK + i), axis=0))
    tl.debug_barrier()
    if tl.atomic_add(done, 1) == PARTS - 1:
        p = tl.arange(0, PARTS)
        tl.store(y, tl.sum(tl.load(part + p, volatile=True), axis=0))


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def chained(a0, b0, a1, b1):
    """y = a y + b, two steps in one."""
    return a0 * a1, a1 * b0 + b1


@triton.jit
def scan_sum(x, y, ROWS: tl.constexpr, WIDTH: tl.constexpr,
             REVERSE: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(y + at, tl.associative_scan(tl.load(x + at), 1, plus,
                                         reverse=REVERSE))


@triton.jit
def scan_down(x, y, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(y + at, tl.cumsum(tl.load(x + at), axis=0))


@triton.jit
def recurrence(a, b, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    _, v = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, chained)
    tl.store(y + i, v)


@triton.jit
def sorted_rows(x, y, ROWS: tl.constexpr, WIDTH: tl.constexpr,
                DOWN: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(y + at, tl.sort(tl.load(x + at), descending=DOWN))


@triton.jit
def best(x, value, index, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + i, mask=i < width, other=float("-inf"))
    high, at = tl.max(v, axis=0, return_indices=True)
    tl.store(value + row, high)
    tl.store(index + row, at)
    tl.store(index + row + tl.num_programs(0), tl.argmin(
        tl.where(i < width, v, float("inf")), axis=0))


@triton.jit
def turned(x, y, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    t = tl.trans(tl.load(x + r[:, None] * WIDTH + c[None, :]))
    tl.store(y + c[:, None] * ROWS + r[None, :], t)


@triton.jit
def bins_of(x, y, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.histogram(tl.load(x + i), BINS)
    tl.atomic_add(y + tl.arange(0, BINS), h)


@triton.jit
def rows_of(table, index, y, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDTH)
    at = tl.load(index + r)
    tl.store(y + r[:, None] * WIDTH + c[None, :],
             tl.load(table + at[:, None] * WIDTH + c[None, :]))


@triton.jit
def quantized(x, y, scale, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + i, mask=i < width, other=0.0).to(tl.float32)
    s = tl.max(tl.abs(v), axis=0) / 127.0
    tl.store(scale + row, s)
    q = v / s
    q = tl.where(q >= 0, q + 0.5, q - 0.5)
    tl.store(y + row * width + i, q.to(tl.int8), mask=i < width)


@triton.jit
def rotated(x, cos, sin, y, HALF: tl.constexpr, ROWS: tl.constexpr):
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, HALF)[None, :]
    a = tl.load(x + r * 2 * HALF + c).to(tl.float32)
    b = tl.load(x + r * 2 * HALF + HALF + c).to(tl.float32)
    u, v = tl.load(cos + r * HALF + c), tl.load(sin + r * HALF + c)
    tl.store(y + r * 2 * HALF + c, (a * u - b * v).to(y.dtype.element_ty))
    tl.store(y + r * 2 * HALF + HALF + c,
             (b * u + a * v).to(y.dtype.element_ty))


@triton.jit
def mixed(x, y, n, BLOCK: tl.constexpr):
    """Wide integers, divisions, bits."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1).to(tl.int64)
    w = v * v * 2654435761 + (v >> 3)
    w = w ^ (w >> 29)
    w = w // 1000003 + w % 97
    tl.store(y + i, w, mask=i < n)


@triton.jit
def swapped_halves(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    a, b = tl.split(tl.reshape(v, (BLOCK // 2, 2)))
    tl.store(y + i, tl.reshape(tl.join(b, a), (BLOCK,)))
    tl.store(y + BLOCK + i, tl.flip(v))


@triton.jit
def picked(x, index, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


def atomic_cases():
    g = random(400)
    x = g.integers(0, 16, 500).astype(np.int32)
    yield Case("atomic_count", count, (2, 1, 1),
               {"x": Memory(x), "bins": Memory(
                   np.zeros(16, np.int32),
                   np.bincount(x, minlength=16).astype(np.int32)), "n": 500},
               {"BLOCK": 256}, 4)
    x = g.integers(-50, 51, 500).astype(np.float32)
    yield Case("atomic_total", total, (4, 1, 1),
               {"x": Memory(x), "y": Memory(np.zeros(1, np.float32),
                                            x.sum().reshape(1)), "n": 500},
               {"BLOCK": 128}, 4)
    x = g.integers(-2**31, 2**31 - 1, 256).astype(np.int32)
    y = np.zeros(32, np.int32)
    want = y.copy()
    for i, v in enumerate(x):
        want[i % 8] = max(want[i % 8], v)
        want[8 + i % 8] = min(want[8 + i % 8], v)
        want[16 + i % 8] |= v
        want[24 + i % 8] ^= v
    yield Case("atomic_extremes", extremes, (2, 1, 1),
               {"x": Memory(x), "y": Memory(y, want)}, {"BLOCK": 128}, 4)
    x = g.integers(-50, 51, 3 * 64).astype(np.float32)
    yield Case("atomic_lock", locked, (3, 1, 1),
               {"x": Memory(x), "lock": Memory(np.zeros(1, np.int32),
                                               np.zeros(1, np.int32)),
                "sums": Memory(np.zeros(64, np.float32),
                               x.reshape(3, 64).sum(axis=0))},
               {"BLOCK": 64}, 2)
    x = g.integers(-50, 51, 4 * 128).astype(np.float32)
    yield Case("atomic_last", last_one, (4, 1, 1),
               {"x": Memory(x), "part": Memory(
                   np.zeros(4, np.float32), x.reshape(4, 128).sum(axis=1)),
                "done": Memory(np.zeros(1, np.int32),
                               np.full(1, 4, np.int32)),
                "y": Memory(np.zeros(1, np.float32), x.sum().reshape(1))},
               {"BLOCK": 128, "PARTS": 4}, 4)


def scan_cases():
    g = random(420)
    for kind, rows, width, back, warps in ((np.int32, 2, 256, False, 4),
                                           (np.float32, 4, 128, True, 2),
                                           (np.int32, 1, 1024, False, 8)):
        x = g.integers(-99, 100, (rows, width)).astype(kind)
        want = np.cumsum(x[:, ::-1] if back else x, axis=1)
        want = want[:, ::-1] if back else want
        yield Case(f"scan_{np.dtype(kind).name}_{rows}x{width}", scan_sum,
                   (1, 1, 1), {"x": Memory(x), "y": Memory(
                       np.zeros_like(x), want.astype(kind))},
                   {"ROWS": rows, "WIDTH": width, "REVERSE": back}, warps)
    x = g.integers(-99, 100, (64, 16)).astype(np.int32)
    yield Case("scan_down", scan_down, (1, 1, 1),
               {"x": Memory(x), "y": Memory(np.zeros_like(x), np.cumsum(
                   x, axis=0).astype(np.int32))},
               {"ROWS": 64, "WIDTH": 16}, 4)
    a = g.uniform(0.5, 1, 256).astype(np.float32)
    b = g.standard_normal(256).astype(np.float32)
    want, y = np.zeros(256), 0.0
    for i in range(256):
        y = want[i] = float(a[i]) * y + float(b[i])
    yield Case("scan_recurrence", recurrence, (1, 1, 1),
               {"a": Memory(a), "b": Memory(b),
                "y": Memory(np.zeros(256, np.float32), want, 2e-5)},
               {"BLOCK": 256}, 4)


def sort_cases():
    g = random(440)
    for kind, rows, width, down, warps in ((np.int32, 1, 128, False, 2),
                                           (np.float32, 2, 64, True, 4),
                                           (np.int32, 2, 32, False, 1),
                                           (np.float16, 1, 64, False, 2)):
        x = g.integers(-2000, 2000, (rows, width)).astype(kind)
        want = np.sort(x, axis=1)
        yield Case(f"sort_{np.dtype(kind).name}_{rows}x{width}", sorted_rows,
                   (1, 1, 1), {"x": Memory(x), "y": Memory(
                       np.zeros_like(x), want[:, ::-1] if down else want)},
                   {"ROWS": rows, "WIDTH": width, "DOWN": down}, warps)
    x = g.permutation(3 * 200).reshape(3, 200).astype(np.float32)
    yield Case("sort_best", best, (3, 1, 1),
               {"x": Memory(x), "value": Memory(np.zeros(3, np.float32),
                                                x.max(axis=1)),
                "index": Memory(np.zeros(6, np.int32), np.concatenate(
                    [x.argmax(axis=1), x.argmin(axis=1)]).astype(np.int32)),
                "width": 200}, {"BLOCK": 256}, 4)


def move_cases():
    g = random(460)
    for kind, rows, width, warps in ((np.float32, 32, 64, 4),
                                     (np.int8, 64, 32, 4),
                                     (np.float16, 32, 32, 2)):
        x = g.integers(-100, 100, (rows, width)).astype(kind)
        yield Case(f"transpose_{np.dtype(kind).name}", turned, (1, 1, 1),
                   {"x": Memory(x), "y": Memory(
                       np.zeros((width, rows), kind), x.T)},
                   {"ROWS": rows, "WIDTH": width}, warps)
    x = g.integers(0, 32, 512).astype(np.int32)
    yield Case("histogram", bins_of, (2, 1, 1),
               {"x": Memory(x), "y": Memory(
                   np.zeros(32, np.int32),
                   np.bincount(x, minlength=32).astype(np.int32))},
               {"BLOCK": 256, "BINS": 32}, 4)
    table = g.standard_normal((40, 64)).astype(np.float16)
    index = g.integers(0, 40, 16).astype(np.int64)
    yield Case("rows_of_table", rows_of, (2, 1, 1),
               {"table": Memory(table), "index": Memory(index),
                "y": Memory(np.zeros((16, 64), np.float16), table[index])},
               {"WIDTH": 64, "ROWS": 8}, 2)
    x = g.standard_normal((2, 200)).astype(np.float32)
    s = np.abs(x).max(axis=1).astype(np.float64) / 127
    q = x / s[:, None]
    yield Case("quantize", quantized, (2, 1, 1),
               {"x": Memory(x), "y": Memory(
                   np.zeros(x.shape, np.int8),
                   np.trunc(q + np.copysign(0.5, q)).astype(np.int8), 0.009),
                "scale": Memory(np.zeros(2, np.float32), s, 2e-5),
                "width": 200}, {"BLOCK": 256}, 4)
    x = rounded(g.standard_normal((16, 64)), "bf16")
    angle = g.uniform(-3, 3, (16, 32))
    cos, sin = (f(angle).astype(np.float32) for f in (np.cos, np.sin))
    a, b = x[:, :32].astype(np.float64), x[:, 32:].astype(np.float64)
    yield Case("rotary", rotated, (1, 1, 1),
               {"x": memory(x, "bf16"), "cos": Memory(cos),
                "sin": Memory(sin), "y": memory(
                    np.zeros(x.shape), "bf16", np.concatenate(
                        [a * cos - b * sin, b * cos + a * sin], axis=1),
                    ERROR["bf16"])}, {"HALF": 32, "ROWS": 16}, 4)
    x = g.integers(1, 40000, 300).astype(np.int32)
    w = x.astype(np.int64)
    w = w * w * 2654435761 + (w >> 3)
    w = w ^ (w >> 29)
    q = np.abs(w) // 1000003 * np.sign(w)
    yield Case("wide_integers", mixed, (2, 1, 1),
               {"x": Memory(x), "y": Memory(
                   np.zeros(300, np.int64),
                   q + np.sign(w) * (np.abs(w) % 97)), "n": 300},
               {"BLOCK": 256}, 4)
    x = g.integers(-100, 100, 128).astype(np.int32)
    yield Case("split_join_flip", swapped_halves, (1, 1, 1),
               {"x": Memory(x), "y": Memory(
                   np.zeros(256, np.int32),
                   np.concatenate([x.reshape(64, 2)[:, ::-1].ravel(),
                                   x[::-1]]))}, {"BLOCK": 128}, 4)
    index = g.integers(0, 128, 128).astype(np.int32)
    yield Case("gather", picked, (1, 1, 1),
               {"x": Memory(x), "index": Memory(index),
                "y": Memory(np.zeros(128, np.int32), x[index])},
               {"BLOCK": 128}, 4)


def cases():
    yield from atomic_cases()
    yield from scan_cases()
    yield from sort_cases()
    yield from move_cases()
