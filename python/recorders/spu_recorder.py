"""Records training steps of SPU (secretflow/spu) under ABY3: three parties in one process, its own simulator.

    python3.11 -m venv spu && spu/bin/pip install spu==0.9.5 jax==0.4.34 jaxlib==0.4.34 "numpy<2" ./python
    spu/bin/python python/recorders/spu_recorder.py train spu_train.npz
    spu/bin/python python/recorders/spu_recorder.py coins spu_coins.npz

`train` is an ordinary run. `coins` multiplies by 1 with 8 fraction bits: half of the products are exact multiples, which a truncation must not move.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import spu
import spu.utils.simulation as simulation
from spu import libspu

import common
from difftest_trace import Trace


def simulator(fraction_bits: int) -> simulation.Simulator:
    """Three parties, ABY3 over Z_2^64."""
    config = libspu.RuntimeConfig()
    config.protocol = libspu.ProtocolKind.ABY3
    config.field = libspu.FieldType.FM64
    config.fxp_fraction_bits = fraction_bits
    return simulation.Simulator(3, config)


def step(x, y, layers):
    """One training step; every tensor that can be judged is a result."""
    out = {}
    activations = [x]
    for l, layer in enumerate(layers, 1):
        z = jnp.dot(activations[-1], layer["weights"]) + layer["bias"]
        last = l == len(layers)
        out["logits" if last else f"layer{l}/pre_activation"] = z
        if not last:
            activations.append(jnp.maximum(z, 0.0))
            out[f"layer{l}/activation"] = activations[-1]
    maximum = jnp.max(z, axis=1, keepdims=True)
    exp = jnp.exp(z - maximum)
    total = jnp.sum(exp, axis=1, keepdims=True)
    g = exp / total - y
    out.update({"head/maximum": maximum, "head/exp": exp, "head/sum": total, "head_gradient": g})
    rate = common.LEARNING_RATE / common.BATCH
    for l in range(len(layers), 0, -1):
        layer = layers[l - 1]
        dw, db = jnp.dot(activations[l - 1].T, g), jnp.sum(g, axis=0)
        if l > 1:
            back = jnp.dot(g, layer["weights"].T) * (out[f"layer{l - 1}/pre_activation"] > 0)
            out[f"layer{l - 1}/activation_gradient"] = back
        for name, gradient, value in (("weight_velocity", dw, "weights"), ("bias_velocity", db, "bias")):
            velocity = layer[name] * common.MOMENTUM - gradient * rate
            out[f"layer{l}/{name}"] = velocity
            out[f"layer{l}/{value}"] = layer[value] + velocity
        out.update({f"layer{l}/dW": dw, f"layer{l}/db": db})
        if l > 1:
            g = back
    return out


def units(values: np.ndarray, fraction_bits: int) -> np.ndarray:
    """The simulator hands out float32; below 2^24 units nothing is lost."""
    integers = np.round(np.asarray(values, np.float64) * 2.0**fraction_bits)
    assert np.abs(integers).max() < 2**24, "a float32 does not hold this value; take fewer fraction bits"
    return integers.astype(np.int64)


def train(path: str) -> None:
    f = 16
    batches, layers = common.task(f)
    run = simulation.sim_jax(simulator(f), step)
    real = lambda v: np.asarray(v / 2.0**f, np.float32)
    header = common.header(
        fraction_bits=f, ring_bits=64, value_bits=32, rounding="probabilistic", update="separate",
        coded_rate=common.LEARNING_RATE / common.BATCH, coded_momentum=common.MOMENTUM,
        recorded=f"spu {spu.__version__}, jax {jax.__version__}, ABY3, FM64: spu_recorder.py train",
    )
    with Trace(path, engine="SPU", engine_version=spu.__version__, **header) as trace:
        for number, (x, labels) in enumerate(batches):
            recorded = trace.step(number).record("input", x).record("labels", labels)
            for l, layer in enumerate(layers, 1):
                recorded.start(l, **layer)
            shared = [{name: real(v) for name, v in layer.items()} for layer in layers]
            results = run(real(x), common.one_hot(labels).astype(np.float32), shared)
            for name, values in results.items():
                recorded.record(name, units(values, f))
            layers = [
                {what: units(results[f"layer{l}/{what}"], f) for what in layer} for l, layer in enumerate(layers, 1)
            ]


def coins(path: str) -> None:
    f, n = 8, 24_000
    rng = np.random.default_rng(5)
    x = np.where(np.arange(n) % 3 == 0, rng.integers(-800, 800, n), 0)
    y = np.int64(2**f + 2**5)
    product = simulation.sim_jax(simulator(f), lambda a, b: a * b)
    result = product(np.asarray(x / 2.0**f, np.float32), np.full(n, y / 2.0**f, np.float32))
    header = dict(fraction_bits=f, numbers="fixed", ring_bits=64, rounding="probabilistic")
    recorded = f"spu {spu.__version__}, jax {jax.__version__}, ABY3, FM64, 8 fraction bits: spu_recorder.py coins"
    with Trace(path, engine="SPU", engine_version=spu.__version__, recorded=recorded, **header) as trace:
        trace.block("multiply", "by_constant", x=x, y=y, result=units(result, f))


if __name__ == "__main__":
    {"train": train, "coins": coins}[sys.argv[1]](sys.argv[2])
