"""The pytest plugin: missions in virtual time, and logs as tests.

Tests that use ``blueprint_run`` may be coroutines; they run in virtual time. Heavy modules are imported when a
fixture is used, because the plugin is loaded wherever the package is installed.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
import itertools
import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dimos_streams.common.process.collector import collecting_seldom

if TYPE_CHECKING:
    from dimos_streams.blueprint.model import Blueprint
    from dimos_streams.bus import Bus
    from dimos_streams.regression.report import Report
    from dimos_streams.regression.tolerances import Tolerances
    from dimos_streams.testing.faults.fault_injection import FaultInjection
    from dimos_streams.testing.mission import MissionRun

_FIXTURES = frozenset({"blueprint_run", "fault_bus"})
_MARK = "virtual_time"
_KEPT_IN = "failed-recordings"
_NOT_RUN = "async def function"
"""The beginning of what pytest says of a coroutine that no plugin has run."""
_RUN_LIMIT_S = 600.0
"""Virtual time, in seconds, after which a test with a run of a blueprint fails, unless its mark says otherwise: the
modules of a run go on for ever, whoever waits."""


@dataclass
class _Recorded:
    """A run of the current test."""

    run: MissionRun
    target: Path | None
    """The path to which ``--update-recordings`` copies its recording."""


_PACKAGE = "dimos_streams"
_RUNS = pytest.StashKey[list[_Recorded]]()
"""The runs of a test."""
_REWRITTEN = pytest.StashKey[list[str]]()
"""The texts about the recordings that a test has written anew."""
_WRITTEN = "recordings written anew"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """See pytest."""
    _leave_package_as_it_is(pluginmanager)
    group = parser.getgroup("dimos_streams", "missions and recordings")
    group.addoption("--update-recordings", action="store_true", help="write recordings anew, with what is given now")
    group.addoption(
        "--recordings-dir",
        metavar="DIR",
        default=_KEPT_IN,
        help=f"where the recordings of failed runs are kept, below the root directory (default: {_KEPT_IN})",
    )


def _leave_package_as_it_is(pluginmanager: pytest.PytestPluginManager) -> None:
    """Keep pytest from rewriting the assertions of the whole package, as it does with all that has a plugin: that
    compiles each module once more. Those of what tests use still say what they compared."""
    hook: Any = pluginmanager.rewrite_hook
    if _PACKAGE in getattr(hook, "_must_rewrite", ()):
        hook._must_rewrite.remove(_PACKAGE)
        hook.mark_rewrite(f"{_PACKAGE}.testing")


def pytest_configure(config: pytest.Config) -> None:
    """See pytest."""
    config.addinivalue_line(
        "markers", "virtual_time(limit_s=…): the test is a coroutine, to be run in virtual time, at most so long"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep Python's collector from looking again and again at what tests import, a fifth of a session with one
    mission; if any of them uses this plugin, never again."""
    with collecting_seldom():
        result = yield
    if any(map(_is_ours, session.items)):
        gc.freeze()
    return result


