"""YAML 1.2 as plain data that remembers its lines."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode
from ruamel.yaml.scanner import Scanner, ScannerError

from dimos_streams.common.process.disk import real_path, why_endless
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.readable.surrogates import well_formed
from dimos_streams.documents.problem import BlueprintError, Problem
from dimos_streams.errors import UserError, suggest

Path = tuple[str | int, ...]
"""Keys and indices that lead to a value."""

_WORDS = {
    "expected <block end>, but found '<block": "this line is indented otherwise than its neighbours",
    "expected <block end>, but found '-'": "this line is indented otherwise than its neighbours",
    "mapping values are not allowed here": (
        "this line is indented otherwise than its neighbours, or a text with a colon lacks quotes"
    ),
    "found character '\\t' that cannot start any token": "a line is indented with a tab, where spaces are meant",
}
"""What the parser says, by its beginning, and what is said instead."""

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 100
MAX_VALUES = 100_000
"""Values of one document, each alias counted with all that it stands for, a text as one more for each hundred
characters."""
_TOO_DEEP = f"values are nested deeper than {MAX_DEPTH}, or an alias is in what it stands for"
_TEXT = 100
"""Number of characters for which a text counts as one value more."""
_LEAST_VALUES = 1000
"""Values that the text of a single value may stand for, however short it is; a longer one for one each character and
some more, which none without aliases has."""
_MAX_NUMBER = 20_000
"""Characters of a number, which has far fewer digits."""
_YAML_TAG = "tag:yaml.org,2002:"
_TIMESTAMP = f"{_YAML_TAG}timestamp"
_NUMBERS = frozenset({f"{_YAML_TAG}int", f"{_YAML_TAG}float"})
_NO_SCALARS = frozenset(f"{_YAML_TAG}{name}" for name in ("binary", "map", "omap", "pairs", "seq", "set"))
"""The tags with which the parser makes of a text what plain data have no text for."""
_MAX_KEPT = 20_000
"""The length of the longest text, in characters, whose data is kept."""


class TooManyValuesError(BlueprintError):
    """Raised if a text stands for more values than it may, mostly by aliases of aliases."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a YAML text. Keys of mappings are always text."""

    origin: str
    """The file's name as shown to people."""
    data: Any
    lines: Mapping[Path, int]

    def sources(self, *pattern: str | None) -> dict[Path, dict[str, str]]:
        """``"file:line"`` by the dotted path inside each entry at a path; None in it is any key or index.

        The entries have their paths as keys.
        """
        found: dict[Path, dict[str, str]] = {}
        depth = len(pattern)
        for path, line in self.lines.items():
            if len(path) >= depth and all(part in (None, key) for part, key in zip(pattern, path, strict=False)):
                inner = ".".join(str(part) for part in path[depth:])
                found.setdefault(path[:depth], {})[inner] = f"{self.origin}:{line}"
        return found

    def where(self, path: Sequence[str | int]) -> str:
        """``"file:line"`` of the value at ``path``, or of the nearest thing around it."""
        for length in range(len(path), -1, -1):
            line = self.lines.get(tuple(path[:length]))
            if line is not None:
                return f"{self.origin}:{line}"
        return self.origin


def read_document(path: FilePath, kind: str = "blueprint") -> Document:
    """Read a YAML file of a kind. Raises ``UserError`` if it can't be read, ``BlueprintError`` if it is not valid."""
    origin = display_path(path)
    try:
        status = path.stat()
        if why := why_endless(status):
            raise UserError(f"{kind} file {origin!r} can't be read: {why}")
        size = status.st_size
        if size > MAX_BYTES:
            raise UserError(f"{kind} file {origin!r} has {size} bytes, {MAX_BYTES} are possible")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        why = f"it is not UTF-8 (byte 0x{error.object[error.start]:02x}): save it as UTF-8"
        raise BlueprintError([Problem(why, f"{origin}:{line}")]) from error
    except (OSError, ValueError) as error:
        refuse_broken_link(path, kind)
        raise UserError(_why_unread(path, kind, error)) from error
    return parse_document(text, origin)


def _why_unread(path: FilePath, kind: str, error: OSError | ValueError) -> str:
    origin = display_path(path)
    if isinstance(error, FileNotFoundError):
        near = suggest(path.name, documents_beside(path), before=origin.removesuffix(path.name))
        return f"there is no {kind} file {origin!r}{near}"
    return f"{kind} file {origin!r} can't be read: {getattr(error, 'strerror', None) or error}"


def refuse_broken_link(path: FilePath, kind: str = "blueprint") -> None:
    """Raise ``UserError`` for a link that leads to no file. Its own name is what was typed."""
    if not os.path.islink(path) or os.path.exists(path):
        return
    end = real_path(path)
    leads = "in a circle" if os.path.islink(end) else f"to {display_path(end)!r}, which is not there"
    raise UserError(f"{kind} file {display_path(path)!r} is a link that leads {leads}")


def documents_beside(path: FilePath) -> list[str]:
    """The names of the documents in a path's folder."""
    return sorted(file.name for file in path.parent.glob("*.y*ml"))


