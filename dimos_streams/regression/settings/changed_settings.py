"""What the modules of a replay are set to otherwise than those of the recorded run were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.settings import settings_of
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import UserError
from dimos_streams.recording.metadata import Metadata, without_secrets

_WIDTH = 60


def changed_settings(metadata: Metadata | None, blueprint: Blueprint, modules: Iterable[str]) -> Iterator[str]:
    """Yield a line for each setting of the modules whose value is not that of the recorded run, as far as the
    recording says which that was."""
    recorded = metadata.modules if metadata is not None else {}
    for name in modules:
        spec, described = blueprint.modules[name], recorded.get(name)
        config = described.get("config") if isinstance(described, Mapping) else None
        if not isinstance(config, Mapping):
            continue
        try:
            before, now = _values(spec, config), _values(spec, without_secrets(spec.config))
        except UserError as error:
            yield f"the recorded settings of module {name!r} do not fit its class any more: {error}"
            continue
        for field in sorted(before.keys() | now.keys()):
            if before.get(field) != now.get(field):
                yield f"{name}.{field}: recorded {_shown(before, field)}, replayed {_shown(now, field)}"


def _values(spec: ModuleSpec, config: Mapping[str, Any]) -> dict[str, Any]:
    return {row.field: row.value for row in settings_of(spec.model_copy(update={"config": config}))}


def _shown(values: Mapping[str, Any], field: str) -> str:
    return shortened(json.dumps(values[field], ensure_ascii=False), _WIDTH) if field in values else "none"
