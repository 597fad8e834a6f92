"""What users of tinygrad do, on AMD=1; each line is a result against numpy."""
import numpy as np
from tinygrad import Device, Tensor, TinyJit, dtypes, nn

try:  # 0.14 has the switch here, older ones in Tensor
    from tinygrad.helpers import Context
    training = Context(TRAINING=1)
except (ImportError, KeyError):
    training = Tensor.train()

rng = np.random.default_rng(1)


def near(name, got, want, bound):
    worst = float(np.abs(got.astype(np.float64) - want).max())
    print("good" if worst <= bound else "bad", name, f"(worst {worst:.3g})", flush=True)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def conv(x, w):
    h = x.shape[2] - 2
    out = np.zeros((x.shape[0], w.shape[0], h, h))
    for dy in range(3):
        for dx in range(3):
            part = x[:, :, dy:dy + h, dx:dx + h].astype(np.float64)
            out += np.einsum("nihw,oi->nohw", part, w[:, :, dy, dx])
    return out


print("good" if Device.DEFAULT == "AMD" else "bad", "the device is", Device.DEFAULT)
a, b = normal(33, 47), normal(47, 29)
x = a.astype(np.float64)
near("addition", (Tensor(a) + Tensor(a)).numpy(), 2 * x, 0)
near("a product of float32", (Tensor(a) @ Tensor(b)).numpy(), x @ b, 1e-4)
h, g = normal(64, 64).astype(np.float16), normal(64, 64).astype(np.float16)
near("a product of float16 by WMMA", Tensor(h).matmul(Tensor(g), dtype=dtypes.float).numpy(),
     h.astype(np.float64) @ g.astype(np.float64), 1e-4)
e = np.exp(x - x.max(1, keepdims=True))
near("softmax", Tensor(a).softmax().numpy(), e / e.sum(1, keepdims=True), 1e-6)
near("a sum", Tensor(a).sum().numpy(), x.sum(), 1e-3)
near("a sort", Tensor(a[0]).sort()[0].numpy(), np.sort(x[0]), 0)
near("integers", (Tensor(np.arange(1000)) * 7 % 13).numpy(), np.arange(1000) * 7 % 13, 0)
c, k = normal(1, 3, 12, 12), normal(4, 3, 3, 3)
near("a convolution", Tensor(c).conv2d(Tensor(k)).numpy(), conv(c, k), 1e-4)


@TinyJit
def step(t):
    return (t * 2 + 1).relu().realize()


for i in range(4):
    v = normal(256)
    got = step(Tensor(v).realize()).numpy()
near("a captured graph", got, np.maximum(2 * v.astype(np.float64) + 1, 0), 1e-6)

inputs, wanted, weights = normal(16, 8), normal(16, 4), normal(8, 4)
exact = weights.astype(np.float64)
with training:
    w = Tensor(weights)
    if hasattr(w, "requires_grad_"):
        w.requires_grad_()
    optimizer = nn.optim.SGD([w], lr=0.1)
    for i in range(3):
        loss = ((Tensor(inputs) @ w - Tensor(wanted)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        d = inputs @ exact - wanted
        exact -= 0.1 * 2 * inputs.T.astype(np.float64) @ d / d.size
near("three steps of training", w.numpy(), exact, 1e-5)
