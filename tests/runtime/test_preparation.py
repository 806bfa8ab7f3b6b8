"""Code as it is on disk now: what is wrong with it is found before anything ends for it, with its line."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from py_compile import compile as compile_source
from types import ModuleType
from typing import Any

import pytest

from dimos_streams.blueprint.checks import message_check
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.documents.problem import BlueprintError
from dimos_streams.messages.generation.freshness import Stale
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ModulePlan, ProcessPlan
from dimos_streams.runtime.processes.preparation import prepare
from dimos_streams.runtime.processes.reports import Report, ReportReader
from dimos_streams.runtime.processes.sources import LoadedSources, forget_stale_bytecode, stamp
from dimos_streams.runtime.processes.worker import _prepare
from dimos_streams.runtime.processes.worker_task import BEGIN, WorkerTask

pytestmark = pytest.mark.feature("K4")

KETTLE = """
from typing import Annotated
from dimos_streams.live_settings import Live
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import skill
from dimos_streams.streams import In, Out

class KettleConfig(ModuleConfig):
    warm_c: Annotated[float, Live] = 60.0

class Kettle(Module):
    config: KettleConfig
    steam: Out[String]
    orders: In[String] = In(required=False)

    @skill
    async def warm(self) -> float:
        \"\"\"How warm.\"\"\"
        return self.config.warm_c
"""


class Shop:
    """A folder of Python modules that are importable; each has a name of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kettle(self, name: str, source: str = KETTLE, **config: Any) -> ProcessPlan:
        (self.folder / f"{name}.py").write_text(source)
        return ProcessPlan(
            "kettle", (ModulePlan(ModuleSpec(name="kettle", type=f"{name}:Kettle", config=config), {}),)
        )

    def fault(self, name: str, source: str, **live: str) -> str:
        """What a worker reports of code and settings that can't be used."""
        ours, theirs = Pipe()
        plan, sources = self.kettle(name, source), LoadedSources()
        task = WorkerTask(plan, RunOptions(bus_url="memq://"), None, {"kettle": live}, frozenset())
        with pytest.raises(SystemExit):
            _prepare(task, frozenset(), theirs, sources)
        loaded, failed = ReportReader(ours).read()
        assert (loaded["kind"], failed["kind"], failed["user"]) == ("sources", "failed", True)
        return str(failed["text"]).replace(str(self.folder), "DIR")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield Shop(tmp_path)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_a_process_is_wired_as_its_code_is_now(shop: Shop) -> None:
    plan = shop.kettle("kettle_wired")
    alone = prepare(plan, frozenset(), {})
    assert alone.plan.modules[0].topics == {"steam": "/steam"}
    assert alone.outputs == {"/steam#std_msgs.String"}
    with_orders = prepare(plan, frozenset({"/orders#std_msgs.String"}), {"kettle": {"warm_c": "80"}})
    assert with_orders.plan.modules[0].topics == {"steam": "/steam", "orders": "/orders"}


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        (
            "kettle_syntax",
            "class Kettle(Module):",
            "class Kettle(Module) is",
            "module 'kettle': 'kettle_syntax' can't be imported: SyntaxError: invalid syntax"
            " (DIR/kettle_syntax.py:12)",
        ),
        (
            "kettle_import",
            "from typing import Annotated",
            "import not_there_at_all",
            "module 'kettle': 'kettle_import' can't be imported: 'not_there_at_all' is not installed:"
            " pip install 'not_there_at_all'; or is it a file of yours? Those are found in the working directory and"
            " on PYTHONPATH (DIR/kettle_import.py:2)",
        ),
        (
            "kettle_zero",
            "= 60.0",
            "= 60.0 / 0",
            "module 'kettle': 'kettle_zero' can't be imported: ZeroDivisionError: float division by zero"
            " (DIR/kettle_zero.py:10)",
        ),
        (
            "kettle_gone",
            "class Kettle(Module):",
            "class Kettles(Module):",
            "module 'kettle': 'kettle_gone' has no 'Kettle'; did you mean 'Kettles'?",
        ),
        (
            "kettle_config",
            "= 60.0",
            "",
            "module 'kettle' needs the setting 'warm_c'",
        ),
        (
            "kettle_skill",
            "async def warm(self) -> float:",
            "async def warm(self, much) -> float:",
            "module 'kettle': kettle_skill:Kettle is not declared as it should be: Kettle.warm: 'much' needs a type",
        ),
        (
            "kettle_undo",
            "@skill",
            "@skill(undo='coool')",
            "module 'kettle': kettle_undo:Kettle is not declared as it should be: Kettle.warm: undo names 'coool',"
            " which is no skill of it",
        ),
        (
            "kettle_unfed",
            "In(required=False)",
            "In()",
            "module 'kettle' requires its input 'orders', but nothing publishes '/orders#std_msgs.String'; outputs of"
            " that type: /steam",
        ),
    ],
)
def test_what_can_t_be_used_is_named_with_its_line(shop: Shop, name: str, old: str, new: str, fault: str) -> None:
    assert old in KETTLE
    assert shop.fault(name, KETTLE.replace(old, new)) == fault


