"""compare.py DIR SUFFIX - hold what the kernels left in DIR/NAME.I.SUFFIX
against the references; a line of TAP for each kernel.
"""
import sys
import numpy as np
import attention
import matmul
import rows
import shared
from case import Memory


def fault(case, folder, suffix):
    position = 0
    wrong = None
    for name in case.kernel.arg_names:
        if name in case.constants:
            continue
        value = case.args[name]
        position += 1
        if not isinstance(value, Memory):
            continue
        path = f"{folder}/{case.name}.{position - 1}.{suffix}"
        try:
            with open(path, "rb") as f:
                got = value.read(f.read())
        except (OSError, ValueError) as e:
            return f"{name}: {e}"
        if value.want is None:
            if got.tobytes() != value.data.tobytes():
                return f"{name} is only read, and changed"
            continue
        want = value.want.reshape(got.shape)
        if value.error == 0:
            bad = ~((got == want) | (got != got) & (want != want))
        else:
            limit = value.error * np.abs(want.astype(np.float64)).max()
            bad = ~(np.abs(got.astype(np.float64) - want) <= limit)
        if bad.any():
            i = tuple(int(k) for k in np.argwhere(bad)[0])
            wrong = (f"{name}{list(i)}: got {got[i]!r}, wanted {want[i]!r}; "
                     f"{bad.sum()} of {bad.size} are wrong")
    return wrong


def main(folder, suffix):
    n = 0
    for module in matmul, rows, attention, shared:
        for case in module.cases():
            n += 1
            why = fault(case, folder, suffix)
            print(f"{'not ok' if why else 'ok'} {n} - {case.name}")
            if why:
                print(f"# {why}")
    print(f"1..{n}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
