"""What the recorders share: a small task and its start, the same for every engine."""

from __future__ import annotations

import numpy as np

WIDTHS = [6, 5, 4]
BATCH = 8
STEPS = 3
LEARNING_RATE = 0.5
MOMENTUM = 0.5


def task(fraction_bits: int, seed: int = 3):
    """Batches of (inputs in units, labels), and start parameters in units by layer."""
    rng = np.random.default_rng(seed)
    one = 1 << fraction_bits
    batches = []
    for _ in range(STEPS):
        pixels = rng.integers(0, 256, (BATCH, WIDTHS[0])) * (rng.random((BATCH, WIDTHS[0])) > 0.25)
        batches.append((pixels * one // 256, rng.integers(0, WIDTHS[-1], BATCH)))
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers.append({
            "weights": np.round(rng.uniform(-1, 1, (inputs, outputs)) * one).astype(np.int64),
            "bias": np.round(rng.uniform(-0.2, 0.2, outputs) * one).astype(np.int64),
            "weight_velocity": np.zeros((inputs, outputs), np.int64),
            "bias_velocity": np.zeros(outputs, np.int64),
        })
    return batches, layers


def one_hot(labels: np.ndarray) -> np.ndarray:
    """(rows, classes) of 0 and 1."""
    return np.eye(WIDTHS[-1])[labels]


def header(**more):
    """The part of the header that is the task's."""
    return dict(
        head="softmax", widths=WIDTHS, batch=BATCH, learning_rate=LEARNING_RATE, momentum=MOMENTUM, numbers="fixed", **more
    )
