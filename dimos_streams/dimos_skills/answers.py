"""The answers of dimos' tools, as results of skills."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.errors import CallRejectedError, SkillError
from dimos_streams.messages.picture_files import file_suffix

MAX_TEXT = 40_000
"""Maximum bytes of an answer's text as JSON: with it an event stays below what an untuned machine delivers."""
MAX_PICTURES = 8
_PICTURE_KINDS = frozenset({"image/jpeg", "image/png"})


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in an answer."""

    suffix: str
    """The ending of its file's name."""
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The content of an answer."""

    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a skill that is a tool of dimos."""

    message: str
    """The last text of the tool, or where that is a JSON object with a message, this message."""
    value: Any = None
    """The JSON object, or None where the tool answered with plain text."""
    pictures: tuple[str, ...] = ()
    """The paths of the pictures' files."""

    def __str__(self) -> str:
        return self.message


def parsed_answer(tool: str, result: Mapping[str, Any]) -> ToolAnswer:
    """The answer in the result of ``tools/call``.

    Raises ``SkillError`` for one that says that the tool failed, or did not begin, and for anything that is not an
    answer.
    """
    content = result.get("content")
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise SkillError(
            f"dimos answers for {tool!r} with content of type {type(content).__name__}, not a list of items"
        )
    texts = [str(item["text"]) for item in content if item.get("type") == "text" and "text" in item]
    pictures = [picture for item in content if (picture := _picture(item)) is not None]
    unknown = {str(item.get("type"))[:50] for item in content} - {"text", "image", "image_url"}
    texts += [f"[dimos sent {kind!r} too, which is not understood here]" for kind in sorted(unknown)]
    texts += [f"[{more} pictures more are left out]"] if (more := len(pictures) - MAX_PICTURES) > 0 else []
    text = "\n".join(texts)
    if result.get("isError"):
        raise SkillError(cut_to(text, MAX_TEXT) or f"dimos says that {tool!r} failed, and not why")
    # dimos says these in answers that are like any other one.
    if text == f"Tool not found: {tool}":
        raise SkillError(f"dimos has no tool {tool!r} any more")
    if text.startswith(f"Cannot start '{tool}': capability"):
        raise CallRejectedError(cut_to(text, MAX_TEXT))
    return ToolAnswer(text, tuple(pictures[:MAX_PICTURES]))


def result_of(answer: ToolAnswer, pictures: tuple[str, ...]) -> ToolResult:
    """Return the result that an answer stands for, with the paths of its pictures. Text that is too long is cut."""
    text = cut_to(answer.text, MAX_TEXT)
    value = _object(answer.text) if text == answer.text else None
    message = value.get("message") if value is not None else None
    shown = message if isinstance(message, str) and message else text
    where = "".join(f"\n[a picture: {path}]" for path in pictures)
    return ToolResult((shown + where).strip() or "done", value, pictures)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _picture(item: Mapping[str, Any]) -> Picture | None:
    """The picture in an item of MCP, or in one of the form that dimos' own pictures have; None for data that is no
    picture, whatever its type says: a model's server would refuse it, and every later request with it."""
    kind, data = item.get("mimeType"), item.get("data")
    url = item.get("image_url")
    if isinstance(url, dict) and isinstance(url.get("url"), str) and url["url"].startswith("data:"):
        head, _, data = url["url"].removeprefix("data:").partition(",")
        kind = head.partition(";")[0]
    if str(kind) not in _PICTURE_KINDS or not isinstance(data, str):
        return None
    try:
        decoded = base64.b64decode(data, validate=True)
    except binascii.Error:
        return None
    suffix = file_suffix(decoded)
    return None if suffix is None else Picture(suffix, decoded)
