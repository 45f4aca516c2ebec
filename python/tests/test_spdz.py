import json

import numpy as np
import pytest

from difftest_trace import TraceError, read, spdz
from test_trace import HEADER, needs_program, program

# What the program of docs/engines/mp-spdz.md prints for one layer of 3 inputs and 2 classes, written by hand: the ring's
# integers without a sign in one line, with one in the others, and lines of other things between.
PRINTED = """Using security parameter 40
TRACE step/0/input 2x3 [256, 0, -256, 128, 512, 64]
TRACE step/0/labels 2 [1, 0]
TRACE step/0/start/layer1/weights 3x2 [100, 18446744073709551613, 7, 50, 0, 256]
TRACE step/0/logits 2x2 [100, -259, 64, 163]
Time = 0.00124 seconds
"""


def written(tmp_path, printed=PRINTED, **more):
    (tmp_path / "printed.txt").write_text(printed)
    (tmp_path / "header.json").write_text(json.dumps({**HEADER, **more}))
    return [str(tmp_path / name) for name in ("printed.txt", "header.json", "out.npz")]


def test_what_is_printed_becomes_a_trace(tmp_path):
    arguments = written(tmp_path)
    assert spdz.main(arguments) == 0
    trace = read(arguments[2])
    assert trace.steps == [0] and len(trace.tensors) == 4
    np.testing.assert_array_equal(trace.get(0, "start/layer1/weights"), [[100, -3], [7, 50], [0, 256]])
    np.testing.assert_array_equal(trace.get(0, "logits"), [[100, -259], [64, 163]])


def test_blocks_and_single_numbers(tmp_path):
    block = "TRACE block/multiply/rate/"
    printed = f"{block}x 3 1 2 3\n{block}y scalar 256\n{block}result 3 1 2 3\n"
    arguments = written(tmp_path, printed)
    assert spdz.main(arguments) == 0
    assert read(arguments[2]).tensors["block/multiply/rate/y"].shape == ()


@needs_program
def test_the_program_judges_it(tmp_path):
    from difftest_trace import check

    arguments = written(tmp_path)
    assert spdz.main(arguments) == 0
    logits = next(r for r in check(arguments[2], program=program).rows if r["tensor"] == "logits")
    assert logits["verdict"] == "PASS"


@pytest.mark.parametrize("line, says", [
    ("TRACE step/0/logits 2x2", "cut short"),
    ("TRACE step/0/logits 2x2 [1, 2, 3]", "3 elements"),
    ("TRACE step/0/logits two 1", "joined by x"),
    ("TRACE step/0/logits 2 0.5 1", "print units"),
    ("TRACE step/0/logits 1 99999999999999999999999", "64 bits"),
    ("TRACE step/0/logit 1 1", "no tensor of a step"),
    ("TRACE logits 1 1", "step/N/"),
    ("TRACE block/exp/mine/y 1 1", "block/KIND/NAME"),
    ("nothing", "no line begins with TRACE"),
])
def test_bad_lines_are_refused_in_one_line(tmp_path, capsys, line, says):
    assert spdz.main(written(tmp_path, line + "\n")) == 2
    said = capsys.readouterr().err
    assert says in said and len(said.splitlines()) == 1
    assert not (tmp_path / "out.npz").exists()


def test_a_line_of_something_else_is_no_tensor():
    assert spdz.tensor("TRACED 1 2 3") is None and spdz.tensor("") is None
    with pytest.raises(TraceError):
        spdz.tensor("TRACE")
