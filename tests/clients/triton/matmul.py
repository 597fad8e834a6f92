"""matmul.py - matrix products: tiles, stages, warps, element types."""
import numpy as np
import triton
import triton.language as tl
from case import Case, ERROR, Memory, memory, random, rounded


@triton.jit
def product(a, b, c, rows, cols, depth, TM: tl.constexpr, TN: tl.constexpr,
            TK: tl.constexpr):
    row = tl.program_id(0) * TM + tl.arange(0, TM)
    col = tl.program_id(1) * TN + tl.arange(0, TN)
    k = tl.arange(0, TK)
    sums = tl.zeros((TM, TN), dtype=tl.float32)
    for at in range(0, depth, TK):
        left = tl.load(a + row[:, None] * depth + (at + k)[None, :],
                       mask=(row[:, None] < rows) & (at + k[None, :] < depth),
                       other=0.0)
        right = tl.load(b + (at + k)[:, None] * cols + col[None, :],
                        mask=(at + k[:, None] < depth) & (col[None, :] < cols),
                        other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee")
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    tl.store(c + row[:, None] * cols + col[None, :],
             sums.to(c.dtype.element_ty), mask=inside)


@triton.jit
def whole_product(a, b, c, TM: tl.constexpr, TN: tl.constexpr,
                  TK: tl.constexpr, DEPTH: tl.constexpr, COLS: tl.constexpr):
    """Sizes known and multiples of the tiles: loops without masks."""
    row = tl.program_id(0) * TM + tl.arange(0, TM)
    col = tl.program_id(1) * TN + tl.arange(0, TN)
    k = tl.arange(0, TK)
    left = a + row[:, None] * DEPTH + k[None, :]
    right = b + k[:, None] * COLS + col[None, :]
    sums = tl.zeros((TM, TN), dtype=tl.float32)
    for _ in range(DEPTH // TK):
        sums = tl.dot(tl.load(left), tl.load(right), sums,
                      input_precision="ieee")
        left += TK
        right += TK * COLS
    tl.store(c + row[:, None] * COLS + col[None, :],
             sums.to(c.dtype.element_ty))


@triton.jit
def integer_product(a, b, c, TM: tl.constexpr, TN: tl.constexpr,
                    TK: tl.constexpr, DEPTH: tl.constexpr,
                    COLS: tl.constexpr):
    row = tl.program_id(0) * TM + tl.arange(0, TM)
    col = tl.program_id(1) * TN + tl.arange(0, TN)
    k = tl.arange(0, TK)
    sums = tl.zeros((TM, TN), dtype=tl.int32)
    for at in range(0, DEPTH, TK):
        left = tl.load(a + row[:, None] * DEPTH + at + k[None, :])
        right = tl.load(b + (at + k)[:, None] * COLS + col[None, :])
        sums = tl.dot(left, right, sums, out_dtype=tl.int32)
    tl.store(c + row[:, None] * COLS + col[None, :], sums)


@triton.jit
def split_product(a, b, c, TM: tl.constexpr, TN: tl.constexpr,
                  TK: tl.constexpr, DEPTH: tl.constexpr, COLS: tl.constexpr,
                  PARTS: tl.constexpr):
    """Each program a part of the depth; the parts meet by atomics."""
    row = tl.program_id(0) * TM + tl.arange(0, TM)
    col = tl.program_id(1) * TN + tl.arange(0, TN)
    k = tl.program_id(2) * (DEPTH // PARTS) + tl.arange(0, TK)
    sums = tl.zeros((TM, TN), dtype=tl.float32)
    for at in range(0, DEPTH // PARTS, TK):
        left = tl.load(a + row[:, None] * DEPTH + at + k[None, :])
        right = tl.load(b + (at + k)[:, None] * COLS + col[None, :])
        sums = tl.dot(left, right, sums)
    tl.atomic_add(c + row[:, None] * COLS + col[None, :], sums)


def float_case(name, kind, shape, tile, warps, stages, kernel, seed):
    m, n, k = shape
    g = random(seed)
    a = rounded(g.standard_normal((m, k)), kind)
    b = rounded(g.standard_normal((k, n)), kind)
    want = a.astype(np.float64) @ b.astype(np.float64)
    args = {"a": memory(a, kind), "b": memory(b, kind),
            "c": memory(np.zeros((m, n)), kind, want, ERROR[kind])}
    constants = dict(zip(("TM", "TN", "TK"), tile))
    if kernel is product:
        args.update(rows=m, cols=n, depth=k)
    else:
        constants.update(DEPTH=k, COLS=n)
    grid = (-(-m // tile[0]), -(-n // tile[1]), 1)
    return Case(name, kernel, grid, args, constants, warps, stages)


def integer_case(name, shape, tile, warps, stages, seed):
    m, n, k = shape
    g = random(seed)
    a = g.integers(-128, 128, (m, k)).astype(np.int8)
    b = g.integers(-128, 128, (k, n)).astype(np.int8)
    want = a.astype(np.int32) @ b.astype(np.int32)
    args = {"a": Memory(a), "b": Memory(b),
            "c": Memory(np.zeros((m, n), np.int32), want)}
    constants = dict(zip(("TM", "TN", "TK"), tile), DEPTH=k, COLS=n)
    return Case(name, integer_product, (m // tile[0], n // tile[1], 1), args,
                constants, warps, stages)


def split_case(name, seed):
    g = random(seed)
    a = g.integers(-8, 9, (16, 128)).astype(np.float16)
    b = g.integers(-8, 9, (128, 32)).astype(np.float16)
    want = a.astype(np.float64) @ b.astype(np.float64)
    args = {"a": Memory(a), "b": Memory(b),
            "c": Memory(np.zeros((16, 32), np.float32),
                        want.astype(np.float32))}
    return Case(name, split_product, (1, 1, 2), args,
                dict(TM=16, TN=32, TK=32, DEPTH=128, COLS=32, PARTS=2), 2, 2)


def cases():
    seed = 100
    for kind in "f16", "bf16", "f32":
        for tile, warps, stages in (((16, 16, 16), 1, 1), ((32, 32, 32), 4, 2),
                                    ((64, 32, 16), 4, 3), ((32, 64, 32), 2, 2),
                                    ((64, 64, 32), 8, 3)):
            if kind == "f32" and tile[0] * tile[1] > 2048:
                continue
            seed += 1
            m, n, k = tile[0], tile[1], tile[2] * 3
            text = "x".join(map(str, tile))
            yield float_case(f"matmul_{kind}_{text}_w{warps}_s{stages}", kind,
                             (m, n, k), tile, warps, stages, whole_product,
                             seed)
    for kind in "f16", "f32":
        seed += 1
        yield float_case(f"matmul_masked_{kind}", kind, (37, 41, 50),
                         (32, 32, 16), 4, 2, product, seed)
    for tile, warps, stages in (((16, 16, 32), 1, 2), ((32, 32, 32), 4, 2),
                                ((64, 32, 64), 4, 3)):
        seed += 1
        text = "x".join(map(str, tile))
        yield integer_case(f"matmul_i8_{text}_w{warps}_s{stages}",
                           (tile[0], tile[1], tile[2] * 2), tile, warps,
                           stages, seed)
    yield split_case("matmul_split", 190)
