"""The settings in which the modules of a replay differ from those of the recorded run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.settings import DEFAULT, SettingRow, settings_of
from dimos_streams.common.json.replacement import with_value
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import is_secret, telling_name
from dimos_streams.errors import UserError
from dimos_streams.recording.metadata import Metadata, without_secrets
from dimos_streams.regression.settings.given_settings import without_given
from dimos_streams.regression.settings.initial_settings import Assignments

_WIDTH = 60


def changed_settings(
    metadata: Metadata | None, blueprint: Blueprint, modules: Iterable[str], initial: Mapping[str, Assignments]
) -> Iterator[str]:
    """Yield a line for each setting of the modules whose value is not that of the recorded run where the log begins,
    as far as the recording says which that was. ``initial`` is what an operator had set by then, by module."""
    recorded = metadata.modules if metadata is not None else {}
    for name in modules:
        spec, described = blueprint.modules[name], recorded.get(name)
        config = described.get("config") if isinstance(described, Mapping) else None
        if metadata is None or not isinstance(config, Mapping):
            continue
        defaults = None if metadata.defaults is None else metadata.defaults.get(name)
        kept = initial.get(name, {})
        try:
            before = _recorded(spec, _with(config, kept), defaults)
            now = _values(spec, _with(without_secrets(spec.config), without_given(kept, spec)))
        except UserError as error:
            yield f"the recorded settings of module {name!r} do not fit its class any more: {error}"
            continue
        for field in sorted(before.keys() | now.keys()):
            was, is_now = before.get(field, _NONE), now.get(field, _NONE)
            if was.value != is_now.value:
                yield f"{name}.{field}: recorded {was}, replayed {is_now}"


def _with(config: Mapping[str, Any], assignments: Assignments) -> Mapping[str, Any]:
    for path, text in assignments.items():
        config = with_value(config, path.split("."), json.loads(text))
    return config


class _Value(NamedTuple):
    """The value of one setting, and how it is shown."""

    value: Any
    text: str

    @classmethod
    def of(cls, value: Any) -> _Value:
        """Return a value that is shown as JSON."""
        value = without_secrets(value)
        return cls(value, shortened(json.dumps(value, ensure_ascii=False), _WIDTH))

    def __str__(self) -> str:
        return self.text


_NONE = _Value(None, "none")


def _recorded(spec: ModuleSpec, config: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> dict[str, _Value]:
    """Return the settings of the recorded run. Of a recording that does not have the ``defaults`` of then nobody
    knows whether they are today's, which the text says."""
    rows = _rows(spec, config)
    found = {row.field: _Value.of(row.value) for row in rows if row.source != DEFAULT}
    if defaults is not None:
        return {field: _Value.of(value) for field, value in defaults.items()} | found
    for row in rows:
        if row.source == DEFAULT:
            today = _Value.of(row.value)
            found[row.field] = today._replace(text=f"the default, which the log does not name (today {today})")
    return found


def _values(spec: ModuleSpec, config: Mapping[str, Any]) -> dict[str, _Value]:
    return {row.field: _Value.of(row.value) for row in _rows(spec, config)}


def _rows(spec: ModuleSpec, config: Mapping[str, Any]) -> list[SettingRow]:
    """Return the settings that a module has with a config, but for secrets, which no recording has."""
    rows = settings_of(spec.model_copy(update={"config": config}))
    return [row for row in rows if not is_secret(telling_name(row.field.split(".")))]