def test_an_input_that_the_config_asks_for_is_to_be_fed_as_well(shop: Shop) -> None:
    hook = "    @classmethod\n    def needed_inputs(cls, config):\n        "
    assert shop.fault("kettle_asks", f"{KETTLE}\n{hook}return ['orders']\n") == (
        "module 'kettle' requires its input 'orders', but nothing publishes '/orders#std_msgs.String'; outputs of"
        " that type: /steam"
    )
    assert shop.fault("kettle_asks_in_vain", f"{KETTLE}\n{hook}return config.oven\n").startswith(
        "module 'kettle': kettle_asks_in_vain:Kettle: its needed_inputs(config) fails (AttributeError: 'KettleConfig'"
    )


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (
            "raise KeyError('oh')",
            "kettle_raises:Kettle: its problems(config) fails (KeyError: 'oh') (DIR/kettle_raises.py:24);",
        ),
        ("return [(('warm_c',), 'it is too warm')]", "warm_c: it is too warm"),
    ],
)
def test_what_its_author_finds_wrong_with_a_config_is_told_as_by_check(shop: Shop, body: str, fault: str) -> None:
    source = f"{KETTLE}\n    @classmethod\n    def problems(cls, config):\n        {body}\n"
    assert shop.fault("kettle_raises", source).startswith(f"module 'kettle': {fault}")
    sys.modules.pop("kettle_raises", None)


def test_what_was_set_while_it_ran_must_be_possible_still(shop: Shop) -> None:
    assert shop.fault("kettle_not_live", KETTLE.replace("Annotated[float, Live]", "float"), warm_c="80") == (
        "module 'kettle': what was `set` while it ran is not possible any more: warm_c: it does not change while its"
        " module runs, only by `run --set` or in the blueprint (its module has none that is live)"
        " (`set` the blueprint's value first)"
    )


def begun(plan: ProcessPlan, **live: str) -> tuple[WorkerTask | None, list[Report]]:
    """The task of a successor that was prepared with 80 °C and is to begin with other settings, or None if it exits;
    and its reports."""
    ours, theirs = Pipe()
    ours.send_bytes(json.dumps({"kind": BEGIN, "live": {"kettle": live}}).encode())
    task = WorkerTask(
        plan, RunOptions(bus_url="memq://"), None, {"kettle": {"warm_c": "80"}}, frozenset(), waits=True
    )
    result = None
    with contextlib.suppress(SystemExit):
        result = _prepare(task, frozenset(), theirs, LoadedSources())
    return result, list(ReportReader(ours).read())


