"""Workers of a session as forks of one process that has imported the tests: to import them for itself takes each
worker longer than to find them."""

from __future__ import annotations

import contextlib
import importlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import execnet
import pytest

from tests.fork_server import begin_server, client_command, serve
from tests.stack_room import with_room

_ROOT = Path(__file__).parents[1]


def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[execnet.XSpec]) -> None:
    """Have each worker that is to be a process of this machine be such a fork, where the system has what the one
    that forks needs to see the end of another process."""
    here = [spec for spec in specs if spec.popen and spec.python is None]
    if not here or not hasattr(os, "pidfd_open"):
        return
    address = Path(tempfile.mkdtemp(prefix="workers-")) / "socket"
    places = [str(config.invocation_params.dir / arg.partition("::")[0]) for arg in config.args]
    begin_server(__name__, address, os.getpid(), _ROOT, *places)
    for spec in here:
        spec.python = shlex.join(client_command(str(address), "pytest"))


class _Imports:
    """Imports tests as pytest would, with their assertions rewritten, and finds none in them."""

    def __init__(self, places: Iterable[str]) -> None:
        self._places = [*map(Path, places)]

    def pytest_collection(self) -> bool:
        for place in self._places:
            for file in sorted(place.rglob("test_*.py")) if place.is_dir() else [place]:
                with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting the file says it
                    path = file.resolve().relative_to(_ROOT).with_suffix("")
                    importlib.import_module(".".join(path.parts))
        look_for_constants()
        return True


def look_for_constants() -> None:
    """Have Hypothesis look for constants in all that is imported, as it does when it first chooses one for a number
    of an example: for each twentieth."""
    from hypothesis import given, settings
    from hypothesis.strategies import integers, lists

    numbers = lists(integers(), min_size=100)
    settings(max_examples=10, database=None)(given(numbers)(lambda _: None))()


def _begin_worker() -> None:
    """What Python does for execnet as ``python -c``."""
    sys.argv[:] = ["-c"]
    main = sys.modules["__main__"] = ModuleType("__main__")
    with_room(lambda: exec(eval(sys.stdin.readline()), vars(main)))


if __name__ == "__main__":
    del sys.path[0]  # whence Python took this module; pytest's script is elsewhere
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["--numprocesses=0", "--collect-only", str(_ROOT / "tests")], [_Imports(sys.argv[3:])])
    serve(Path(sys.argv[1]), int(sys.argv[2]))
    _begin_worker()
