"""The description of a recording by itself, on a channel of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dimos_streams.common.invalid import first_problem
from dimos_streams.common.secrets import is_secret, know_settings, redacted, telling_name, without_user
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message, fields_of
from dimos_streams.messages.codec import channel_name, decode, encode, type_named
from dimos_streams.messages.index import TYPE_NAMES
from dimos_streams.messages.plain_classes import class_of
from dimos_streams.messages.std_msgs import String
from dimos_streams.recording.selection import Selection

CHANNEL = channel_name("/recording_metadata", String)


class Choice(BaseModel):
    """Patterns of channels, see ``Selection``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, selection: Selection) -> Choice:
        """The patterns of a selection."""
        return cls(include=selection.include, exclude=selection.exclude)


class Metadata(BaseModel):
    """A recording's origin. The same run gives the same metadata: there is no time and no path in it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: int = 1
    version: str = ""
    """The version of this package."""
    blueprint: dict[str, Any] | None = None
    """The blueprint as plain data, with the settings of the run; secrets are left out."""
    defaults: dict[str, dict[str, Any]] | None = None
    """The values of the settings that the blueprint leaves to the modules' classes, by module and path; secrets are
    left out. None if nobody noted them."""
    seed: int = 0
    mode: str = ""
    """``live``, ``in-process`` or ``virtual``."""
    said: tuple[str, ...] = ()
    """The operator's input to the agent when all was ready."""
    channels: tuple[Choice, ...] = ()
    """The choices; a channel that one of the choices leaves out can't be in the recording."""
    environment: dict[str, str] = {}
    """The other versions that the bytes of a virtual run depend on: Python, packages, processor."""
    messages: dict[str, Any] = {}
    """Each message type's fingerprint and fields: name, type, size of the array."""

    @property
    def modules(self) -> Mapping[str, Any]:
        """The blueprint's modules by name, as plain data that nobody has checked."""
        modules = (self.blueprint or {}).get("modules")
        return modules if isinstance(modules, dict) else {}

    @property
    def title(self) -> str:
        """The run in a line for people."""
        name = (self.blueprint or {}).get("name", "?")
        return f"blueprint {name}, {self.mode or '?'} run, seed {self.seed}, version {self.version}"

    def selected(self) -> Callable[[str], bool]:
        """Return a test of whether a channel could get into the recording."""
        choices = [Selection(choice.include, choice.exclude) for choice in self.channels]
        return lambda channel: all(choice(channel) for choice in choices)

    def narrowed(self, selection: Selection) -> Metadata:
        """The metadata of a part of the recording."""
        if not (selection.include or selection.exclude):
            return self
        return self.model_copy(update={"channels": (*self.channels, Choice.of(selection))})

    def encoded(self) -> bytes:
        """Return the metadata as a message for ``CHANNEL``."""
        return encode(String(data=json.dumps(self.model_dump(mode="json"), separators=(",", ":"))))

    @classmethod
    def decoded(cls, data: bytes) -> Metadata:
        """Return the metadata of a message on ``CHANNEL``. Raises ``MessageError``."""
        try:
            return cls.model_validate_json(decode(String, data, CHANNEL).data)
        except ValidationError as error:
            raise MessageError(CHANNEL, String.msg_name, f"no metadata: {first_problem(error, 'it')}") from error

    @classmethod
    def readable(cls, data: bytes) -> Metadata | None:
        """Return the metadata of a message on ``CHANNEL``, or None if it is of another version, or if the channel is
        somebody else's."""
        try:
            return cls.decoded(data)
        except MessageError:
            return None


def describe(
    *,
    blueprint: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    mode: str = "",
    said: Iterable[str] = (),
    selection: Selection | None = None,
    environment: Mapping[str, str] | None = None,
    types: Iterable[type[Message]] = (),
) -> Metadata:
    """The metadata of a recording that is made by this process; ``environment`` is what its bytes depend on.

    ``defaults`` are values of settings that the blueprint does not have, by module and path. ``types`` are those of
    the run's streams; all of this package are described in any case.
    """
    from dimos_streams import __version__

    know_settings(blueprint or {})
    return Metadata(
        version=__version__,
        blueprint=None if blueprint is None else without_secrets(blueprint),
        defaults=None if defaults is None else {name: _open_settings(values) for name, values in defaults.items()},
        seed=seed,
        mode=mode,
        said=tuple(map(redacted, said)),
        channels=(Choice.of(selection),)
        if selection is not None and (selection.include or selection.exclude)
        else (),
        environment=dict(environment or {}),
        messages={name: definition(cls) for name, cls in sorted(_with_parts(types).items())},
    )


def definition(cls: type[Message]) -> dict[str, Any]:
    """A message type: its fingerprint and its fields in the order of the wire."""
    fields = [[field.name, field.type, field.size] for field in fields_of(cls)]
    return {"fingerprint": cls._get_packed_fingerprint().hex(), "fields": fields}


def _open_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the paths of their settings, without those of secrets."""
    return {
        path: without_secrets(value)
        for path, value in settings.items()
        if not is_secret(telling_name(path.split(".")))
    }


def _with_parts(types: Iterable[type[Message]]) -> dict[str, type[Message]]:
    """Message types by name, with those inside them and all of this package."""
    found = {name: type_named(name) for name in TYPE_NAMES}
    waiting = list(types)
    while waiting:
        cls = waiting.pop()
        if found.setdefault(cls.msg_name, cls) is cls:
            waiting += [class_of(field) for field in fields_of(cls) if field.is_message]
    return found


def without_secrets(value: Any) -> Any:
    """Plain data without what is known to be secret, values of keys that name secrets, and users of URLs."""
    if isinstance(value, str):
        return redacted(without_user(value))
    if isinstance(value, Mapping):
        return {str(key): without_secrets(item) for key, item in value.items() if not is_secret(str(key))}
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return value
