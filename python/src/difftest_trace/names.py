"""The names that tensors of a trace may have; docs/trace.md says what they mean."""

from __future__ import annotations

import re

PARAMETERS = ("weights", "bias", "weight_velocity", "bias_velocity")

_STEP = (
    "input", "rows", "labels", "logits", "head_gradient",
    "head/maximum", "head/exp", "head/sum", "head/positive", "head/reciprocal", "head/quotient",
)
_LAYER = PARAMETERS + ("pre_activation", "activation", "activation_gradient", "dW", "db")
_BLOCKS = {
    "truncate": ("x", "result"),
    "multiply": ("x", "y", "result"),
    "matmul": ("x", "y", "result"),
    "exp": ("x", "result"),
    "divide": ("x", "y", "result"),
    "log": ("x", "result"),
}


def in_step(name: str, layers: int) -> bool:
    """Whether `name`, as it stands after `step/N/`, means something in a network of so many layers."""
    if name in _STEP or name.startswith(("extra/", "coins/", "wraps/")):
        return True
    match = re.fullmatch(r"(start/)?layer([1-9][0-9]*)/(\w+)", name)
    if match is None or int(match.group(2)) > layers:
        return False
    return match.group(3) in (PARAMETERS if match.group(1) else _LAYER)


def in_block(kind: str, name: str) -> bool:
    """Whether a block of this kind has such a tensor."""
    return name in _BLOCKS.get(kind, ())
