"""Records training steps of PyTorch: in float32, and quantised by hand in 64-bit integers as a port to fixed point would have it.

    python3 -m venv torch && torch/bin/pip install torch "numpy<2" ./python
    torch/bin/python python/recorders/pytorch_recorder.py float32 torch_float32.npz
    torch/bin/python python/recorders/pytorch_recorder.py fixed torch_fixed.npz
    torch/bin/python python/recorders/pytorch_recorder.py floor-twice torch_floor_twice.npz
    torch/bin/python python/recorders/pytorch_recorder.py first-row torch_first_row.npz

`floor-twice` rounds the reciprocal of the denominator down and then its product with the exponential; `first-row` normalises all denominators of a batch
by the power of two of the first one. Both are mistakes on purpose.
"""

from __future__ import annotations

import sys

import torch

import common
from difftest_trace import Trace

F = 16
ONE = 1 << F


def nearest(v: torch.Tensor, bits: int) -> torch.Tensor:
    """v / 2^bits, halves up."""
    return (v + (1 << (bits - 1))) >> bits


def quotient(e: torch.Tensor, total: torch.Tensor, mode: str) -> torch.Tensor:
    """e / total in units, by the way of `mode`."""
    if mode == "floor-twice":
        return (e * ((ONE * ONE) // total)) >> F
    if mode == "first-row":
        # Newton's iteration for 1/x needs x in [1/2, 1); the first row decides how far all rows are moved.
        k = int(total[0].item()).bit_length()
        x = total.double() / 2.0**k
        w = 2.9142 - 2 * x
        for _ in range(4):
            w = w * (2 - x * w)
        return torch.round(e.double() * w * 2.0 ** (F - k)).long()
    return ((e << (F + 1)) + total) // (2 * total)


class Fixed:
    """Integers in units, nearest rounding, one truncation a dot product."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def tensor(self, units):
        return torch.as_tensor(units, dtype=torch.int64)

    def affine(self, x, w, b):
        return nearest(x @ w + (b << F), F)

    def matmul(self, a, b):
        return nearest(a @ b, F)

    def head(self, z, y, record):
        if self.mode == "first-row":
            # relu-grad: its denominators differ more from row to row than softmax's.
            positive = z.clamp(min=0)
            total = positive.sum(1, keepdim=True).clamp(min=1)
            return quotient(positive, total, self.mode) - (y << F)
        d = (z - z.max(1, keepdim=True).values).double() / ONE
        e = torch.round(torch.exp(d) * ONE).long()
        p = quotient(e, e.sum(1, keepdim=True), self.mode)
        if self.mode == "fixed":
            record("head/exp", e)
            record("head/sum", e.sum(1, keepdim=True))
            record("head/quotient", p)
        return p - (y << F)

    def scaled(self, factor, v):
        return nearest(round(factor * ONE) * v, F)


class Float32:
    """Single precision, as anyone would write it."""

    def tensor(self, units):
        return torch.as_tensor(units, dtype=torch.float32) / ONE

    def affine(self, x, w, b):
        return x @ w + b

    def matmul(self, a, b):
        return a @ b

    def head(self, z, y, record):
        return torch.softmax(z, 1) - y

    def scaled(self, factor, v):
        return factor * v


def step(engine, x, y, layers, record):
    """One training step; `record` sees every tensor. Returns the next parameters."""
    activations = [x]
    for l, layer in enumerate(layers, 1):
        z = engine.affine(activations[-1], layer["weights"], layer["bias"])
        record("logits" if l == len(layers) else f"layer{l}/pre_activation", z)
        if l < len(layers):
            activations.append(z.clamp(min=0))
            record(f"layer{l}/activation", activations[-1])
    g = engine.head(z, y, record)
    record("head_gradient", g)
    updated = []
    for l in range(len(layers), 0, -1):
        layer = layers[l - 1]
        dw, db = engine.matmul(activations[l - 1].t(), g), g.sum(0)
        record(f"layer{l}/dW", dw)
        record(f"layer{l}/db", db)
        if l > 1:
            g = engine.matmul(g, layer["weights"].t()) * (activations[l - 1] > 0)
            record(f"layer{l - 1}/activation_gradient", g)
        new = {}
        for name, gradient, value in (("weight_velocity", dw, "weights"), ("bias_velocity", db, "bias")):
            new[name] = engine.scaled(common.MOMENTUM, layer[name])
            new[name] = new[name] - engine.scaled(common.LEARNING_RATE / common.BATCH, gradient)
            new[value] = layer[value] + new[name]
            record(f"layer{l}/{name}", new[name])
            record(f"layer{l}/{value}", new[value])
        updated.insert(0, new)
    return updated


def main(mode: str, path: str) -> None:
    recorded = f"torch {torch.__version__}: pytorch_recorder.py {mode}"
    header = common.header(update="separate", recorded=recorded)
    if mode == "float32":
        engine = Float32()
        header["numbers"] = "float32"
    else:
        engine = Fixed(mode)
        header["head"] = "relu-grad" if mode == "first-row" else "softmax"
        half = {"absolute_units": 0.5}
        header.update(
            fraction_bits=F, ring_bits=64, value_bits=32, rounding="nearest", ties_up=True, claims={"exp": half, "division": half},
            coded_rate=common.LEARNING_RATE / common.BATCH, coded_momentum=common.MOMENTUM,
        )
    batches, start = common.task(F)
    if mode == "first-row":
        # The second step goes wrong by so much that a third would only overflow.
        batches = batches[:2]
    layers = [{name: engine.tensor(v) for name, v in layer.items()} for layer in start]
    with Trace(path, engine="PyTorch", engine_version=torch.__version__, **header) as trace:
        for number, (x, labels) in enumerate(batches):
            recorded = trace.step(number).record("input", engine.tensor(x)).record("labels", labels)
            for l, layer in enumerate(layers, 1):
                recorded.start(l, **layer)
            y = torch.as_tensor(common.one_hot(labels)).long()
            layers = step(engine, engine.tensor(x), y, layers, recorded.record)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
