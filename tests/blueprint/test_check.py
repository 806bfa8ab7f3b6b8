"""Each kind of problem that ``check`` finds, with its text and its place; and that it starts nothing."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import sys
from pathlib import Path

import pytest

from dimos_streams.blueprint import Blueprint, blueprint, module
from dimos_streams.blueprint.check import check, check_draft
from dimos_streams.blueprint.classes import instantiate
from dimos_streams.blueprint.load import drafted
from dimos_streams.blueprint.settings import with_settings
from dimos_streams.bridge.module import Bridge
from dimos_streams.documents.problem import BlueprintError
from dimos_streams.module import Module, RunContext
from tests.blueprint import toy_modules
from tests.blueprint.checked import check_reference, found_in
from tests.blueprint.conftest import Write

CAMERA = "tests.blueprint.toy_modules:Camera"
WALK = "tests.blueprint.toy_modules:Walk"
ROBOT = blueprint("robot", module(toy_modules.Camera), module(toy_modules.Walk), module(toy_modules.Wheels))


def test_a_sound_blueprint_has_no_problems() -> None:
    assert check(ROBOT) == []


def test_one_without_modules_is_warned_of(write: Write) -> None:
    assert found_in(write, "") == ["warning: blueprint 'x' has no modules: nothing would run"]


def test_problems_of_form_are_given_back_too(write: Write) -> None:
    found, problems = check_reference(write("x.yaml", "modules:\n  a: {typ: b}\n"))
    assert found is not None
    assert not found.modules
    assert str(problems[0]).startswith("x.yaml:2: module 'a' needs the key 'type'")


def test_a_secret_in_a_file_that_every_user_can_read_is_warned_of(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS__BRIDGE__TOKEN", "t0ken-of-the-environment")
    text = """
    modules:
      bridge:
        type: "dimos_streams.bridge.module:Bridge"
        config:
          port: 7799
          token: t0ken-of-a-file
    """
    said = (
        "x.yaml:7: warning: every user of this machine can read bridge.token in x.yaml (its mode is 644):"
        " chmod 600 x.yaml; or give it by the environment"
    )
    for mode, expected in ((0o644, [said]), (0o600, [])):
        Path(write("x.yaml", text)).chmod(mode)
        assert found_in(lambda name, _: name, text) == expected
    Path("x.yaml").chmod(0o644)
    assert check_draft(with_settings(drafted("x.yaml"), os.environ)) == []
    assert check(blueprint("x", module(Bridge, token="t0ken-in-python"))) == []


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (
            "tests.blueprint.toy_module:Camera",
            "there is no Python module 'tests.blueprint.toy_module'; did you mean 'tests.blueprint.toy_modules'?",
        ),
        ("tests.blueprint.toy_modules:Camra", "'tests.blueprint.toy_modules' has no 'Camra'; did you mean 'Camera'?"),
        ("Camera", "'Camera' is not of the form 'package.module:Name'"),
        (
            "tests.blueprint.toy_modules.Camera",
            "'tests.blueprint.toy_modules.Camera' is not of the form 'package.module:Name';"
            " did you mean 'tests.blueprint.toy_modules:Camera'?",
        ),
    ],
)
def test_unknown_types(write: Write, reference: str, expected: str) -> None:
    text = f"modules:\n  camera:\n    process: a\n    type: {reference}\n"
    assert found_in(write, text) == [f"x.yaml:4: module 'camera': {expected}"]


def test_a_class_that_is_no_module(write: Write) -> None:
    [line] = found_in(write, "modules:\n  a: {type: 'tests.blueprint.toy_modules:NotAModule'}\n")
    assert line.startswith("x.yaml:2: module 'a': 'tests.blueprint.toy_modules:NotAModule' is not a Module class")


@pytest.mark.parametrize(
    ("reference", "kind"),
    [("json:loads", "function"), ("json:JSONDecoder", "the class JSONDecoder"), ("sys:path", "list")],
)
def test_what_is_no_module_is_named_by_its_kind(write: Write, reference: str, kind: str) -> None:
    """Its own words for itself may have an address in them, or be very long."""
    [line] = found_in(write, f"modules:\n  a: {{type: '{reference}'}}\n")
    assert line.endswith(f"'{reference}' is not a Module class but {kind}")


@pytest.mark.parametrize(
    ("package", "how"),
    [
        ("mujoco", "pip install 'dimos-streams[sim]'"),
        ("cv2", "pip install 'dimos-streams[vision]'"),
        (
            "frob",
            "pip install 'frob'; or is it a file of yours? Those are found in the working directory and on"
            " PYTHONPATH",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, how: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    monkeypatch.syspath_prepend(tmp_path)
    name = f"needs_{package}"
    write(f"{name}.py", f"import {package}\n")
    [line] = found_in(write, f"modules:\n  world: {{type: '{name}:World'}}\n")
    assert line == (
        f"x.yaml:2: module 'world': {name!r} can't be imported: {package!r} is not installed: {how}"
        f" ({tmp_path}/{name}.py:1)"
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("class A(Module", "SyntaxError: '(' was never closed"),
        ("a: In[Sting]", "NameError: name 'Sting' is not defined"),
        ("In(queue=0)", "ValueError: In(queue=0): it must be a whole number of at least 1"),
        ("blueprint('x').without('agnt')", "blueprint 'x' has no module 'agnt' (modules: none)"),
        (
            "from dimos_streams.errors import UserEror",
            "ImportError: cannot import name 'UserEror' from 'dimos_streams.errors'; did you mean 'UserError'?",
        ),
        (
            "import dimos_streams.mesages.std_msgs",
            "there is no Python module 'dimos_streams.mesages'; did you mean 'dimos_streams.messages'?",
        ),
    ],
)
def test_an_import_that_raises_is_one_line_with_the_place_in_the_code_that_is_not_the_librarys(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, why: str
) -> None:
    name = f"raises_{abs(hash(source))}"
    monkeypatch.syspath_prepend(tmp_path)
    write(f"{name}.py", f"from {name}_beside import A\n")
    write(
        f"{name}_beside.py",
        f"from dimos_streams.blueprint import blueprint\nfrom dimos_streams.streams import In\n{source}\n",
    )
    [line] = found_in(write, f"modules:\n  a: {{type: '{name}:A'}}\n")
    assert line == f"x.yaml:2: module 'a': {name!r} can't be imported: {why} ({tmp_path}/{name}_beside.py:3)"


@pytest.mark.parametrize("wanted", ["skills", "skils"])
def test_a_package_that_imports_a_misspelt_part_of_itself_is_run_once(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    package = f"misspells_{wanted}"
    monkeypatch.syspath_prepend(tmp_path)
    write(f"{package}/__init__.py", f"print('it runs')\nfrom {package}.skils import Wave\n")
    write(f"{package}/skills.py", "Wave = 1\n")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        [line] = found_in(write, f"modules:\n  a: {{type: '{package}.{wanted}:Wave'}}\n")
    assert f"there is no Python module '{package}.skils'; did you mean '{package}.skills'?" in line
    assert said.getvalue() == "it runs\n"


def test_packages_that_a_class_declares_are_looked_for(write: Write) -> None:
    text = "modules:\n  a: {type: 'tests.blueprint.toy_modules:NeedsPackages'}\n"
    assert found_in(write, text) == [
        "x.yaml:2: module 'a': 'no_such_package' is not installed: pip install 'no_such_package'"
    ]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("rate: 5", "module 'camera' has no setting 'rate'; did you mean 'rate_hz'?"),
        ("lens: {zom: 5}", "module 'camera' has no setting 'lens.zom'; did you mean 'zoom'?"),
        (
            "rate_hz: fast",
            "module 'camera': rate_hz: it must be a number (given: 'fast')",
        ),
        ("rate_hz: 99", "module 'camera': rate_hz: it must be at most 60 (given: 99)"),
        ("encoding: png", "module 'camera': encoding: it must be 'jpeg' or 'rgb8' (given: 'png')"),
    ],
)
def test_bad_config(write: Write, config: str, expected: str) -> None:
    text = f"modules:\n  camera:\n    type: {CAMERA}\n    config:\n      {config}\n"
    assert found_in(write, text) == [f"x.yaml:5: {expected}"]


def test_a_config_that_lacks_a_setting(write: Write) -> None:
    text = "modules:\n  a: {type: 'tests.blueprint.toy_modules:Keyless'}\n"
    assert found_in(write, text) == ["x.yaml:2: module 'a' needs the setting 'key'"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise ValueError('oh')", "(ValueError: oh) (DIR/own_check.py:26)"),
        ("return 'text'", "(ValueError: not enough values to unpack (expected 2, got 1))"),
        ("return None", "(TypeError: 'NoneType' object is not iterable)"),
    ],
)
def test_a_check_of_an_authors_own_that_fails(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    name = f"own_check_{abs(hash(body))}"
    method = f"@classmethod\n    def problems(cls, config):\n        {body}\n"
    (tmp_path / f"{name}.py").write_text(f"{_ODD}class Odd(Known):\n    {method}")
    monkeypatch.syspath_prepend(tmp_path)
    [line] = found_in(write, f"modules:\n  a: {{type: '{name}:Odd'}}\n")
    assert line.replace(f"{tmp_path}/{name}", "DIR/own_check") == (
        f"x.yaml:2: module 'a': {name}:Odd: its problems(config) fails {why}; it must be a classmethod that returns"
        " pairs of a path and a text"
    )


@pytest.mark.parametrize(
    ("hook", "arguments", "gives"),
    [
        ("needed_inputs", "cls, config", "names of inputs"),
        ("longest_gaps", "cls, config", "seconds by input"),
        ("skill_warnings", "cls, config, name, skills", "pairs of a path and a text"),
        ("possible_faults", "cls, config", "pairs of a path and a text"),
        ("configured_skills", "cls, config", "skills by name"),
    ],
)
def test_another_answer_of_an_author_that_fails(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str, arguments: str, gives: str
) -> None:
    method = f"@classmethod\n    def {hook}({arguments}):\n        return {{}}['key']\n"
    (tmp_path / f"odd_{hook}.py").write_text(f"{_ODD}class Odd(Known):\n    {method}")
    monkeypatch.syspath_prepend(tmp_path)
    assert found_in(write, f"modules:\n  a: {{type: 'odd_{hook}:Odd'}}\n") == [
        f"x.yaml:2: module 'a': odd_{hook}:Odd: its {hook}(config) fails (KeyError: 'key')"
        f" ({tmp_path}/odd_{hook}.py:26); it must be a classmethod that returns {gives}"
    ]


def test_a_warning_of_a_list_item_may_have_its_number(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings = "[(('words', 0), 'may be known later'), (('words',), 'odd')]"
    method = f"@classmethod\n    def skill_warnings(cls, config, name, skills):\n        return {warnings}\n"
    code = f"{_ODD}class Odd(Known):\n    skills_vary = True\n    {method}"
    (tmp_path / "odd_numbers.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    assert found_in(write, "modules:\n  a: {type: 'odd_numbers:Odd'}\n") == ["x.yaml:2: warning: module 'a': odd"]


def test_a_check_of_settings_that_fails(write: Write) -> None:
    text = "modules:\n  a:\n    type: tests.blueprint.toy_modules:Whisper\n    config: {word: 3}\n"
    assert found_in(write, text) == [
        "x.yaml:4: module 'a': tests.blueprint.toy_modules:Whisper: a check of its settings fails (TypeError:"
        " descriptor 'lower' for 'str' objects doesn't apply to a 'int' object); one that refuses a value"
        " raises ValueError"
    ]


def test_a_default_that_its_setting_would_refuse(write: Write) -> None:
    text = "modules:\n  a:\n    type: tests.blueprint.toy_modules:Forgetful\n"
    assert found_in(write, text) == [
        "x.yaml:3: module 'a': the default of name: it must be a text (given: 5)",
        "x.yaml:3: module 'a': the default of rate_hz: it must be more than 0 (given: 0.0)",
    ]
    assert found_in(write, f"{text}    config: {{name: a, rate_hz: 1}}\n") == []


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "1e400"])
def test_no_setting_is_infinite(write: Write, value: str) -> None:
    text = f"modules:\n  a:\n    type: {WALK}\n    config:\n      slow_m: {value}\n"
    line, *_ = found_in(write, text)
    assert line.startswith("x.yaml:5: module 'a': slow_m: it must be a finite number (given: ")


def test_a_skill_without_a_schema(write: Write) -> None:
    [line] = found_in(write, "modules:\n  a: {type: 'tests.blueprint.toy_modules:BadSkill'}\n")
    assert line.endswith("is not declared as it should be: BadSkill.untyped: 'what' needs a type")
    assert line.startswith("x.yaml:2: module 'a': tests.blueprint.toy_modules:BadSkill")


_ODD = """
import abc, functools
from typing import Annotated
from pydantic import Field
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill

