"""Records training steps of CrypTen with three parties, each a process.

    python3.9 -m venv crypten && crypten/bin/pip install torch==1.13.1 "numpy<2" omegaconf pyyaml onnx==1.14.1 ./python
    crypten/bin/pip install --no-deps crypten==0.4.1
    crypten/bin/python python/recorders/crypten_recorder.py contiguous crypten_train.npz
    crypten/bin/python python/recorders/crypten_recorder.py transposed crypten_transposed.npz

The two runs differ in one word: whether the gradient of the weights, computed as (G^T X)^T, is made contiguous before it is multiplied by the public
learning rate.
"""

from __future__ import annotations

import sys

import crypten
import crypten.communicator as comm
import crypten.mpc as mpc
import torch

import common
from difftest_trace import Trace

F = 16


def share(units) -> crypten.CrypTensor:
    """A secret sharing of integers in units, without rounding."""
    return crypten.cryptensor(torch.as_tensor(units, dtype=torch.float64) / 2**F)


def opened(value: crypten.CrypTensor):
    """The integers in units that a sharing stands for."""
    return value._tensor.reveal().contiguous().numpy()


def coded(value: float) -> float:
    """A public factor as CrypTen encodes it."""
    return crypten.encoder.FixedPointEncoder(precision_bits=F).encode(value).item() / 2**F


def step(x, y, layers, contiguous, record):
    """One training step on shares; `record` sees every tensor. Returns the next parameters."""
    activations = [x]
    for l, layer in enumerate(layers, 1):
        z = activations[-1].matmul(layer["weights"]) + layer["bias"]
        record("logits" if l == len(layers) else f"layer{l}/pre_activation", z)
        if l < len(layers):
            activations.append(z.relu())
            record(f"layer{l}/activation", activations[-1])
            pre_activation = z
    g = z.softmax(1) - y
    record("head_gradient", g)
    updated = []
    for l in range(len(layers), 0, -1):
        layer = layers[l - 1]
        dw = g.t().matmul(activations[l - 1]).t()
        if contiguous:
            dw._tensor.share = dw._tensor.share.contiguous()
        db = g.sum(0)
        record(f"layer{l}/dW", dw)
        record(f"layer{l}/db", db)
        if l > 1:
            above, g = g, g.matmul(layer["weights"].t()) * (pre_activation > 0)
            record(f"layer{l - 1}/activation_gradient", g)
        rate = common.LEARNING_RATE / common.BATCH
        new = {}
        for name, gradient, value in (("weight_velocity", dw, "weights"), ("bias_velocity", db, "bias")):
            new[name] = layer[name] * common.MOMENTUM - gradient * rate
            new[value] = layer[value] + new[name]
            record(f"layer{l}/{name}", new[name])
            record(f"layer{l}/{value}", new[value])
        updated.insert(0, new)
    return updated


@mpc.run_multiprocess(world_size=3)
def train(contiguous: bool, path: str) -> None:
    torch.manual_seed(comm.get().get_rank())
    batches, start = common.task(F)
    layers = [{name: share(v) for name, v in layer.items()} for layer in start]
    mode = "contiguous" if contiguous else "transposed"
    # Each of three shares is cut towards zero: up to one unit each, and wraps are counted by a protocol that may itself fail.
    header = common.header(
        fraction_bits=F, ring_bits=64, value_bits=32, rounding="local", truncation_error=[-3.0, 3.0], update="separate",
        coded_rate=coded(common.LEARNING_RATE / common.BATCH), coded_momentum=coded(common.MOMENTUM),
        recorded=f"crypten 0.4.1, torch {torch.__version__}, 3 processes: crypten_recorder.py {mode}",
    )
    trace = Trace(path, engine="CrypTen", engine_version="0.4.1", **header)
    for number, (x, labels) in enumerate(batches):
        recorded = trace.step(number).record("input", x).record("labels", labels)
        for l, layer in enumerate(layers, 1):
            recorded.start(l, **{name: opened(v) for name, v in layer.items()})
        y = torch.as_tensor(common.one_hot(labels))
        layers = step(share(x), y, layers, contiguous, lambda name, v: recorded.record(name, opened(v)))
    if comm.get().get_rank() == 0:
        trace.write()


if __name__ == "__main__":
    train(sys.argv[1] == "contiguous", sys.argv[2])
