"""Makes docs/settings.md, the table of all settings of the stock modules, from their classes:

python -m docs.make_settings
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from dimos_streams.common.importing import import_attribute
from dimos_streams.module import Module

PAGE = Path(__file__).with_name("settings.md")
MODULES = (
    "dimos_streams.agent.module:Agent",
    "dimos_streams.bridge.module:Bridge",
    "dimos_streams.robot.velocity_gate.module:VelocityGate",
    "dimos_streams.robot.simulator:Simulator",
    "dimos_streams.perception.module:PersonDetector",
    "dimos_streams.skills.drive:Drive",
    "dimos_streams.skills.follow_person:FollowPerson",
    "dimos_streams.skills.look_out_for:LookOut",
    "dimos_streams.skills.observe:Observe",
    "dimos_streams.skills.patrol:Patrol",
    "dimos_streams.recording.module:RecorderModule",
    "dimos_streams.foxglove.module:FoxgloveServer",
    "dimos_streams.ros2.module:Ros2Robot",
    "dimos_streams.dimos_skills.module:DimosSkills",
)
_INTRODUCTION = """# Settings of the stock modules

Each module of a blueprint has settings: `config` of the module in a file, keyword arguments in Python, and
`--set MODULE.FIELD=VALUE` on the command line. `dimos-streams config BLUEPRINT` shows which values a run would have,
where each is from, and which of them `dimos-streams set` changes while it runs. Other pages say more
about many of them. `NAME` stands for a key, and `[]` for each item of a list; None is `null` in YAML.

This page is made of the modules' code, by `python -m docs.make_settings`.
"""
_LONGEST = 40
"""Maximum length of a default that is shown, in characters."""
_COMPUTED = object()
"""Stands for a value that is computed where the module runs."""


class SettingRow(NamedTuple):
    """A setting: its path, its default as text, and what it means, empty if its class does not say."""

    path: str
    default: str
    meaning: str


class _Field(NamedTuple):
    name: str
    annotation: Any
    default: Any
    """``...`` if it has none, ``_COMPUTED`` if it may be another one on each machine."""
    meaning: str


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *map(_section, MODULES)])


def _section(reference: str) -> str:
    module = import_attribute(reference)
    config = module.config_type()
    rows = [f"| `{row.path}` | {row.default} | {row.meaning} |" for row in settings_of(module)]
    head = [f"## {module.__name__}", "", f"`{reference}`. {_text(config.__doc__)}", ""]
    return "\n".join([*head, "| setting | default | meaning |", "|---|---|---|", *rows, ""])


def settings_of(module: type[Module]) -> list[SettingRow]:
    """The settings of a module, those within others with dots."""
    return list(_rows(module.config_type(), ""))


def _rows(kind: type, prefix: str, given: object = None) -> Iterator[SettingRow]:
    """Yield the settings of a class; the defaults are those of ``given``, if a setting has an object of the class."""
    for field in _fields(kind):
        default = getattr(given, field.name) if isinstance(given, kind) else field.default
        inner = dict(_kinds_in(field.annotation, ""))
        meaning = field.meaning or next((_text(each.__doc__) for each in inner), "")
        yield SettingRow(f"{prefix}{field.name}", _shown(default), meaning)
        for each, key in inner.items():
            yield from _rows(each, f"{prefix}{field.name}{key}.", default)


def _kinds_in(annotation: Any, key: str) -> Iterator[tuple[type, str]]:
    """Yield the classes of settings in a type, each with what leads to it: ``[]`` or ``.NAME``."""
    if inspect.isclass(annotation) and (issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)):
        yield annotation, key
        return
    origin = typing.get_origin(annotation)
    inside = ".NAME" if origin in (dict, Mapping) else "[]" if origin in (tuple, list, Sequence) else ""
    for part in typing.get_args(annotation):
        yield from _kinds_in(part, key + inside)


def _fields(kind: type) -> Iterator[_Field]:
    described = _described(kind)
    if issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            default = ... if field.is_required() else field.get_default(call_default_factory=True)
            if inspect.isfunction(field.default_factory) and not isinstance(default, BaseModel):
                default = _COMPUTED
            yield _Field(name, field.annotation, default, _text(described.get(name)))
    elif dataclasses.is_dataclass(kind):
        types = typing.get_type_hints(kind, include_extras=True)
        for each in dataclasses.fields(kind):
            default = ... if each.default is dataclasses.MISSING else each.default
            yield _Field(each.name, types[each.name], default, _text(described.get(each.name)))


@functools.cache
def _described(kind: type) -> Mapping[str, str]:
    """The text below each field of a class and its bases."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each in (object, BaseModel) or not each.__module__.startswith("dimos_streams."):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = typing.cast("ast.ClassDef", definition).body
        for field, text in itertools.pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                    found[name] = meaning
    return found


def _shown(default: object) -> str:
    if default is None or default is ... or default is _COMPUTED:
        return "none" if default is None else "required" if default is ... else "computed"
    if isinstance(default, BaseModel) or dataclasses.is_dataclass(default):
        return ""
    text = json.dumps(default, default=str, ensure_ascii=False)
    return f"`{text}`" if len(text) <= _LONGEST else "see `config`"


def _text(text: str | None) -> str:
    """The first paragraph of a text in one line, as Markdown has it in a table."""
    return " ".join((text or "").partition("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
