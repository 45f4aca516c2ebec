"""Writing and reading traces as .npz or .safetensors."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, List, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from . import names

Path = Union[str, "os.PathLike[str]"]


class TraceError(ValueError):
    """A tensor or field that no trace can have, in one line."""


def _tensor(name: str, values: ArrayLike) -> np.ndarray:
    """The values as an array that a trace can hold: integers, float32 or float64."""
    array = np.asarray(values)
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise TraceError(f"{name} has elements of type {array.dtype}; integers, float32 and float64 can be stored")
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    # Transposed views are stored column by column otherwise; little-endian is what every reader understands.
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).reshape(array.shape)


class Step:
    """One training step of a trace under construction."""

    def __init__(self, trace: "Trace", number: int) -> None:
        self._trace = trace
        self._number = number

    def record(self, name: str, values: ArrayLike) -> "Step":
        """Records a tensor: integers in units, or reals. Returns the step, so that calls can be chained."""
        if not names.in_step(name, self._trace.layers):
            raise TraceError(f"{name} is no tensor of a step of this network; see docs/trace.md, or call it extra/{name}")
        self._trace._put(f"step/{self._number}/{name}", values)
        return self

    def start(self, layer: int, **parameters: ArrayLike) -> "Step":
        """Records what a layer, counted from 1, starts the step with: weights, bias, weight_velocity, bias_velocity."""
        for what, values in parameters.items():
            self.record(f"start/layer{layer}/{what}", values)
        return self

    def layer(self, layer: int, **tensors: ArrayLike) -> "Step":
        """Records tensors of a layer, counted from 1: pre_activation, activation, dW, db, weights and so on."""
        for what, values in tensors.items():
            self.record(f"layer{layer}/{what}", values)
        return self


class Trace:
    """A trace that is written when the `with` block ends without an exception. The file then appears as a whole."""

    def __init__(self, path: Path, *, engine: str, numbers: Optional[str] = None, **header: Any) -> None:
        if numbers is None:
            numbers = "fixed" if "fraction_bits" in header else "float64"
        self.path = os.fspath(path)
        self.header: Dict[str, Any] = {
            "format": "difftest-trace", "version": 1, "engine": engine, "numbers": numbers, **header,
        }
        self.tensors: Dict[str, np.ndarray] = {}

    @property
    def layers(self) -> int:
        """Dense layers of the network."""
        return max(len(self.header.get("widths", [])) - 1, 0)

    def step(self, number: int) -> Step:
        """The step of this number, from 0."""
        if number < 0:
            raise TraceError(f"step {number}; steps are counted from 0")
        return Step(self, number)

    def block(self, kind: str, name: str, **tensors: ArrayLike) -> None:
        """Records an operation outside of a step: `block("exp", "mine", x=.., result=..)`."""
        for what, values in tensors.items():
            if not names.in_block(kind, what):
                raise TraceError(f"a block of kind {kind} has no tensor {what}; see docs/trace.md")
            self._put(f"block/{kind}/{name}/{what}", values)

    def _put(self, name: str, values: ArrayLike) -> None:
        if name in self.tensors:
            raise TraceError(f"{name} is recorded twice")
        self.tensors[name] = _tensor(name, values)

    def write(self) -> None:
        """Writes the file: to a temporary one beside it first, which is then renamed."""
        folder = os.path.dirname(os.path.abspath(self.path))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".trace-")
        try:
            with os.fdopen(handle, "wb") as file:
                self._write_to(file)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _write_to(self, file: Any) -> None:
        header = json.dumps(self.header)
        if self.path.endswith(".safetensors"):
            file.write(_safetensors().save(self.tensors, metadata={"header": header}))
        else:
            np.savez_compressed(file, header=np.array(header), **self.tensors)

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is None:
            self.write()


class ReadTrace:
    """A trace that was read: its header and its tensors by full name."""

    def __init__(self, header: Dict[str, Any], tensors: Dict[str, np.ndarray]) -> None:
        self.header = header
        self.tensors = tensors

    @property
    def steps(self) -> List[int]:
        """The recorded steps, in order."""
        return sorted({int(name.split("/")[1]) for name in self.tensors if name.startswith("step/")})

    def get(self, step: int, name: str) -> Optional[np.ndarray]:
        """A tensor of a step as it was stored; None if the trace lacks it."""
        return self.tensors.get(f"step/{step}/{name}")

    def reals(self, step: int, name: str) -> Optional[np.ndarray]:
        """A tensor of a step as reals: integers are divided by 2^scale."""
        array = self.get(step, name)
        if array is None or array.dtype.kind == "f":
            return array
        scales = self.header.get("scales", {})
        scale = scales.get(name, scales.get(name.split("/")[-1], self.header.get("fraction_bits", 0)))
        return array.astype(np.float64) / 2.0**scale


def read(path: Path) -> ReadTrace:
    """Reads a trace, whichever of the two kinds of file it is."""
    path = os.fspath(path)
    if path.endswith(".safetensors"):
        library = _safetensors()
        with open(path, "rb") as file:
            data = file.read()
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
        if "header" not in metadata:
            raise TraceError(f"{path} has no header in its metadata; it is no trace")
        return ReadTrace(json.loads(metadata["header"]), library.load(data))
    with np.load(path, allow_pickle=False) as file:
        if "header" not in file:
            raise TraceError(f"{path} has no array `header`; it is no trace")
        stored = file["header"]
        text = stored.tobytes().decode() if stored.dtype == np.uint8 else str(stored[()])
        return ReadTrace(json.loads(text), {name: file[name] for name in file.files if name != "header"})


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise TraceError('a .safetensors trace needs the package: pip install "difftest-trace[safetensors]"') from error
    return safetensors.numpy
