"""tinygrad with DEV=AMD: a product, a sum and a sort, against numpy."""
import numpy as np
import t0_soft
from tinygrad import Device, Tensor

rng = np.random.default_rng(3)
a = rng.standard_normal((33, 47)).astype(np.float32)
b = rng.standard_normal((47, 29)).astype(np.float32)


def test_it_is_the_soft_card():
    assert t0_soft.active()
    assert Device.DEFAULT == "AMD" and Device["AMD"].arch == "gfx1100"


def test_product():
    got = Tensor(a).matmul(Tensor(b)).numpy()
    assert np.abs(got - a.astype(np.float64) @ b.astype(np.float64)).max() < 1e-4


def test_sum():
    assert abs(Tensor(a).sum().item() - a.astype(np.float64).sum()) < 1e-3


def test_sort():
    assert (Tensor(a[0]).sort()[0].numpy() == np.sort(a[0])).all()