def bare(function):
    def call(self, *given): ...
    return call

def thoroughly(function):
    @functools.wraps(function)
    def call(self, *given): ...
    return call

class Known(Module):
    config: ModuleConfig
    @skill
    def known(self) -> int:
        '''Known.'''

"""


@pytest.mark.parametrize(
    ("member", "fault"),
    [
        (
            "@skill\n    async def count(self, much: int):\n        yield much",
            "Odd.count: a skill can't yield: it sends updates by its call, and returns its result",
        ),
        (
            "@skill\n    def count(self):\n        yield 1",
            "Odd.count: a skill can't yield: it sends updates by its call, and returns its result",
        ),
        (
            "@skill\n    async def count(self, much: int = 'a', far: float = None) -> int: ...",
            "Odd.count has a default that it would refuse: much: it must be a whole number (given: 'a');"
            " far: it must be a number (given: None); `far: float | None` would take None",
        ),
        (
            "@skill\n    async def count(self, call) -> int: ...",
            "Odd.count: 'call' needs a type: `call: Call`, where it is to take the running call",
        ),
        (
            "def __init__(self, host: str) -> None: ...",
            "its constructor can't be called as Module's, with (config, *, name, context): got an unexpected keyword"
            " argument 'name'; prepare in start() what needs no such arguments",
        ),
        ("@abc.abstractmethod\n    def count(self) -> int: ...", "'odd_abstract:Odd' is abstract: it lacks count"),
        ("@skill\n    @staticmethod\n    def count() -> int: ...", "a skill is a method, and no staticmethod"),
        ("@staticmethod\n    @skill\n    def count() -> int: ...", "a skill is a method, and no staticmethod"),
        ("@property\n    @skill\n    def count(self) -> int: ...", "a skill is a method, and no property"),
        ("count = skill(functools.partialmethod(max, 1))", "max: a skill is a method, and no partialmethod"),
        (
            "@(lambda method: lambda self: method(self))\n    @skill\n    def count(self) -> int: ...",
            "Odd.count: the decorator above its @skill hides the skill: it needs functools.wraps",
        ),
        ("@skill\n    def count() -> int: ...", "Odd.count: a skill is a method, and this takes no self"),
        ("@skill\n    async def count(x: int) -> int: ...", "Odd.count: a skill is a method, and this takes no self"),
        ("def start(self) -> None: ...", "TypeError: Odd.start must be `async def`, and yield nothing"),
        ("def run(self) -> None: ...", "TypeError: Odd.run must be `async def`, and yield nothing"),
        ("async def run(self):\n        yield", "TypeError: Odd.run must be `async def`, and yield nothing"),
        ("@thoroughly\n    def stop(self): ...", "TypeError: Odd.stop must be `async def`, and yield nothing"),
        (
            "@skill\n    @bare\n    def count(self) -> int: ...",
            "Odd.count: a skill can't have *given; a decorator needs functools.wraps",
        ),
        (
            "@skill\n    @thoroughly\n    async def count(self) -> int: ...",
            "Odd.count: its decorator makes a plain function of it, which would run in a thread",
        ),
        (
            "def known(self) -> int: ...",
            "Odd.known: it overrides a skill: mark it with @skill, too, or say known = None if there is to be none",
        ),
        (
            "@skill(name='one')\n    def a(self) -> int: ...\n    @skill(name='one')\n    def b(self) -> int: ...",
            "Odd: a and b are both the skill 'one'",
        ),
        (
            "@skill\n    def count(self, a: Call, b: Call) -> int: ...",
            "Odd.count: 'a' takes the call already, and 'b' can't",
        ),
        (
            "@skill(name='count me')\n    def count(self) -> int: ...",
            "Odd.count: 'count me' can't be a skill's name (valid: 1 to 64 letters of ASCII, digits, _ and -,"
            " as models' servers ask for)",
        ),
        (
            "@skill(name='count me', audience='operator')\n    def count(self) -> int: ...",
            "its name is 'count me'; valid: 1 to 200 letters of ASCII, digits, _ and -",
        ),
        (
            "@skill(resources={'left arm'})\n    def count(self) -> int: ...",
            "skill 'count' can't be offered: its resource is 'left arm'; valid: 1 to 200 letters of ASCII, digits and"
            " ._-/:@+",
        ),
        (
            "@skill\n    def count(self, a: Annotated[str, Field(pattern='^(?!x).*$')]) -> int: ...",
            "has no schema; valid are those that pydantic can write out as JSON schema, such as numbers, texts, lists"
            " and models",
        ),
        (
            "@skill\n    def count(self, a: Annotated[int, Field(json_schema_extra={'type': 'float'})]) -> int: ...",
            "skill 'count' can't be offered: its schema can't be used: it is not valid in JSON Schema 2020-12 (`type`"
            " is 'float'; valid: array, boolean, integer, null, number, object, string)",
        ),
        (
            "@skill\n    async def spawn(self) -> int: ...",
            "TypeError: Odd.spawn would replace a method that every module has: rename the method, and name the"
            " skill by @skill(name='spawn')",
        ),
        (
            "@skill(time_limit_s=0)\n    def count(self) -> int: ...",
            "TypeError: @skill of Odd.count: time_limit_s: it must be more than 0 (given: 0)",
        ),
    ],
    ids=str,
)
def test_a_class_that_could_not_run(
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    member: str,
    fault: str,
) -> None:
    name = "odd_abstract" if "abstract" in member else f"odd_{abs(hash(member))}"
    base = "Known, abc.ABC" if "abstract" in name else "Known"
    (tmp_path / f"{name}.py").write_text(f"{_ODD}class Odd({base}):\n    {member}\n")
    monkeypatch.syspath_prepend(tmp_path)
    [line] = found_in(write, f"modules:\n  a: {{type: '{name}:Odd'}}\n")
    assert line.startswith("x.yaml:2: module 'a': ")
    assert re.sub(r" \(/.+\.py:\d+\)$", "", line).endswith(fault)


def test_python_blueprints_have_places_too() -> None:
    problem = check(blueprint("x", module(toy_modules.Walk)))[0]
    file, _, line = problem.where.partition(":")
    assert Path(file).resolve() == Path(__file__).resolve()
    assert "module(toy_modules.Walk)" in Path(__file__).read_text().splitlines()[int(line) - 1]


@pytest.mark.parametrize(
    ("name", "machine", "ok"),
    [("n" * 200, None, True), ("é" * 101, None, False), ("n" * 99, "m" * 100, True), ("n" * 100, "m" * 100, False)],
    ids=["as long as can be", "too many bytes", "with a machine", "too long with a machine"],
)
def test_runs_of_what_is_checked_can_have_its_name(name: str, machine: str | None, ok: bool) -> None:
    camera = module(toy_modules.Camera)
    whole = blueprint(name, camera if machine is None else camera.model_copy(update={"machine": machine}))
    problems = [problem.text for problem in check(whole) if "too long" in problem.text]
    assert [text.startswith("the name of its runs, '") for text in problems] == ([] if ok else [True])
    assert all(len(text) < 200 for text in problems)


def test_names_of_modules_and_processes_are_as_long_as_others_take_them() -> None:
    long = module(toy_modules.Camera, process="p" * 190).namespaced("r" * 10)
    [process] = [problem.text for problem in check(blueprint("x", long)) if "too long" in problem.text]
    assert process.endswith("...', is too long: 200 characters are possible")
    assert process.startswith("the name of a process, 'rrrrrrrrrr/ppp")
    deep = module(toy_modules.Camera).namespaced("r" * 200)
    [named] = [problem.text for problem in check(blueprint("x", deep)) if "too long" in problem.text]
    assert named.startswith("the name of a module, 'rrr")


def test_instantiate_gives_name_config_and_namespace() -> None:
    spec = module(toy_modules.Camera, rate_hz=5).namespaced("robot1")
    made = instantiate(spec, RunContext(seed=3))
    assert isinstance(made, toy_modules.Camera)
    assert (made.name, made.config.rate_hz) == ("robot1/camera", 5.0)
    assert (made.context.namespace, made.context.seed) == ("robot1/", 3)


def test_instantiate_refuses_bad_configs() -> None:
    with pytest.raises(BlueprintError, match="rate_hz: it must be more than 0"):
        instantiate(module(toy_modules.Camera, rate_hz=0), RunContext())


class Alone(Module):
    def __init__(self, config: object = None, *, name: str | None = None, context: object = None) -> None:
        self.port = 1


def test_a_constructor_that_leaves_out_that_of_every_module_is_told_what_to_call() -> None:
    with pytest.raises(BlueprintError, match=r"module 'alone': .*:Alone' doesn't call Module's; valid: super\(\)"):
        instantiate(module(Alone), RunContext())


def test_specs_and_errors_travel_to_other_processes() -> None:
    spec = module(toy_modules.Camera, rate_hz=0).namespaced("robot1")
    assert pickle.loads(pickle.dumps(spec)) == spec
    error = BlueprintError(check(blueprint("x", spec)))
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_blueprint_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        ROBOT.name = "other"
    with pytest.raises(ValueError, match="'camera' is listed as 'x'"):
        Blueprint(name="x", modules={"x": ROBOT.modules["camera"]})
