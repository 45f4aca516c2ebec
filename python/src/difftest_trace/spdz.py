"""From what an MP-SPDZ program prints to a trace: `python -m difftest_trace.spdz printed.txt header.json out.npz`.

A tensor is one line, `TRACE name shape [values]`: its full name, its dimensions joined by x (`scalar` for a single
number), and its elements row by row, as integers in units. Brackets and commas are optional. Integers of the ring may
be printed with a sign or without: those from 2^(ring - 1) on are negative. Any other line is passed over. The header is
a JSON object with the fields of docs/trace.md; `engine` is MP-SPDZ unless it says otherwise.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy as np

from . import names
from .trace import Trace, TraceError


def tensor(line: str, ring_bits: int = 64) -> Optional[Tuple[str, np.ndarray]]:
    """Name and elements of a line; None if it is not a tensor's."""
    words = line.split(None, 3)
    if not words or words[0] != "TRACE":
        return None
    if len(words) < 4:
        raise TraceError(f"{line.strip()[:60]!r} is cut short; a tensor is printed as TRACE name shape [values]")
    name, dimensions, text = words[1:]
    if dimensions != "scalar" and not re.fullmatch(r"[0-9]+(x[0-9]+)*", dimensions):
        raise TraceError(f"{name} has the shape {dimensions!r}; dimensions are joined by x, as in 8x4")
    shape = () if dimensions == "scalar" else tuple(int(d) for d in dimensions.split("x"))
    values: List[int] = []
    for word in re.split(r"[\s,\[\]]+", text):
        if not word:
            continue
        if not re.fullmatch(r"-?[0-9]+", word):
            raise TraceError(f"{name} has the element {word!r}; print units, which are integers: sfix.v, not sfix")
        value = int(word)
        values.append(value - (1 << ring_bits) if value >= 1 << (ring_bits - 1) else value)
    count = int(np.prod(shape, dtype=np.int64))
    if len(values) != count:
        raise TraceError(f"{name} has {len(values)} elements; its shape {dimensions} has {count}")
    if any(not -(1 << 63) <= v < 1 << 63 for v in values):
        raise TraceError(f"{name} has an element of more than 64 bits, which no trace can hold")
    return name, np.array(values, dtype=np.int64).reshape(shape)


def convert(lines: Iterable[str], header: Dict[str, Any], out: str) -> int:
    """Writes the trace of what was printed; returns the number of tensors."""
    header = {"engine": "MP-SPDZ", **header}
    header.pop("format", None)
    header.pop("version", None)
    trace = Trace(out, **header)
    for line in lines:
        found = tensor(line, header.get("ring_bits", 64))
        if found is None:
            continue
        name, values = found
        parts = name.split("/", 2)
        if parts[0] == "step" and len(parts) == 3 and parts[1].isdigit():
            trace.step(int(parts[1])).record(parts[2], values)
            continue
        kind, _, rest = name[len("block/"):].partition("/") if name.startswith("block/") else ("", "", "")
        block, _, what = rest.rpartition("/")
        if not block or not names.in_block(kind, what):
            raise TraceError(f"{name} is no name of a trace; it is step/N/.. or block/KIND/NAME/.., see docs/trace.md")
        trace.block(kind, block, **{what: values})
    if not trace.tensors:
        raise TraceError("no line begins with TRACE; print each tensor as docs/engines/mp-spdz.md says")
    trace.write()
    return len(trace.tensors)


def main(arguments: List[str]) -> int:
    """The command; exit code 2 is bad input."""
    if len(arguments) != 3:
        print("usage: python -m difftest_trace.spdz printed.txt header.json out.npz", file=sys.stderr)
        return 2
    printed, header, out = arguments
    try:
        with open(header, encoding="utf-8") as file:
            fields = json.load(file)
        with open(printed, encoding="utf-8") as file:
            count = convert(file, fields, out)
    except (OSError, ValueError, TypeError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    print(f"{out}: {count} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
