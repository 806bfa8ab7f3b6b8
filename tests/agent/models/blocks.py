"""Reads what a model was sent: the blocks of a text, as ``agent.models.framing`` makes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dimos_streams.agent.models.protocol import Speaker

_QUOTED_BREAK = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])\\| ")
_BLOCK = re.compile(r"<(operator|task|data)((?: \w+=\"[\w.:/@+-]*\")*)>\n")
_SPEAKERS: dict[str, Speaker] = {"operator": "operator", "task": "task", "data": "data"}


@dataclass(frozen=True, slots=True)
class Block:
    """One text, who said it, and, for data, where it is from."""

    speaker: Speaker
    text: str
    source: Mapping[str, str]


def parse_blocks(text: str) -> list[Block]:
    """The blocks of a text that consists of nothing else but blanks, also of several that were joined.

    Raises ``ValueError`` for any other text.
    """
    found, rest = [], text.lstrip()
    while rest:
        head = _BLOCK.match(rest)
        end = rest.find(f"\n</{head[1]}>", head.end()) if head else -1
        if head is None or end < 0 or not rest.startswith("| ", head.end()):
            raise ValueError(f"no block begins at {rest[:80]!r}")
        said = _QUOTED_BREAK.sub(r"\1", rest[head.end() + 2 : end])
        source = dict(re.findall(r' (\w+)="([^"]*)"', head[2]))
        found.append(Block(_SPEAKERS[head[1]], said, source))
        rest = rest[end + len(head[1]) + 4 :].lstrip()
    return found
