"""The check that the class of a module declares what its author means, and replaces nothing that every module has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.declaration_faults import DeclarationFaults
from dimos_streams.errors import suggest
from dimos_streams.module.config import ModuleConfig
from dimos_streams.skill.declaration import policy_of
from dimos_streams.streams import StreamSpec

OWN = frozenset({
    "config", "configured", "context", "health", "live_values", "log", "name", "random", "state_json",
    "on_live", "on_skills", "on_state", "_failed", "_health", "_tasks",
})  # fmt: skip
"""The names of what each module has of its own, so that a class's value of that name would never be seen."""
_HOOKS = ("start", "run", "stop")
_STAMPS = "stamped_as"
_OF_OUTPUTS = ("shared_outputs", "exclusive_outputs", _STAMPS)
_SEVERAL = ("packages", "late_imports", "shared_outputs", "exclusive_outputs")
"""The attributes that list names, of which a class may declare several."""
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_MAX_SHOWN = 60


def check_class(cls: type, base: type) -> None:
    """Raise ``TypeError`` for what would replace something that every module has from its class ``base``: a skill or
    a value with the name of a method, a value that each module sets itself, a hook that can't be awaited."""
    faults = DeclarationFaults()
    for name, value in vars(cls).items():
        with faults.noting():
            _check_value(cls, base, name, value)
    for name in _HOOKS:
        hook = getattr(cls, name)
        with faults.noting():
            # Behind a decorator of its author's either of them may be a plain function, and the call can be awaited.
            if callable(hook) and not any(map(inspect.iscoroutinefunction, (hook, inspect.unwrap(hook)))):
                raise TypeError(f"{cls.__name__}.{name} must be `async def`, and yield nothing")
            if callable(hook) and (needed := _needed(hook)):
                raise TypeError(
                    f"{cls.__name__}.{name} is called with nothing but self, and takes {', '.join(needed)}"
                )
    faults.refuse()


def _check_value(cls: type, base: type, name: str, value: Any) -> None:
    where, what = f"{cls.__name__}.{name}", shortened(str(getattr(value, "__name__", repr(value))), _MAX_SHOWN)
    if name in OWN:
        raise TypeError(f"{where} = {what} would never be seen: {_instead(name, value)}")
    if name in _SEVERAL:
        _check_several(where, value)
    if name in vars(base) and policy_of(value) is not None:
        why = f"rename the method, and name the skill by @skill(name={name!r})"
        raise TypeError(f"{where} would replace a method that every module has: {why}")
    if callable(getattr(base, name, None)) and not callable(getattr(cls, name)):
        raise TypeError(f"{where} = {what} would replace a method that every module has: rename it")


def check_streams(owner: type, streams: Mapping[str, StreamSpec]) -> None:
    """Raise ``TypeError`` for streams that would replace what every module has of its own, and for streams that a
    class speaks of and does not have: for a misspelt one, nothing that it says of it would hold."""
    faults = DeclarationFaults()
    for name in streams:
        with faults.noting():
            if name in OWN:
                raise TypeError(f"{owner.__name__}.{name} would replace what every module has: rename the stream")
    for attribute in _OF_OUTPUTS:
        _note_unknown(faults, f"{owner.__name__}.{attribute}", getattr(owner, attribute), "output", streams)
    for output, inputs in getattr(owner, _STAMPS).items():
        _note_unknown(faults, f"{owner.__name__}.{_STAMPS}[{output!r}]", inputs, "input", streams)
    faults.refuse()


def _note_unknown(
    faults: DeclarationFaults, where: str, names: Iterable[str], kind: str, streams: Mapping[str, StreamSpec]
) -> None:
    with faults.noting():
        _check_several(where, names)
        known = [name for name, stream in streams.items() if f"{stream.direction}put" == kind]
        for name in names:
            with faults.noting():
                if name not in known:
                    raise TypeError(f"{where} names {name!r}, which is no {kind} of it{suggest(name, known)}")


def _check_several(where: str, names: object) -> None:
    if isinstance(names, str):
        name = where.partition(".")[2]
        raise TypeError(f"{where} = {names!r} is one text, where several are meant: {name} = ({names!r},)")


def _needed(hook: Callable[..., Any]) -> list[str]:
    """Return the parameters without which a function can't be called, except its first. A decorator around it may
    give others to what it decorates."""
    parameters = list(inspect.signature(hook, follow_wrapped=False).parameters.values())[1:]
    return [each.name for each in parameters if each.default is each.empty and each.kind not in _ANY_NUMBER]


def _instead(name: str, value: Any) -> str:
    """Return what to write in the place of a value that a module's own one hides."""
    if name != "config":
        return f"every module has its own {name}; rename this, or set self.{name} in start()"
    kind = value if isinstance(value, type) else type(value)
    valid = kind.__name__ if issubclass(kind, ModuleConfig) else "MyConfig"
    return f"valid: config: {valid}, a class of settings with their defaults"
