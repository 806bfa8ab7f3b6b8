"""Compares this package's message types with those of an installed ``dimos_lcm``.

``python -m tests.messages.dimos_wire`` compares fingerprints, and the bytes of random messages, each way. It needs
nothing of this package but its messages, so that it runs in an environment of dimos
(``PYTHONPATH=. PATH/TO/dimos/python -m tests.messages.dimos_wire``). With ``--write`` it writes the bytes that
dimos_lcm makes into ``dimos_bytes.json``, which tests compare where there is no dimos_lcm.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dimos_streams.messages import codec
from dimos_streams.messages.index import TYPE_NAMES
from tests.messages.random_messages import copied, random_message

FIXTURE = Path(__file__).parent / "dimos_bytes.json"
KEPT = 2
"""Messages of each type in the fixture."""
SHARED_TYPES = tuple(name for name in TYPE_NAMES if not name.startswith("dimos_streams."))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.messages.dimos_wire", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {FIXTURE.name}")
    parser.add_argument("--messages", type=int, default=300, help="random ones of each type")
    options = parser.parse_args(arguments)
    made_by = f"dimos_lcm {version('dimos_lcm')}"
    differing = [found for name in SHARED_TYPES for found in differences(name, options.messages)]
    sys.stdout.writelines(f"{line}\n" for line in differing)
    sys.stdout.write(f"{made_by}: {len(SHARED_TYPES)} types, {options.messages} messages of each, both ways: ")
    sys.stdout.write(f"{len(differing)} differences\n" if differing else "all equal\n")
    if options.write:
        types = {name: [dimos_bytes(name, index).hex() for index in range(KEPT)] for name in SHARED_TYPES}
        FIXTURE.write_text(json.dumps({"made_by": made_by, "types": types}, indent=1) + "\n", encoding="utf-8")
    return 1 if differing else 0


def differences(name: str, messages: int) -> Iterator[str]:
    """What differs of a type, a line for each kind of difference."""
    cls = codec.type_named(name)
    try:
        theirs = dimos_class(name)
    except (ImportError, AttributeError):
        yield f"{name}: dimos_lcm has no such type"
        return
    fingerprints = cls._get_packed_fingerprint().hex(), theirs._get_packed_fingerprint().hex()
    if len(set(fingerprints)) > 1:
        yield f"{name}: fingerprint {fingerprints[0]} here, {fingerprints[1]} in dimos_lcm"
        return
    for index in range(messages):
        message = random_message(name, index)
        data = dimos_bytes(name, index)
        if codec.encode(message) != data:
            yield f"{name}: message {index} has other bytes: {message!r}"
        elif codec.decode(cls, data) != message:
            yield f"{name}: message {index} of dimos_lcm is read differently: {message!r}"
        elif theirs.lcm_decode(data).lcm_encode() != data:
            yield f"{name}: dimos_lcm reads message {index} differently: {message!r}"


def dimos_bytes(name: str, index: int) -> bytes:
    """The random message ``index`` of a type as dimos_lcm encodes it."""
    data: bytes = copied(random_message(name, index), dimos_class).lcm_encode()
    return data


def dimos_class(name: str) -> Any:
    """Raises ``ImportError`` or ``AttributeError`` if dimos_lcm has no such type."""
    package, _, kind = name.partition(".")
    return getattr(importlib.import_module(f"dimos_lcm.{package}"), kind)


if __name__ == "__main__":
    sys.exit(main())
