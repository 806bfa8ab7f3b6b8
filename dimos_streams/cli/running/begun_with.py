"""The settings that a run began with, kept in its directory."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.settings import SettingRow, explain
from dimos_streams.common.process.disk import replace_text
from dimos_streams.errors import UserError

_FILE = "settings.json"
_ROWS = TypeAdapter(list[SettingRow])


def keep_settings(blueprint: Blueprint, run_dir: Path) -> None:
    """Write down what each module of a run begins with; secrets are masked. Raises ``OSError``."""
    replace_text(run_dir / _FILE, _ROWS.dump_json(explain(blueprint)).decode())


def kept_settings(run_dir: Path) -> list[SettingRow]:
    """Return what each module of a run began with. Raises ``UserError`` if that can't be read."""
    path = run_dir / _FILE
    try:
        return _ROWS.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not what a run has written"
        raise UserError(f"the settings that the run began with can't be read from {path}: {why}") from error
