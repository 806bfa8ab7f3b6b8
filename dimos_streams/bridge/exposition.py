"""Numbers in Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Number = int | float | bool


class Exposition:
    """A page of metrics in the making. Names are given without the prefix that all of them share."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lines: list[str] = []

    def counter(self, name: str, help: str, value: Number | Mapping[str, Number], label: str = "") -> None:
        """A count that only grows; ``_total`` is added to its name. See ``gauge`` for mappings."""
        self._add(f"{name}_total", "counter", help, value, label)

    def gauge(self, name: str, help: str, value: Number | Mapping[str, Number], label: str = "") -> None:
        """A value of now. A mapping gives one sample for each of its keys, which become the label's values."""
        self._add(name, "gauge", help, value, label)

    def text(self) -> str:
        """The page."""
        return "".join(f"{line}\n" for line in self._lines)

    def _add(
        self,
        name: str,
        kind: Literal["counter", "gauge"],
        help: str,
        value: Number | Mapping[str, Number],
        label: str,
    ) -> None:
        name = f"{self._prefix}_{name}"
        self._lines += [f"# HELP {name} {_escaped(help)}", f"# TYPE {name} {kind}"]
        if isinstance(value, Mapping):
            self._lines += [f'{name}{{{label}="{_quoted(key)}"}} {_number(each)}' for key, each in value.items()]
        else:
            self._lines.append(f"{name} {_number(value)}")


def _number(value: Number) -> str:
    # A float's repr is what Prometheus reads, "inf" and "nan" included.
    return repr(int(value) if isinstance(value, bool) else value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
