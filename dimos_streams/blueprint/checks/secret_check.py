"""The check that secrets in a blueprint's files can be read by their owner only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.common.secrets import has_secret_setting, readable_by_all, telling_name
from dimos_streams.documents.problem import Problem
from dimos_streams.module import ModuleConfig

_CODE = ".py"
"""How files end whose values may be from anywhere: what a function was given is not what is written there."""


def secrets_for_all(spec: ModuleSpec, config: ModuleConfig) -> Iterator[Problem]:
    """Yield a warning of each secret setting in a file that every user can read."""
    for path, value in _written(spec.config, config.model_dump(), ()):
        source = spec.where("config", *path)
        file = Path(source.rpartition(":")[0])
        if not file.name or file.suffix == _CODE or not has_secret_setting(value, telling_name(path)):
            continue
        with contextlib.suppress(OSError):  # a file that was read and is gone tells nobody
            if text := readable_by_all(file, ".".join((spec.name, *path))):
                yield Problem(f"{text}; or give it by the environment", source, severity="warning")


def _written(
    config: Mapping[str, Any], values: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values, with their paths, that somebody has written: the others are defaults."""
    for name in filter(values.__contains__, config):
        written, value = config[name], values[name]
        if isinstance(written, Mapping) and isinstance(value, Mapping):
            yield from _written(written, value, (*path, name))
        else:
            yield (*path, name), value
