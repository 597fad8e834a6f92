"""Kernels that Triton compiles for gfx1100 here, launched by T0_RUN."""
import os
import subprocess
import sys

import numpy as np
import pytest
import t0_soft

rng = np.random.default_rng(4)


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    to = tmp_path_factory.mktemp("objects")
    said = subprocess.check_output([sys.executable, os.environ["TRITON_KERNELS"], to],
                                   text=True)
    # Name, work-items of a workgroup, bytes of LDS.
    return to, {line.split()[0]: line.split()[1:] for line in said.splitlines()}


def launch(objects, name, grid, arguments, shape):
    """The output of a kernel; an argument is an array, None for it, a word."""
    folder, launches = objects
    block, lds = launches[name]
    words = []
    for i, what in enumerate(arguments):
        if isinstance(what, np.ndarray):
            what.tofile(folder / f"in{i}")
            what = f"buf:{what.nbytes}=file:{folder / f'in{i}'}"
        elif what is None:
            what = f"out:{np.prod(shape)}:f32>{folder / 'out'}"
        words.append(what)
    # Two pointers to scratch memory that these kernels do not use.
    subprocess.run([os.environ["T0_RUN"], "-q", "--device", "kfd",
                    folder / f"{name}.hsaco", name, *words, "null", "null",
                    "--block", block, "--lds", lds, "--grid", grid], check=True)
    return np.fromfile(folder / "out", np.float32).reshape(shape)


def test_it_is_the_soft_card():
    assert t0_soft.active()


def test_add(objects):
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    assert (launch(objects, "add", "512", [x, y, None, "i32:1000"], 1000) == x + y).all()


def test_softmax(objects):
    x = rng.standard_normal((3, 400)).astype(np.float32)
    e = np.exp(x.astype(np.float64))
    got = launch(objects, "softmax", "384", [x, None, "i32:400"], (3, 400))
    assert np.abs(got - e / e.sum(1, keepdims=True)).max() < 1e-7


def test_matmul(objects):
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float16)
    got = launch(objects, "matmul", "256,2", [a, b, None, "i32:64"], (64, 64))
    assert np.abs(got - a.astype(np.float64) @ b.astype(np.float64)).max() < 1e-4