def parse_document(text: str, origin: str, *, most: int = MAX_VALUES) -> Document:
    """Parse a YAML text. Raises ``BlueprintError`` if it is not valid, a key comes twice or a tag is unknown, and
    ``TooManyValuesError`` if it stands for more than ``most`` values."""
    read = _read if len(text) <= _MAX_KEPT else _read.__wrapped__
    try:
        data, lines = read(text, origin, most)
        return Document(origin, copy.deepcopy(data), lines)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{origin}:{mark.line + 1}" if mark is not None else origin
        why = _TOO_DEEP if isinstance(error, _TooDeepError) else f"not valid YAML: {_in_words(error)}"
        raise BlueprintError([Problem(why, where)]) from error
    except (YAMLError, RecursionError, ValueError, OverflowError) as error:  # two of escapes
        raise BlueprintError([Problem(f"not valid YAML: {' '.join(str(error).split())}", origin)]) from error


def value_of(text: str) -> tuple[Any, str]:
    """Return what a text means as YAML; or the text itself, with the reason if it looks like a list or an object, or
    its aliases stand for too much: whoever gives one in a request keeps its reader busy for no longer than its length
    lets expect."""
    try:
        return parse_document(text, "value", most=min(_LEAST_VALUES + len(text), MAX_VALUES)).data, ""
    except TooManyValuesError as error:
        return text, error.problems[0].text
    except BlueprintError as error:
        return text, error.problems[0].text if text.lstrip().startswith(("[", "{")) else ""


def _in_words(error: MarkedYAMLError) -> str:
    """The fault in a text, and what it mostly comes from where the parser's words are about its grammar."""
    text = str(error.problem or error.context)
    return next((words for start, words in _WORDS.items() if text.startswith(start)), text)


def display_path(path: FilePath) -> str:
    """A path as people like to read it: relative to the working directory where it is below."""
    here = FilePath.cwd()
    full = here / path
    return str(full.relative_to(here)) if full.is_relative_to(here) else str(full)


@functools.lru_cache(maxsize=32)
def _read(text: str, origin: str, most: int) -> tuple[Any, Mapping[Path, int]]:
    """Return the data of a text, not to be changed, and the line of each value: one that many blueprints include is
    read as often."""
    reader = _NodeReader(origin, most)
    return reader.read(text), reader.lines


class _TooDeepError(ScannerError):
    """Raised for a list or an object inside of too many others."""


class _Scanner(Scanner):
    """A scanner of YAML 1.2 only: by a line ``%YAML 1.1`` the same words would mean other values.

    It goes no deeper than data may: at each sign it looks through all lists and objects in brackets that are open.
    """

    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:
        if len(self.flow_context) > MAX_DEPTH:
            raise _TooDeepError(problem_mark=self.reader.get_mark())
        super().fetch_flow_collection_start(TokenClass, to_push)

    def scan_yaml_directive_value(self, start_mark: Any) -> Any:
        major, minor = version = super().scan_yaml_directive_value(start_mark)
        if version != (1, 2):
            text = f"it is to be YAML {major}.{minor}, and is read as YAML 1.2: leave that line out"
            raise ScannerError(None, None, text, start_mark)
        return version


class _NodeReader:
    """Turns YAML nodes into plain data and notes where each came from."""

    def __init__(self, origin: str, most: int) -> None:
        self.lines: dict[Path, int] = {}
        self._most = most
        self._values = 0
        self._origin = origin
        self._yaml = YAML(typ="safe", pure=True)
        self._yaml.Scanner = _Scanner

    def read(self, text: str) -> Any:
        node = self._yaml.compose(text)
        return None if node is None else self._plain(node, ())

    def _plain(self, node: Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if len(path) > MAX_DEPTH:
            self._fail(_TOO_DEEP, line)
        self._count(node, line)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self._plain(item, (*path, index)) for index, item in enumerate(node.value)]
        if node.tag == _TIMESTAMP:  # not a type of YAML 1.2
            return node.value
        try:
            value = self._scalar(node)
        except ValueError as error:
            self._fail(f"{shortened(str(node.value), 40)!r} can't be read: {error}", line)
        return well_formed(value) if isinstance(value, str) else value

    def _count(self, node: Node, line: int) -> None:
        """Count a value. Raises ``TooManyValuesError``."""
        self._values += 1 + (len(node.value) // _TEXT if isinstance(node.value, str) else 0)
        if self._values > self._most:
            text = f"it stands for more than {self._most} values, aliases counted in full"
            raise TooManyValuesError([Problem(text, f"{self._origin}:{line}")])

    def _scalar(self, node: Node) -> Any:
        """A text, a number, a truth value or None. Raises ``ValueError``."""
        tag = str(node.tag).removeprefix(_YAML_TAG)
        if node.tag in _NO_SCALARS:
            raise ValueError(f"the tag !!{tag} makes no text, number or truth value of it")
        if node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER:
            raise ValueError(f"it has {len(node.value)} characters, a number has {_MAX_NUMBER} at most")
        try:
            value = self._yaml.constructor.construct_object(node)
        except LookupError as error:  # of the sign of an empty number, or of a word among those of truth values
            raise ValueError(f"it is no value of the tag !!{tag}") from error
        if isinstance(value, int):
            str(value)  # raises for one written in base 16, 8 or 2 that could not be written in base 10
        return value

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if not isinstance(key, str):
                self._fail("a key must be text", line)
            if key in data:
                self._fail(f"key {key!r} is there twice, also at line {self.lines[(*path, key)]}", line)
            self.lines[(*path, key)] = line
            self._values += len(key) // _TEXT
            data[well_formed(key)] = self._plain(value_node, (*path, key))
        return data

    def _fail(self, text: str, line: int) -> NoReturn:
        raise BlueprintError([Problem(text, f"{self._origin}:{line}")])
