"""Trying a mutant: the tests that cover its line run on a copy of the repository in which it stands."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import shutil
import sys
import time
from collections import Counter
from enum import StrEnum
from pathlib import Path

from coverage import CoverageData

from tests.mutation.mutants import Mutant

_WARM = ("fastapi", "lcm", "numpy", "pydantic", "pytest", "requests", "typer", "uvicorn", "websockets")
"""What the tests import besides what is mutated; each trial is forked from a process that has it."""
_IGNORED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Pytest wants to import its plugins' modules itself."""


class Verdict(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNCOVERED = "uncovered"


class CoveringTests:
    """Which tests run a line, as coverage has noted it with ``tests.mutation.contexts``."""

    def __init__(self, data_file: Path) -> None:
        self._data = CoverageData(str(data_file))
        self._data.read()
        self._measured = {Path(name).resolve(): name for name in self._data.measured_files()}
        self._lines: Counter[str] = Counter()
        """How many lines each test runs altogether."""
        for name in self._measured.values():
            for contexts in self._data.contexts_by_lineno(name).values():
                self._lines.update(contexts)

    def of(self, module: Path, line: int, most: int) -> list[str]:
        """Node ids, those first that run the fewest lines altogether."""
        name = self._measured.get(module.resolve())
        contexts = self._data.contexts_by_lineno(name).get(line, []) if name else []
        return sorted({*contexts} - {""}, key=lambda node_id: (self._lines[node_id], node_id))[:most]


class Copy:
    """A copy of the repository in which mutants are tried, one after the other."""

    def __init__(self, repository: Path, folder: Path, timeout_s: float) -> None:
        self._repository, self._folder, self._timeout_s = repository, folder, timeout_s
        leave_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "build", "*.egg-info")
        shutil.copytree(repository, folder, symlinks=True, ignore=leave_out)
        for name in _WARM:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def passes(self, module: Path, code: str, tests: list[str]) -> bool:
        """Whether the tests pass with this text for the module. Tests that do not end in time have not passed."""
        place = self._folder / module.relative_to(self._repository)
        before = place.read_bytes()
        place.write_text(code, encoding="utf-8")
        try:
            process = multiprocessing.get_context("fork").Process(target=_run_tests, args=(self._folder, tests))
            process.start()
            process.join(self._timeout_s)
            if process.exitcode is None:
                process.kill()
                process.join()
            return process.exitcode == 0
        finally:
            place.write_bytes(before)


def try_out(mutant: Mutant, covering: CoveringTests, copy: Copy, most_tests: int) -> tuple[Verdict, float]:
    """What became of it, and after how many seconds."""
    began = time.monotonic()
    tests = covering.of(mutant.module, mutant.line, most_tests)
    if not tests:
        return Verdict.UNCOVERED, 0.0
    code = mutant.code()
    assert code is not None
    passes = copy.passes(mutant.module, code, tests)
    return Verdict.SURVIVED if passes else Verdict.KILLED, time.monotonic() - began


def _run_tests(folder: Path, tests: list[str]) -> None:
    os.setpgrp()
    os.chdir(folder)
    output = os.open(os.devnull, os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.dont_write_bytecode = True
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "dimos_streams")]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    import pytest

    os._exit(pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", "--timeout=30", *_IGNORED, *tests]))
