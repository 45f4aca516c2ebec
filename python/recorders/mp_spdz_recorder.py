"""Inputs for mp_spdz_step.mpc, and traces from what it prints. See docs/engines/mp-spdz.md.

In a checkout of MP-SPDZ:

    python mp_spdz_recorder.py input Player-Data/Input-P0-0
    python mp_spdz_recorder.py softmax printed.txt spdz_softmax.npz
    python mp_spdz_recorder.py relu printed.txt spdz_relu.npz
"""

from __future__ import annotations

import sys

import numpy as np

import common
from difftest_trace import spdz

FRACTION_BITS = 16
VERSION = "0.4.2-16-g3a0a7b1d"


def inputs(path: str) -> None:
    """What player 0 types: parameters by layer, then each step's rows and its labels, one of them 1."""
    batches, layers = common.task(FRACTION_BITS)
    tensors = [layer[what] for layer in layers for what in ("weights", "bias")]
    for x, labels in batches:
        tensors += [x, common.one_hot(labels).astype(np.int64)]
    with open(path, "w", encoding="ascii") as file:
        for tensor in tensors:
            print(*tensor.ravel(), file=file)


def convert(head: str, printed: str, out: str) -> None:
    """The trace of what a run printed.

    The library's update is D = T(momentum D) - g, W = W + T(rate D / batch): `ascent` with V = -D, a gradient that is
    not divided, and a rate that is.
    """
    rate = common.LEARNING_RATE / common.BATCH
    head_fields = {"softmax": {"head": "softmax"}, "relu": {"head": "relu-prob-cut", "epsilon_units": 6554}}[head]
    fields = common.header(
        **{"fraction_bits": FRACTION_BITS, "ring_bits": 64, "value_bits": 31, "rounding": "probabilistic"}
    )
    fields.update(head_fields, update="ascent", batch=1, learning_rate=rate, coded_rate=rate)
    fields.update(coded_momentum=common.MOMENTUM, engine_version=VERSION)
    flags = {"softmax": "no_loss", "relu": "no_loss approx"}[head]
    fields["recorded"] = f"MP-SPDZ {VERSION}, replicated-ring-party.x: compile.py -R 64 mp_spdz_step {flags}"
    with open(printed, encoding="ascii") as file:
        spdz.convert(file, fields, out)


if __name__ == "__main__":
    if sys.argv[1] == "input":
        inputs(sys.argv[2])
    else:
        convert(*sys.argv[1:4])
