"""Trying a mutant: the tests that cover its line run on a copy of the repository in which it stands."""

from __future__ import annotations

import ast
import contextlib
import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from enum import Enum, StrEnum, auto
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path

from coverage import CoverageData

from tests.mutation.mutants import Mutant

_WARM = (
    "fastapi",
    "hypothesis",
    "lcm",
    "mujoco",
    "numpy",
    "pydantic",
    "pytest",
    "requests",
    "typer",
    "uvicorn",
    "websockets",
)
"""The packages that the tests import besides what is mutated; each trial is forked from a process that has it."""
_IGNORED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Pytest wants to import its plugins' modules itself."""


class Verdict(StrEnum):
    """The fate of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNCOVERED = "uncovered"


class _Outcome(Enum):
    """The outcome of some tests in one process."""

    PASSED = auto()
    FAILED = auto()
    LATE = auto()


class CoveringTests:
    """Which tests run a line, as coverage has noted it with ``tests.mutation.contexts``."""

    def __init__(self, data_file: Path) -> None:
        data = CoverageData(str(data_file))
        data.read()
        self._contexts = {Path(name).resolve(): data.contexts_by_lineno(name) for name in data.measured_files()}
        self._lines: Counter[str] = Counter()
        """How many lines each test runs altogether."""
        for contexts_of in self._contexts.values():
            for contexts in contexts_of.values():
                self._lines.update(contexts)

    def of(self, module: Path, line: int, most: int) -> list[str]:
        """Node ids, of each file the test that runs the fewest lines altogether, then of each the next one.

        First of the tests that run the line, then of those that run its function. For one that runs only outside of
        tests, at the import say, those that run anything of the module.
        """
        contexts_of = self._contexts.get(module.resolve(), {})
        first, last = _function_at(module, line)
        near = self._sorted(contexts_of.get(line, []))
        near += self._sorted(test for each in range(first, last + 1) for test in contexts_of.get(each, []))
        return list(dict.fromkeys(near or self._sorted(chain(*contexts_of.values()))))[:most]

    def _sorted(self, contexts: Iterable[str]) -> list[str]:
        by_size = sorted({*contexts} - {""}, key=lambda node_id: (self._lines[node_id], node_id))
        # A line that hundreds of tests run is run by the small ones of a few files, and meant by one of another file.
        files: Counter[str] = Counter()
        turns: dict[str, int] = {}
        for node_id in by_size:
            file = node_id.partition("::")[0]
            turns[node_id] = files[file]
            files[file] += 1
        return sorted(by_size, key=turns.__getitem__)


def _function_at(module: Path, line: int) -> tuple[int, int]:
    """The first and the last line of the innermost function around a line.

    Python 3.11 does not trace a coroutine's lines after an exception was thrown into it, a cancellation say.
    """
    tree = ast.parse(module.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around = [(node.body[0].lineno, node.end_lineno or line) for node in functions]
    return max(((first, last) for first, last in around if first <= line <= last), default=(line, line))


class Copy:
    """A copy of the repository in which mutants are tried, one after the other."""

    def __init__(self, repository: Path, folder: Path, timeout_s: float) -> None:
        self._repository, self._folder, self._timeout_s = repository, folder, timeout_s
        self._unreliable: set[str] = set()
        leave_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "build", "*.egg-info")
        shutil.copytree(repository, folder, symlinks=True, ignore=leave_out)
        for name in _WARM:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def notices(self, module: Path, code: str, tests: list[str]) -> bool:
        """Whether one of the tests fails with this text for the module, and passes without.

        A test that does not end in time has failed; where all of them together take too long, the rest gets that
        time anew. One that fails without the mistake, on a busy machine say, is left out from then on.
        """
        while tests := [test for test in tests if test not in self._unreliable]:
            outcome, last = self._run(tests, module, code)
            if outcome is _Outcome.PASSED:
                return False
            if outcome is _Outcome.LATE and last != tests[0]:
                tests = tests[tests.index(last) :]
            elif self._run([last])[0] is _Outcome.PASSED:
                return True
            else:
                self._unreliable.add(last)
        return False

    def _run(self, tests: list[str], module: Path | None = None, code: str = "") -> tuple[_Outcome, str]:
        """The outcome of the tests, and which was the last to begin: of those that failed, the first."""
        place = self._folder / (module or Path(__file__)).relative_to(self._repository)
        before = place.read_bytes()
        if module is not None:
            place.write_text(code, encoding="utf-8")
        context = multiprocessing.get_context("fork")
        begun, to_begun = context.Pipe(duplex=False)
        process = context.Process(target=_run_tests, args=(self._folder, tests, to_begun))
        try:
            process.start()
            to_begun.close()
            process.join(self._timeout_s)
            late = process.exitcode is None
            assert process.pid is not None
            with contextlib.suppress(ProcessLookupError):  # the processes that the tests started, too
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            last = tests[0]
            with contextlib.suppress(EOFError):
                while begun.poll():
                    last = begun.recv()
            passed = _Outcome.PASSED if process.exitcode == 0 else _Outcome.FAILED
            return _Outcome.LATE if late else passed, last
        finally:
            begun.close()
            place.write_bytes(before)


def try_out(mutant: Mutant, covering: CoveringTests, copy: Copy, most_tests: int) -> tuple[Verdict, float]:
    """The fate of a mutant, and after how many seconds."""
    began = time.monotonic()
    tests = covering.of(mutant.module, mutant.line, most_tests)
    if not tests:
        return Verdict.UNCOVERED, 0.0
    code = mutant.code()
    assert code is not None
    noticed = copy.notices(mutant.module, code, tests)
    return Verdict.KILLED if noticed else Verdict.SURVIVED, time.monotonic() - began


class _ReportBegun:
    """A plugin for pytest that sends the node id of each test that begins."""

    def __init__(self, begun: Connection) -> None:
        self._begun = begun

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._begun.send(nodeid)


def _run_tests(folder: Path, tests: list[str], begun: Connection) -> None:
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

    arguments = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--timeout=30", *_IGNORED, *tests]
    os._exit(pytest.main(arguments, plugins=[_ReportBegun(begun)]))