def _is_ours(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return item.get_closest_marker(_MARK) is not None or not _FIXTURES.isdisjoint(names)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutines that use this plugin."""
    mark, fixtures = pyfuncitem.get_closest_marker(_MARK), _FIXTURES.intersection(pyfuncitem.fixturenames)
    if not (mark or fixtures) or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from dimos_streams.clock import run_virtual

    names = inspect.signature(pyfuncitem.obj).parameters
    limit_s = _limit_of(mark) if mark is not None else None
    if limit_s is None and "blueprint_run" in fixtures:
        limit_s = _RUN_LIMIT_S
    with collecting_seldom():  # modules import their parts when they start
        run_virtual(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}), limit_s=limit_s)
    return True


@pytest.hookimpl(wrapper=True, specname="pytest_pyfunc_call")
def pytest_unmarked_coroutine(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Say which mark a coroutine lacks that pytest finds nobody to run; what it says itself names other plugins."""
    try:
        return (yield)
    except (pytest.fail.Exception, pytest.skip.Exception) as error:
        if str(error.msg).startswith(_NOT_RUN):
            error.msg = (
                f"{pyfuncitem.name} is `async def`: add `@pytest.mark.virtual_time`, and it runs in virtual time"
                " (or the mark of another plugin that runs coroutines)"
            )
        raise


def _limit_of(mark: pytest.Mark) -> float | None:
    """The bound that a mark ``virtual_time`` sets. Fails the test for arguments that it does not have, which would
    change nothing."""
    unknown = [*map(repr, mark.args), *(name for name in mark.kwargs if name != "limit_s")]
    if unknown:
        pytest.fail(f"virtual_time takes no argument {', '.join(unknown)} (valid: limit_s=SECONDS)", pytrace=False)
    limit_s: float | None = mark.kwargs.get("limit_s")
    if not (limit_s is None or (isinstance(limit_s, Real) and limit_s > 0)):
        pytest.fail(f"virtual_time(limit_s={limit_s!r}): it must be a number of seconds, more than 0", pytrace=False)
    return limit_s


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the recordings of failed runs with their reports, and say how to replay them. A mistake of the test's
    author is shown at the line of the author's that has made it."""
    if call.excinfo is not None and not (item.config.getoption("fulltrace") or item.config.getoption("usepdb")):
        from dimos_streams.testing.author_errors import shorten

        shorten(call.excinfo.value)
    report = yield
    if report.when == "call":
        if runs := item.stash.get(_RUNS, None):
            _end_runs(runs, item, report)
        report.sections += [(_WRITTEN, text) for text in item.stash.get(_REWRITTEN, ())]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which recordings were written anew, and what differs in them, which nobody can see from their bytes."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    texts = [text for report in reports for name, text in getattr(report, "sections", ()) if name == _WRITTEN]
    if texts:
        terminalreporter.section(_WRITTEN)
        terminalreporter.write_line("\n".join(texts))


def _end_runs(runs: Iterable[_Recorded], item: pytest.Item, report: pytest.TestReport) -> None:
    """Keep what the runs of a test have recorded where it failed, and where its recordings are to be written anew."""
    from dimos_streams.testing.kept_recordings import copy_recording, keep_recording

    folder = item.config.rootpath / item.config.getoption("--recordings-dir")
    for number, recorded in enumerate(runs):
        if report.failed:
            report.sections.append(("recording", keep_recording(recorded.run, folder, item.name, number)))
        elif report.passed and recorded.target is not None and item.config.getoption("--update-recordings"):
            if trouble := copy_recording(recorded.run.recording, recorded.target):
                report.outcome, report.longrepr = "failed", trouble
            else:
                report.sections.append((_WRITTEN, f"{recorded.target} is of the run in {item.name}"))
        recorded.run.recording.unlink(missing_ok=True)


@pytest.fixture
def blueprint_run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., MissionRun]:
    """Return a function that makes runs of blueprints: ``async with blueprint_run("follow-person", seed=7) as run:
    …``.

    Arguments are those of ``dimos_streams.testing.MissionRun``, except ``record``: a path to which
    ``--update-recordings`` copies the recording. Paths are relative to the test's file; a blueprint's file that is
    not beside it is looked for in the working directory.
    """
    runs = request.node.stash.setdefault(_RUNS, [])
    numbers = itertools.count()

    def make(
        blueprint: str | Path | Blueprint,
        *,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        faults: Callable[[Bus, str], Bus] | None = None,
        record: str | Path | None = None,
        **more: Any,
    ) -> MissionRun:
        from dimos_streams.testing.blueprint_files import found_from
        from dimos_streams.testing.mission import MissionRun

        log = tmp_path / f"run-{next(numbers)}.lcmlog"
        if isinstance(blueprint, str | Path):
            blueprint = found_from(request.path.parent, str(blueprint))
        run = MissionRun(blueprint, record=log, seed=seed, settings=settings, faults=faults, **more)
        runs.append(_Recorded(run, None if record is None else request.path.parent / record))
        return run

    return make


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Return a function that replays a log through modules, fails the test where they behave differently, and returns
    the report.

    ``replay("golden/follow.lcmlog", ["follow"], tolerances=…)``: the path is relative to the test's file, as is that
    of a blueprint, which is found as ``blueprint_run`` finds it. Further arguments are those of
    ``dimos_streams.regression.replay.ReplayOptions``. With ``--update-recordings`` a log that fails is written anew.
    """
    update: bool = request.config.getoption("--update-recordings")

    def run(
        log: str | Path,
        modules: Sequence[str],
        *,
        tolerances: Tolerances | None = None,
        blueprint: str | Path | Blueprint | None = None,
        **options: Any,
    ) -> Report:
        from dimos_streams.blueprint.load import resolve
        from dimos_streams.regression.replay import ReplayOptions
        from dimos_streams.regression.replay import replay as replay_log
        from dimos_streams.regression.replay_command import replay_command
        from dimos_streams.testing.blueprint_files import found_from

        if isinstance(modules, str) or not isinstance(modules, Iterable):
            pytest.fail(f"modules are a list of names: replay({str(log)!r}, [{modules!r}])", False)
        path = _kept_recording(request, log)
        found: str | None = None
        if isinstance(blueprint, str | Path):
            found = found_from(request.path.parent, str(blueprint))
            blueprint = resolve(found)
        chosen = ReplayOptions(modules=tuple(modules), tolerances=tolerances, blueprint=blueprint, **options)
        with collecting_seldom():
            report = replay_log(path, chosen)
            if not report.passed and update:
                report = replay_log(path, dataclasses.replace(chosen, update=True))
        if report.updated:
            text = "\n".join((*report.lines(), f"{path} has what the modules give now"))
            request.node.stash.setdefault(_REWRITTEN, []).append(text)
        if not report.passed and not report.updated:
            by_hand = replay_command(path, modules, found, chosen.settings, tolerances, chosen.seed)
            pytest.fail("\n".join((*report.lines(), *by_hand)), pytrace=False)
        return report

    return run


def _kept_recording(request: pytest.FixtureRequest, log: str | Path) -> Path:
    """The path of a recording that a test names. Fails the test if it is not there."""
    path = request.path.parent / log
    if not path.exists():
        another = " (another worker of pytest-xdist may: -n 0)" if hasattr(request.config, "workerinput") else ""
        pytest.fail(
            f"there is no recording {path}; pytest --update-recordings makes those of missions{another}", False
        )
    return path


@pytest.fixture
def fault_bus() -> Callable[..., FaultInjection]:
    """Return a function that makes buses that lose, double and delay messages: ``blueprint_run(…,
    faults=fault_bus(loss=0.2, delay_s=(0.0, 0.05)))``.

    Arguments are those of ``dimos_streams.testing.Faults``, and ``seed``.
    """

    def make(*, seed: int = 0, **faults: Any) -> FaultInjection:
        from dimos_streams.testing.faults.fault_bus import Faults
        from dimos_streams.testing.faults.fault_injection import FaultInjection

        return FaultInjection(Faults(**faults), seed)

    return make


@pytest.fixture
def scripted_model(tmp_path: Path) -> Callable[..., str]:
    """Return a function that makes models that play turns: ``settings={"agent.model": scripted_model({"text":
    "Hello"}, …)}``.

    A turn is as in ``dimos_streams.agent.models.scripted``: ``{"calls": [{"skill": …, "arguments": …}]}``.
    """
    numbers = itertools.count()

    def make(*turns: Mapping[str, Any]) -> str:
        path = tmp_path / f"script-{next(numbers)}.yaml"
        path.write_text(json.dumps({"turns": list(turns)}), encoding="utf-8")
        return f"scripted:{path}"

    return make
