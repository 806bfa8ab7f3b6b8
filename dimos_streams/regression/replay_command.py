"""The command that makes the same comparison as a test."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dimos_streams.regression.tolerances import Tolerances


def replay_command(
    log: Path,
    modules: Sequence[str],
    blueprint: str | None,
    settings: Mapping[str, Any],
    tolerances: Tolerances | None,
    seed: int | None,
) -> Iterator[str]:
    """Yield the lines that say which command replays a log as a test has."""
    command = ["dimos-streams", "replay", str(log), "--modules", ",".join(modules)]
    command += [] if blueprint is None else ["--blueprint", blueprint]
    command += [] if seed is None else ["--seed", str(seed)]
    for name, value in settings.items():
        command += ["--set", f"{name}={json.dumps(value)}"]
    command += [] if tolerances is None else ["--tolerances", "tolerances.yaml"]
    yield f"by hand: {shlex.join(command)}"
    if tolerances is not None:
        yield f"tolerances.yaml: {json.dumps(tolerances.model_dump(mode='json', exclude_defaults=True))}"
