"""Calling `difftest check`."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any, Dict, List, Optional, Union

Path = Union[str, "os.PathLike[str]"]


class Report:
    """What the program found: its JSON, and the parts of it that are asked for most."""

    def __init__(self, json: Dict[str, Any], passed: bool, text: str) -> None:
        self.json = json
        #: Whether the program's exit code was 0.
        self.passed = passed
        #: What it printed.
        self.text = text

    @property
    def rows(self) -> List[Dict[str, Any]]:
        """One row a tensor."""
        return list(self.json["rows"])

    @property
    def causes(self) -> List[str]:
        """The causes that were named, in order of execution."""
        return [cause["name"] for row in self.rows for cause in row["causes"]]

    @property
    def first_fault(self) -> Optional[Dict[str, Any]]:
        """The first row that fails in the earliest step that fails."""
        failing = [row for row in self.rows if row["verdict"] == "FAIL"]
        return min(failing, key=lambda row: row["first_step"], default=None)


def check(trace: Path, *, program: Optional[Path] = None, allow_open: bool = False) -> Report:
    """Judges a trace with the program: `program`, the environment's DIFFTEST, or `difftest` of the search path.

    Raises RuntimeError with the program's own line if the file is no trace, FileNotFoundError if there is no program.
    """
    command = os.fspath(program or os.environ.get("DIFFTEST", "difftest"))
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        arguments = [command, "check", os.fspath(trace), "--json", report]
        if allow_open:
            arguments.append("--allow-open")
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode not in (0, 1) or not os.path.exists(report):
            raise RuntimeError(done.stderr.strip() or f"{command} ended with exit code {done.returncode}")
        with open(report, encoding="utf-8") as file:
            return Report(json.load(file), done.returncode == 0, done.stdout)
