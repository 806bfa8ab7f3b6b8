"""Settings that change while their module runs: which ones do, and a config with some of them changed."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, GetCoreSchemaHandler, SecretBytes, SecretStr, ValidationError
from pydantic_core import CoreSchema

from dimos_streams.common.invalid import is_at, what_is_wrong
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import (
    has_secret,
    has_secret_setting,
    is_secret,
    know_settings,
    masked,
    telling_name,
)
from dimos_streams.documents.fields import options_of
from dimos_streams.errors import SettingsError, suggest

C = TypeVar("C", bound=BaseModel)

STATE = "live_settings"
"""The topic of a module's state under which it says what differs from its blueprint."""
MAX_LIVE = 2000
"""Maximum size of what differs from a module's blueprint, in bytes of JSON: each heartbeat has it."""
_MAX_SHOWN = 80
_SHOWN = "it is or has a secret, and a change is shown: give it by the environment or in the blueprint, and run again"


class Live:
    """Marks a setting that operators may change while its module runs: ``speed: Annotated[float, Live] = 1.0``.

    On a setting that is a model itself it marks all that is inside but secrets. A secret, by its type or its name,
    can't be marked: a change is shown.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Refuse to be the type of a setting, and to mark a secret. Raises ``TypeError``."""
        name = handler.field_name or "it"
        if source is cls:
            text = f"{name}: Live has no type, Live only marks a setting; valid: {name}: Annotated[float, Live]"
            raise TypeError(text)
        if is_secret(name) or _is_of_secrets(source):
            raise TypeError(f"{name}: a secret can't be Live, because a change is shown; valid: no Live here")
        return handler(source)


class Change(NamedTuple):
    """One setting that has changed, with its values as JSON has them."""

    old: Any
    new: Any


def live_settings(kind: type[BaseModel]) -> tuple[str, ...]:
    """The settings of a config class that are live, with dots between nested ones."""
    return tuple(path for path, live in _settings(kind) if live)


def reported_settings(state: object) -> Mapping[str, Any]:
    """The settings in which a module differs from its blueprint, as the state that it reports has them. Empty if the
    state has no settings, or has them in a form that can't be read."""
    values = state.get(STATE) if isinstance(state, Mapping) else None
    return values if isinstance(values, Mapping) else {}


def shown_secret(path: str, text: str) -> str:
    """The reason to refuse a setting's new value, which is given as text: the text, or the name of the setting, has a
    secret in it. Empty if there is none."""
    name = telling_name(path.split("."))
    return _SHOWN if has_secret(path) or has_secret(text) or has_secret_setting(_parsed(text)[0], name) else ""


def shown_secrets(before: BaseModel, after: BaseModel, paths: Iterable[str]) -> dict[str, str]:
    """The settings among ``paths`` whose old or new values have a secret in them, each with the reason to refuse the
    change."""
    configs = before.model_dump(), after.model_dump()
    values = {path: [_at(config, path) for config in configs] for path in paths}
    return {path: _SHOWN for path, each in values.items() if has_secret_setting(each, telling_name(path.split(".")))}


def with_assignments(config: C, assignments: Mapping[str, str]) -> C:
    """Return a config with settings changed. Texts are read as ``--set`` reads them: as YAML, or as plain text where
    that does not fit.

    Raises ``SettingsError``, which names each setting that can't be changed in this way, and what would be valid.
    """
    kind = type(config)
    problems = {path: problem for path in assignments if (problem := _why_not(kind, path))}
    data = config.model_dump(round_trip=True, exclude_unset=True)
    for path, text in assignments.items():
        if path in problems:
            continue
        know_settings(text, telling_name(path.split(".")))
        value, why = _parsed(text)
        if why and _misfits(kind, _with(data, path, text), path):
            problems[path] = why
            continue
        if value != text and _misfits(kind, _with(data, path, value), path):
            # The null that an empty text means as YAML is not what was given.
            value = value if text.strip() and _misfits(kind, _with(data, path, text), path) else text
        data = _with(data, path, value)
    try:
        changed = kind.model_validate(data)
    except ValidationError as error:
        problems |= {_place(detail): _fault(detail) for detail in error.errors()}
    if problems:
        raise SettingsError(problems)
    return changed


def changes(before: BaseModel, after: BaseModel) -> dict[str, Change]:
    """The live settings in which two configs differ."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    pairs = {path: Change(_at(old, path), _at(new, path)) for path in live_settings(type(after))}
    return {path: change for path, change in pairs.items() if change.old != change.new}


def _settings(kind: type[BaseModel], inside_live: bool = False) -> Iterator[tuple[str, bool]]:
    """The settings of a config class, those of models inside it too, and whether each is live."""
    for name, field in kind.model_fields.items():
        live = inside_live or Live in field.metadata
        secret = is_secret(name) or _is_of_secrets(field.annotation)
        models = [option for option in _options(field.annotation) if issubclass(option, BaseModel)]
        if len(models) == 1:
            yield from ((f"{name}.{path}", inner and not secret) for path, inner in _settings(models[0], live))
        else:
            yield name, live and not secret


def _is_of_secrets(annotation: Any) -> bool:
    """Return whether a type is one of secrets, or has one inside."""
    return annotation in (SecretStr, SecretBytes) or any(map(_is_of_secrets, typing.get_args(annotation)))


def _options(annotation: Any) -> list[type]:
    """The classes that a type may be one of."""
    return [option for option in options_of(annotation) if isinstance(option, type)]


def _why_not(kind: type[BaseModel], path: str) -> str:
    """The reason a setting can't be changed while its module runs; empty if it can."""
    known = dict(_settings(kind))
    if known.get(path):
        return ""
    live = [name for name, is_live in known.items() if is_live]
    valid = f"live: {', '.join(live)}" if live else "its module has none that is live"
    within = next((name for name in known if path.startswith(f"{name}.")), "")
    if known.get(within):
        return f"{within!r} changes as a whole ({valid})"
    if within or path in known or any(name.startswith(f"{path}.") for name in known):
        return f"it does not change while its module runs, only by `run --set` or in the blueprint ({valid})"
    return f"there is no such setting{suggest(path, known)} ({valid})"


def _parsed(text: str) -> tuple[Any, str]:
    from dimos_streams.documents.document import value_of

    return value_of(text)


def _misfits(kind: type[BaseModel], data: Mapping[str, Any], path: str) -> bool:
    """Return whether there is a fault at a setting or inside it."""
    try:
        kind.model_validate(data)
    except ValidationError as error:
        return is_at(error, tuple(path.split(".")))
    return False


def _with(data: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    name, _, rest = path.partition(".")
    inner = data.get(name)
    return {**data, name: _with(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value}


def _at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def _place(detail: Mapping[str, Any]) -> str:
    """The setting that one of pydantic's errors is about; empty if it concerns several."""
    loc: Sequence[object] = detail["loc"]
    return ".".join(map(str, loc))


def _fault(detail: Mapping[str, Any]) -> str:
    """The text of a fault, with the value that was given if it is that of one setting."""
    if not detail["loc"] or isinstance(detail["input"], Mapping):
        return what_is_wrong(detail)
    given = repr(masked(detail["input"], telling_name(detail["loc"])))
    return f"{what_is_wrong(detail)} (given: {shortened(given, _MAX_SHOWN)})"
