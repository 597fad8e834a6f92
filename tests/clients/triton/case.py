"""case.py - one kernel to compile, its launch, its arguments, what it has to
leave in memory.

An argument is a number with its Triton type, or memory: a numpy array that
the kernel gets, and, where it writes, what a reference in double precision (or
exact integers) says of it afterwards, with the error that is allowed as a share
of the largest wanted value (0: every bit).
"""
import numpy as np

TYPES = {np.dtype(np.float32): "*fp32", np.dtype(np.float16): "*fp16",
         np.dtype(np.int32): "*i32", np.dtype(np.int8): "*i8",
         np.dtype(np.int64): "*i64", np.dtype(np.uint32): "*u32",
         np.dtype(np.uint8): "*u8", np.dtype(np.float64): "*fp64"}


class Memory:
    def __init__(self, data, want=None, error=0.0, bf16=False):
        self.data = np.ascontiguousarray(data)
        self.want = None if want is None else np.ascontiguousarray(want)
        self.error = error
        self.bf16 = bf16  # the data are f32 values that bf16 holds

    def type(self):
        return "*bf16" if self.bf16 else TYPES[self.data.dtype]

    def bytes(self):
        if self.bf16:
            return (self.data.astype(np.float32).view(np.uint32) >> 16
                    ).astype(np.uint16).tobytes()
        return self.data.tobytes()

    def read(self, raw):
        if self.bf16:
            halves = np.frombuffer(raw, np.uint16).astype(np.uint32)
            flat = (halves << 16).view(np.float32)
        else:
            flat = np.frombuffer(raw, self.data.dtype)
        return flat.reshape(self.data.shape)


class Case:
    def __init__(self, name, kernel, grid, args, constants, warps=4, stages=2):
        self.name, self.kernel, self.grid = name, kernel, grid
        self.args = args            # {name: Memory, int or float}
        self.constants = constants  # {name: value}
        self.warps, self.stages = warps, stages


def rounded(values, kind):
    """Values that the type holds, as an array that Memory takes."""
    if kind == "f16":
        return values.astype(np.float16)
    if kind == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        bits = bits + 0x7fff + (bits >> 16 & 1)
        return (bits & 0xffff0000).astype(np.uint32).view(np.float32)
    return values.astype(np.float32)


def memory(values, kind, want=None, error=0.0):
    return Memory(rounded(values, kind), want, error, kind == "bf16")


# Two units in the last place of the largest value, and what sums lose.
ERROR = {"f32": 2e-5, "f16": 2e-3, "bf16": 1.6e-2}


def random(seed):
    return np.random.Generator(np.random.PCG64(seed))