def test_a_successor_begins_with_what_was_set_while_it_was_prepared(shop: Shop) -> None:
    task, reports = begun(shop.kettle("kettle_set_meanwhile"), warm_c="30")
    assert task is not None
    assert (task.live, [each["kind"] for each in reports]) == ({"kettle": {"warm_c": "30"}}, ["prepared"])


def test_a_successor_that_can_t_have_what_was_set_meanwhile_does_not_begin_without_it(shop: Shop) -> None:
    source = KETTLE.replace("Annotated[float, Live]", "Annotated[float, Live, Field(ge=50)]")
    task, reports = begun(shop.kettle("kettle_kept_warm", f"from pydantic import Field\n{source}"), warm_c="30")
    assert task is None
    assert [each["kind"] for each in reports] == ["prepared", "sources", "failed"]
    assert "what was `set` while it ran is not possible any more: warm_c" in reports[-1]["text"]


def test_two_edits_within_a_second_are_two(tmp_path: Path) -> None:
    source = tmp_path / "kettle_twice.py"
    source.write_text("WARM = 60\n")
    compiled = Path(compile_source(str(source)) or "nothing")
    written = source.stat().st_mtime_ns
    source.write_text("WARM = 80\n")
    os.utime(source, ns=(written, written))  # the same second and size: Python takes the first for the second
    os.utime(compiled, ns=(written, written))
    forget_stale_bytecode([source, tmp_path / "gone.py"])
    assert not compiled.exists()
    compile_source(str(source))
    os.utime(compiled, ns=(written + 1, written + 1))
    forget_stale_bytecode([source])
    assert compiled.exists()


def test_an_edit_that_keeps_time_and_size_is_one(tmp_path: Path) -> None:
    source = tmp_path / "kettle_kept.py"
    source.write_text("WARM = 60\n")
    before = stamp(source)
    assert before is not None
    compiled = Path(compile_source(str(source)) or "nothing")
    while os.stat(compiled).st_ctime_ns >= os.stat(source).st_ctime_ns:  # file systems count in ticks
        source.write_text("WARM = 80\n")
        os.utime(source, ns=(before.written_ns, before.written_ns))
    after = stamp(source)
    assert after is not None
    assert after[:3] == before[:3]
    assert after != before
    forget_stale_bytecode([source])
    assert not compiled.exists()
    assert stamp(compiled) is None


def test_a_process_knows_the_sources_that_it_has_loaded_by_itself(shop: Shop) -> None:
    sources = LoadedSources()
    assert sources.new_files() == []
    prepare(shop.kettle("kettle_known"), frozenset(), {})
    import xml.etree.ElementTree  # noqa: F401  # an installed one

    assert sources.new_files() == [os.path.realpath(shop.folder / "kettle_known.py")]
    assert sources.new_files() == []


def test_what_a_thread_imports_while_they_are_looked_at_is_known_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question to a model imports its client in a thread."""
    first, second = tmp_path / "first.py", tmp_path / "second.py"

    class Imported(ModuleType):
        @property
        def __file__(self) -> str:  # type: ignore[override]
            """Whoever looks for it lets another thread go on."""
            later = ModuleType("imported_later")
            later.__file__ = str(second)
            monkeypatch.setitem(sys.modules, later.__name__, later)
            return str(first)

    sources = LoadedSources()
    monkeypatch.setitem(sys.modules, "imported_before", ModuleType("imported_before"))
    monkeypatch.setitem(sys.modules, "imported_first", Imported("imported_first"))
    assert sources.new_files() == [str(first), str(second)]
    assert sources.new_files() == []


def test_a_successor_on_order_has_message_classes_that_fit_their_definitions(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = shop.kettle("kettle_of_old_steam")
    monkeypatch.setattr(message_check, "stale_types", lambda used: [Stale("String: 'c' is new", f"{[*used]}:3")])
    with pytest.raises(BlueprintError, match="String: 'c' is new"):
        prepare(plan, frozenset(), {}, ordered=True)
    prepare(plan, frozenset(), {})  # one that has ended is started again all the same
