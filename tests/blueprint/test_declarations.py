"""Classes of modules that would be taken without a word, and do nothing of what their authors mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dimos_streams.module import Module
from dimos_streams.module.class_check import OWN
from tests.blueprint.checked import found_in
from tests.blueprint.conftest import Write

_HEAD = """
from __future__ import annotations
import functools
from typing import Annotated
from pydantic import Field
import dimos_streams
from dimos_streams.live_settings import Live
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In, Out

class MyConfig(ModuleConfig):
    speed: float = 1.0

class Anything:
    def __getattr__(self, name): return self

def given_one(function):
    @functools.wraps(function)
    async def call(self): return await function(self, 1)
    return call

def hidden_in(skill):
    async def call(self): return await skill(self)
    return call

"""


@pytest.mark.parametrize(
    ("member", "fault"),
    [
        (
            "config = MyConfig",
            "Meant.config = MyConfig would never be seen: valid: config: MyConfig, a class of settings with their"
            " defaults",
        ),
        ("config = MyConfig()", "Meant.config = MyConfig(speed=1.0) would never be seen: valid: config: MyConfig"),
        ("config: MyConfig = MyConfig()", "would never be seen: valid: config: MyConfig"),
        ("config = {'speed': 2}", "Meant.config = {'speed': 2} would never be seen: valid: config: MyConfig"),
        ("note = Out[String]", "Meant.note = Out[String] declares no stream; valid: note: Out[String]"),
        ("heard = In[String]", "Meant.heard = In[String] declares no stream; valid: heard: In[String]"),
        ("heard = In", "Meant.heard = In[Twist] declares no stream; valid: heard: In[Twist]"),
        (
            "log: int = 5",
            "Meant.log = 5 would never be seen: every module has its own log; rename this, or set self.",
        ),
        ("name: str = 'hugo'", "Meant.name = 'hugo' would never be seen: every module has its own name"),
        ("health = 'fine'", "Meant.health = 'fine' would never be seen: every module has its own health"),
        ("def log(self): ...", "Meant.log = log would never be seen: every module has its own log"),
        ("spawn = 5", "Meant.spawn = 5 would replace a method that every module has: rename it"),
        ("stop: bool = False", "Meant.stop = False would replace a method that every module has: rename it"),
        ("log: Out[String]", "Meant.log would replace what every module has: rename the stream"),
        (
            "spawn: In[String]",
            "Meant.spawn is annotated dimos_streams.streams.input.In[dimos_streams.messages.std_msgs.",
        ),
        ("note: dimos_streams.Nothing", "Meant: an annotation can't be resolved: module 'dimos_streams' has no"),
        (
            "@skill\n    def count(self, much: Intt) -> int: ...",
            "Meant.count: an annotation can't be resolved: name 'Intt' is not defined",
        ),
        (
            "@skill\n    def count(self) -> dimos_streams.Nothing: ...",
            "Meant.count: an annotation can't be resolved: module 'dimos_streams' has no",
        ),
        (
            "class Fast(ModuleConfig):\n        speed: Live = 1.0",
            "TypeError: speed: Live has no type, Live only marks a setting; valid: speed: Annotated[float, Live]",
        ),
        (
            "class Fast(ModuleConfig):\n        door_password: Annotated[str, Live] = ''",
            "TypeError: door_password: a secret can't be Live, because a change is shown; valid: no Live here",
        ),
        ("class Fast(ModuleConfig):\n        speed: Module", "Unable to generate pydantic-core schema for <class"),
        (
            "packages = 'numpy'",
            "Meant.packages = 'numpy' is one text, where several are meant: packages = ('numpy',)",
        ),
        (
            "note: Out[String]\n    exclusive_outputs = 'note'",
            "where several are meant: exclusive_outputs = ('note',)",
        ),
        (
            "note: Out[String]\n    exclusive_outputs = frozenset({'noet'})",
            "Meant.exclusive_outputs names 'noet', which is no output of it; did you mean 'note'?",
        ),
        ("heard: In[String]\n    shared_outputs = ('heard',)", "names 'heard', which is no output of it"),
        (
            "heard: In[String]\n    note: Out[String]\n    stamped_as = {'note': ('haerd',)}",
            "Meant.stamped_as['note'] names 'haerd', which is no input of it; did you mean 'heard'?",
        ),
        (
            "heard: In[String]\n    note: Out[String]\n    stamped_as = {'note': 'heard'}",
            "'heard' is one text, where several are meant: stamped_as['note'] = ('heard',)",
        ),
        ("async def run(self, much): ...", "Meant.run is called with nothing but self, and takes much"),
        (
            "@skill\n    @skill(motion=True)\n    def count(self) -> int: ...",
            "@skill of Meant.count: it is marked as a skill already: state all of it in one @skill(…)",
        ),
    ],
    ids=str,
)
def test_what_would_be_nothing_is_refused_in_a_line(
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    member: str,
    fault: str,
) -> None:
    [line] = found_in(write, _blueprint_of(member, request.node.callspec.indices["member"], tmp_path, monkeypatch))
    assert line.startswith("x.yaml:2: module 'a': ")
    assert fault in line
    assert "\n" not in line
    assert len(line.replace(str(tmp_path), "")) < 420


@pytest.mark.parametrize(
    "member",
    [
        "log: int",
        "speed: float = 1.0",
        "known = None",
        "configured = property(lambda self: 1)\n    del configured",
        "packages = ('sys',)",
        "async def run(self, *much, more=1): ...",
        "async def run(self, much): ...\n    run = given_one(run)",
        "@skill(read_only=True)\n    async def count(self) -> int:\n        'Count.'\n    twice = hidden_in(count)",
        "library = Anything()",
    ],
)
def test_what_is_something_is_left_alone(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, member: str
) -> None:
    number = 1000 + request.node.callspec.indices["member"]
    assert found_in(write, _blueprint_of(member, number, tmp_path, monkeypatch)) == []


def test_a_skill_without_a_docstring_is_warned_of(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = "@skill\n    def a(self) -> int: ...\n    @skill\n    def b(self) -> int: ...\n    @skill\n"
    members += "    def c(self) -> int:\n        '''Say a number.'''\n    @skill(audience='operator')\n"
    members += "    def d(self) -> int: ..."
    assert found_in(write, _blueprint_of(members, 2000, tmp_path, monkeypatch)) == [
        "x.yaml:2: warning: module 'a': declared_2000:Meant has skills without a docstring: a, b; a model knows"
        " nothing else of a skill"
    ]
    monkeypatch.setattr(
        "dimos_streams.blueprint.checks.skill_check.sys", SimpleNamespace(flags=SimpleNamespace(optimize=2))
    )
    assert found_in(write, _blueprint_of(members, 2001, tmp_path, monkeypatch)) == [
        "warning: skills have no docstrings, as Python runs with -OO (or PYTHONOPTIMIZE=2), which drops them; a model"
        " knows nothing else of a skill"
    ]


def test_a_skill_that_is_called_as_a_tool_of_the_bridge_is_warned_of(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = "@skill\n    def get_call(self) -> int:\n        'Get.'\n    @skill(audience='operator')\n"
    members += "    def list_calls(self) -> int: ...\n    @skill\n    def cancel_call(self) -> int:\n        'End.'"
    assert found_in(write, _blueprint_of(members, 2050, tmp_path, monkeypatch)) == [
        "x.yaml:2: warning: module 'a': MCP clients can't call these of its skills: get_call, cancel_call; the"
        " bridge's own tools have these names"
    ]


def test_all_that_a_class_declares_wrongly_is_said_at_once(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = "heard: In[int]\n    said: Out\n    note = Out[String]\n    config: int\n"
    members += (
        "    @skill\n    def a(self, x, y=1) -> int: ...\n    @skill\n    def b(self, z: int = 'b') -> int: ...\n"
    )
    members += (
        "    @skill(undo='b')\n    def c(self) -> int: ...\n    @skill(undo='c')\n    def d(self) -> int: ...\n"
    )
    lines = found_in(write, _blueprint_of(members, 2100, tmp_path, monkeypatch))
    before = "x.yaml:2: module 'a': declared_2100:Meant is not declared as it should be: Meant"
    assert all(line.startswith(before) for line in lines)
    assert [line.removeprefix(before)[:24] for line in lines] == [
        ".heard must name an LCM ",
        ".said must name an LCM m",
        ".note = Out[String] decl",
        ".config must be annotate",
        ".a: 'x' needs a type",
        ".a: 'y' needs a type",
        ".b has a default that it",
        ".d: 'c' can't undo it: i",
    ]


def test_an_undo_that_is_none_is_said_beside_a_skill_that_can_be_none(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = "    @skill\n    async def a(self):\n        yield 1\n    @skill(name='z')\n    def b(self, x): ...\n"
    members += "".join(f"    @skill(undo='{name}')\n    def of_{name}(self): ...\n" for name in ("a", "z", "nope"))
    lines = found_in(write, _blueprint_of(members.lstrip(), 2150, tmp_path, monkeypatch))
    before = "x.yaml:2: module 'a': declared_2150:Meant is not declared as it should be: Meant"
    assert [line.removeprefix(before) for line in lines] == [
        ".a: a skill can't yield: it sends updates by its call, and returns its result",
        ".b: 'x' needs a type",
        ".of_nope: undo names 'nope', which is no skill of it; did you mean 'of_nope'?",
    ]


def test_what_is_wrong_with_a_policy_is_said_to_its_end(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = (
        "approval='always', audience='me', frame='', on_duplicate='never', on_loss='so', polling='x', tags=('!',)"
    )
    [line] = found_in(write, _blueprint_of(f"@skill({stated})\n    def a(self): ...", 2160, tmp_path, monkeypatch))
    assert "can't be imported: TypeError: @skill of Meant.a: tags" in line
    assert "; on_loss: it must be 'stop' or 'continue' (given: 'so') (" in line
    assert all(name.partition("=")[0] in line for name in stated.split(", "))


def test_all_that_stands_in_the_place_of_what_every_module_has_is_said_at_once(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = "name = 'hugo'\n    spawn = 5\n    def start(self) -> None: ...\n"
    [line] = found_in(write, _blueprint_of(members, 2200, tmp_path, monkeypatch))
    for fault in ("Meant.name = 'hugo' would never", "; Meant.spawn = 5 would replace", "; Meant.start must be `asy"):
        assert fault in line


def test_a_default_of_another_type_is_refused_though_python_would_convert_it(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = "@skill\n    def a(self, wait_s: float = '5', twice: bool = 'no', often: int = 2.0, far: float = 1,\n"
    members += "          left: int | None = None, names: list[str] = (),\n"
    members += "          near: Annotated[float, Field(alias='nearest')] = 1.0) -> int:\n        '''Wait.'''\n"
    assert found_in(write, _blueprint_of(members, 2300, tmp_path, monkeypatch)) == [
        "x.yaml:2: module 'a': declared_2300:Meant is not declared as it should be: Meant.a has a default that it"
        " would refuse: wait_s: it must be a number (given: '5'); twice: it must be true or false (given: 'no')"
    ]


def test_a_docstring_that_describes_no_parameter_is_warned_of(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = "@skill\n    def a(self, call: Call, wait_s: float = 5) -> int:\n        '''Wait.\n\n"
    members += "        Args:\n            call: The call.\n            wiat_s: Seconds.\n            much: None.\n\n"
    members += "        Returns:\n            A number.\n        '''\n"
    where = "x.yaml:2: warning: module 'a': declared_2400:Meant: the docstring of skill 'a' describes"
    assert found_in(write, _blueprint_of(members, 2400, tmp_path, monkeypatch)) == [
        f"{where} 'wiat_s', which is no parameter of it; did you mean 'wait_s'?",
        f"{where} 'much', which is no parameter of it (parameters: wait_s)",
    ]


def test_a_model_that_ignores_misspelt_fields_is_warned_of(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = (
        "import dataclasses\nfrom pydantic import BaseModel\n"
        "class Shelf(BaseModel):\n    at: str = ''\n"
        "class Order(BaseModel, extra='forbid'):\n    shelves: list[Shelf] = []\n"
        "class Free(BaseModel, extra='allow'):\n    at: str = ''\n"
        "@dataclasses.dataclass\nclass Place:\n    at: str = ''\n"
        "class House(BaseModel, extra='forbid'):\n    properties: Free\n    title: str = ''\n"
        "class Part(BaseModel):\n    shelf: Shelf | None = None\n"
    )
    members = (
        "@skill(undo='b')\n    def a(self, order: Order, shelf: Shelf | None, free: Free, at: Place, house: House)"
        " -> int:\n"
        "        '''Take.'''\n    @skill\n    def b(self, arguments: Part, result: int | None) -> None:\n"
        "        '''Give.'''\n"
    )
    (tmp_path / "declared_2500.py").write_text(f"{_HEAD}{models}class Meant(Module):\n    {members}")
    monkeypatch.syspath_prepend(tmp_path)
    what = 'ignores misspelt fields of Shelf; `model_config = ConfigDict(extra="forbid")` there refuses them'
    assert found_in(write, "modules:\n  a: {type: 'declared_2500:Meant'}\n") == [
        f"x.yaml:2: warning: module 'a': declared_2500:Meant: parameter {name!r} of skill 'a' {what}"
        for name in ("order", "shelf")
    ]


def test_a_skill_that_overrides_a_motion_and_does_not_say_so_is_warned_of(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = "    @skill({})\n    def {}(self) -> int:\n        'Go.'\n"
    moving = (
        mark.format("motion=True", "a") + mark.format("resources={'base'}", "b") + mark.format("motion=True", "c")
    ) + mark.format("motion=True", "d")
    silent = mark.format("", "a") + mark.format("tags={'x'}", "b") + mark.format("resources={'arm'}", "c")
    silent += mark.format("motion=False", "d")
    text = f"{_HEAD}class Robot(Module):\n{moving}\nclass Meant(Robot):\n{silent}"
    (tmp_path / "declared_2600.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    what = "overrides one that may move the robot, and says neither motion=True nor which resources it holds"
    all_of_it = "@skill(…) of the method that overrides states all of it, motion=False where it moves nothing"
    assert found_in(write, "modules:\n  a: {type: 'declared_2600:Meant'}\n") == [
        f"x.yaml:2: warning: module 'a': declared_2600:Meant: skill {name!r} {what}: {all_of_it}" for name in "ab"
    ]


def test_what_every_module_has_of_its_own_is_known() -> None:
    assert {*vars(Module()), "health"} == OWN


def _blueprint_of(member: str, number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / f"declared_{number}.py").write_text(f"{_HEAD}class Meant(Module):\n    {member}\n")
    monkeypatch.syspath_prepend(folder)
    return f"modules:\n  a: {{type: 'declared_{number}:Meant'}}\n"
