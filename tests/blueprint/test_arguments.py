"""Mistakes in the arguments of ``blueprint``, ``include`` and ``module``: each is told with its value and what is
valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.blueprint.load import resolve
from dimos_streams.common.importing import import_attribute
from dimos_streams.errors import UserError
from dimos_streams.module import Module, ModuleConfig
from tests.blueprint import toy_modules

PART = "a part is include(…) or module(…)"
ROBOT: Any = blueprint("robot", module(toy_modules.Camera))
CAMERA: Any = module(toy_modules.Camera)
MODULE: Any = module
BLUEPRINT: Any = blueprint
INCLUDE: Any = include


class NamedConfig(ModuleConfig):
    nme: str = ""


class Named(Module):
    """Has a setting that is nearly called as an argument of ``module``."""

    config: NamedConfig


class Instance(Module):
    def __init__(self) -> None:
        """Is made without anything, as nobody should."""


class Evasive:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"no {name} today")


EVASIVE = Evasive()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: BLUEPRINT("x", "robot"), f"part 1 of blueprint 'x' is 'robot': {PART}, as include('robot')"),
        (
            lambda: BLUEPRINT("x", ROBOT, toy_modules.Walk),
            f"part 2 of blueprint 'x' is the class Walk: {PART}, as module(Walk)",
        ),
        (
            lambda: BLUEPRINT("x", [ROBOT, CAMERA]),
            "part 1 of blueprint 'x' is [the blueprint 'robot', the module 'camera']: "
            f"{PART}, and each is an argument of its own",
        ),
        (lambda: BLUEPRINT("x", None), f"part 1 of blueprint 'x' is None: {PART}"),
        (lambda: BLUEPRINT(ROBOT), "blueprint(…): name must be a text, and is the blueprint 'robot'"),
        (
            lambda: BLUEPRINT(),
            "blueprint(…): missing a required argument: 'name' (its arguments: name, parts, description, external,"
            " delivery, machines)",
        ),
        (
            lambda: BLUEPRINT("x", external="odom#nav_msgs.Odometry"),
            "blueprint(…): external is one text, where several are meant: ('odom#nav_msgs.Odometry',)",
        ),
        (lambda: BLUEPRINT("x", external=[3]), "blueprint(…): external must be a list of texts, and is [3]"),
        (lambda: BLUEPRINT("x", external=3), "blueprint(…): external must be a list of texts, and is 3"),
        (
            lambda: BLUEPRINT("x", delivery="latest"),
            "blueprint(…): delivery must be a dict, as delivery={\"NAME\": …}, and is 'latest'",
        ),
        (
            lambda: BLUEPRINT("x", CAMERA, machines={"a": "camera"}),
            "blueprint(…): machines['a'] is one text, where several are meant: ('camera',)",
        ),
        (
            lambda: INCLUDE(ROBOT, withut=["camera"]),
            "include(…) has no argument 'withut'; did you mean 'without'? (valid: other, namespace, without, replace,"
            " types, processes, remap, set)",
        ),
        (
            lambda: INCLUDE(ROBOT, without="camera"),
            "include(…): without is one text, where several are meant: ('camera',)",
        ),
        (
            lambda: INCLUDE(Path("x.yaml")),
            "include(…) takes a Blueprint, the name of a stock one, a file's path as text, or"
            " 'package.module:ATTRIBUTE', and not PosixPath('x.yaml')",
        ),
        (
            lambda: INCLUDE(ROBOT, replace={"camera": toy_modules.Walk}),
            "include(…): what replaces 'camera' is module(…), and not the class Walk",
        ),
        (
            lambda: INCLUDE(ROBOT, types={"camera": 3}),
            "a module is given by its class, or as 'package.module:Class', and not by 3",
        ),
        (
            lambda: MODULE(Instance()),
            "a module is given by its class, or as 'package.module:Class', and not by an instance of Instance:"
            " module(Instance, …)",
        ),
        (
            lambda: MODULE(toy_modules.Camera, nme="eye"),
            "module(…) has no argument 'nme', and the class Camera no such setting; did you mean 'name'?",
        ),
        (lambda: MODULE(toy_modules.Camera, name=5), "module(…): name must be a text, and is 5"),
        (lambda: MODULE(toy_modules.Camera, remap={"a": 3}), "module(…): remap.a: it must be a text (given: 3)"),
        (
            lambda: MODULE(toy_modules.Camera, rate_hz=toy_modules.Walk),
            "setting 'rate_hz' is the class Walk: settings are plain data: texts, numbers, lists, dicts, models",
        ),
    ],
)
def test_a_mistake_is_told_in_words_of_its_author(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(UserError) as caught:
        wrong()
    assert str(caught.value) == said


def test_a_setting_may_be_called_nearly_as_an_argument() -> None:
    assert module(Named, nme="x").config == {"nme": "x"}


class Login(BaseModel):
    password: SecretStr


def test_secrets_of_settings_are_what_their_author_gave_and_no_asterisks() -> None:
    given = {"key": SecretStr("hidden-key"), "login": Login(password=SecretStr("hidden-too")), "n": {"m": [1]}}
    config = module(toy_modules.Camera, config=given).config
    assert config == {"key": "hidden-key", "login": {"password": "hidden-too"}, "n": {"m": [1]}}


def test_lists_and_generators_of_texts_are_taken() -> None:
    external: Any = ["odom#nav_msgs.Odometry"]
    assert blueprint("x", external=external).external == ("odom#nav_msgs.Odometry",)
    assert not include(ROBOT, without=(name for name in ["camera"])).modules


def test_the_line_of_the_mistake_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mistaken_bp.py").write_text("from dimos_streams.blueprint import *\n\nx = blueprint('x', 'y')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError) as caught:
        resolve("mistaken_bp:x")
    where = f"({tmp_path / 'mistaken_bp.py'}:3)"
    said = f"part 1 of blueprint 'x' is 'y': {PART}, as include('y')"
    assert str(caught.value) == f"'mistaken_bp' can't be imported: {said} {where}"


def test_a_module_alone_is_no_blueprint() -> None:
    with pytest.raises(UserError, match="CAMERA' is one module and no blueprint, which would hold it: blueprint"):
        resolve(f"{__name__}:CAMERA")


def test_an_attribute_that_can_not_be_looked_up_is_told_with_its_line() -> None:
    with pytest.raises(UserError) as caught:
        import_attribute(f"{__name__}:EVASIVE.x")
    start = f"'{__name__}:EVASIVE.x' can't be looked up: 'x' raises RuntimeError: no x today ({__file__}:"
    assert str(caught.value).startswith(start)
