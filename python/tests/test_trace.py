import os
import shutil

import numpy as np
import pytest

from difftest_trace import Trace, TraceError, check, read

HEADER = dict(engine="a test", head="softmax", widths=[3, 2], batch=2, learning_rate=0.5, fraction_bits=8, rounding="nearest")


def small(path):
    """One step of one layer, right to the last bit."""
    x = np.array([[256, 0, -256], [128, 512, 64]])
    w = np.array([[100, -3], [7, 50], [0, 256]])
    with Trace(path, **HEADER) as t:
        step = t.step(0)
        step.start(1, weights=w).record("input", x).record("labels", [1, 0])
        step.record("logits", (x @ w + 128) >> 8)


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_what_is_written_is_read(tmp_path, kind):
    if kind == "safetensors":
        pytest.importorskip("safetensors")
    path = tmp_path / f"run.{kind}"
    small(path)
    trace = read(path)
    assert trace.header["fraction_bits"] == 8 and trace.header["numbers"] == "fixed"
    assert trace.steps == [0]
    np.testing.assert_array_equal(trace.get(0, "input"), [[256, 0, -256], [128, 512, 64]])
    np.testing.assert_array_equal(trace.reals(0, "input"), [[1, 0, -1], [0.5, 2, 0.25]])
    assert trace.get(0, "head_gradient") is None


def test_transposed_views_are_stored_row_by_row(tmp_path):
    path = tmp_path / "run.npz"
    with Trace(path, **HEADER) as t:
        t.step(0).record("layer1/dW", np.arange(6).reshape(2, 3).T)
    np.testing.assert_array_equal(read(path).get(0, "layer1/dW"), [[0, 3], [1, 4], [2, 5]])


@pytest.mark.parametrize("name", ["logit", "layer2/dW", "layer0/dW", "start/layer1/dW", "step/0/logits"])
def test_names_that_mean_nothing_are_refused(tmp_path, name):
    trace = Trace(tmp_path / "run.npz", **HEADER)
    with pytest.raises(TraceError, match="is no tensor of a step"):
        trace.step(0).record(name, [1])
    trace.step(0).record("extra/" + name, [1])


def test_nothing_is_written_after_an_exception_and_nothing_twice(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(TraceError, match="recorded twice"):
        with Trace(path, **HEADER) as t:
            t.step(0).record("logits", [[1, 2]]).record("logits", [[1, 2]])
    with pytest.raises(TraceError, match="complex"):
        Trace(path, **HEADER).step(0).record("logits", np.array([1j]))
    assert list(tmp_path.iterdir()) == []


program = os.environ.get("DIFFTEST") or shutil.which("difftest")
needs_program = pytest.mark.skipif(program is None, reason="DIFFTEST names no program and there is no difftest on the path")


@needs_program
def test_the_program_judges_what_is_written(tmp_path):
    path = tmp_path / "run.npz"
    small(path)
    report = check(path, program=program)
    row = next(row for row in report.rows if row["tensor"] == "logits")
    assert row["verdict"] == "PASS" and row["max_error_units"] <= 0.5
    assert not report.passed, "what the trace lacks is open"
    assert check(path, program=program, allow_open=True).passed


@needs_program
def test_the_program_names_a_fault(tmp_path):
    path = tmp_path / "run.npz"
    small(path)
    trace = read(path)
    with Trace(path, **HEADER) as t:
        step = t.step(0).start(1, weights=trace.get(0, "start/layer1/weights"))
        step.record("input", trace.get(0, "input")).record("labels", [1, 0])
        step.record("logits", -trace.get(0, "logits"))
    report = check(path, program=program)
    assert report.first_fault["tensor"] == "logits" and report.causes[0] == "sign"


@needs_program
def test_a_file_that_is_no_trace_is_refused_in_one_line(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, x=np.zeros(3))
    with pytest.raises(RuntimeError, match="no array named `header`"):
        check(path, program=program)
