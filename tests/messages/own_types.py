"""A package with message types of its own, made anew for a test."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dimos_streams.messages import plain_classes, registry
from dimos_streams.messages.generate import differences, generate_own, update
from dimos_streams.messages.generation.definitions import lcm_gen

WIND = """package weather_msgs;

// Wind at one place.
struct Wind {
    const int8_t CALM = 0, STORM = 12;
    double speed;
}
"""
READING = """package weather_msgs;

struct Reading {
    std_msgs.Header header;
    geometry_msgs.Pose pose;
    float temperature_c;
    int32_t winds_length;
    Wind winds[winds_length];
    byte raw[4];
    string station;
}
"""
DEFINITIONS = {"weather_msgs/Wind.lcm": WIND, "weather_msgs/Reading.lcm": READING}


class Package:
    """A folder on Python's path, without what other tests have imported."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.messages = root / "weather" / "messages"
        self._monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(root)
        monkeypatch.setattr(registry, "_used", {})
        monkeypatch.delenv(registry.VARIABLE, raising=False)

    def define(self, files: Mapping[str, str] = DEFINITIONS) -> None:
        """Write definitions."""
        for name, text in files.items():
            path = self.messages / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (self.root / "weather" / "__init__.py").touch()

    def generate(self) -> None:
        """Make their classes."""
        expected = generate_own(self.messages)
        update(expected, differences(expected, self.messages, shared=True), self.messages)
        importlib.invalidate_caches()

    def lcm_gen(self, *prefix: str) -> None:
        """Make the classes that lcm-gen alone makes, those of the package's types inside them too."""
        stock = Path(registry.__file__).parents[2] / "lcm_types"
        own = {path.relative_to(self.messages): path for path in self.messages.glob("*/*.lcm")}
        others = {path.relative_to(stock): path for path in stock.glob("[gs]*/*.lcm")}
        sources = (own | others | own).values()  # its own first: lcm-gen carries a package over to the next file
        command = [str(lcm_gen()), "--python", "--ppath", str(self.root), *prefix, *map(str, sources)]
        subprocess.run(command, check=True, capture_output=True)
        importlib.invalidate_caches()

    def list_in_environment(self, path: str) -> None:
        """Have commands know the types of a package."""
        self._monkeypatch.setenv(registry.VARIABLE, path)
        registry._installed.cache_clear()

    def forget(self) -> None:
        """Let later tests begin anew."""
        tops = {path.stem for path in self.root.iterdir()}
        for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
            del sys.modules[name]
        importlib.invalidate_caches()
        registry._installed.cache_clear()
        plain_classes._class_at.cache_clear()
