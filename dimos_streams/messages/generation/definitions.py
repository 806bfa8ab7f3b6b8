"""Definitions of messages: ``FOLDER/PACKAGE/Name.lcm``, read by lcm-gen, with the file and line of what is wrong."""

from __future__ import annotations

import ast
import importlib.util
import keyword
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dimos_streams.common.process.disk import read_small
from dimos_streams.errors import UserError, suggest
from dimos_streams.messages.base import Field, Message, field_from_lcm
from dimos_streams.messages.plain_classes import PRIMITIVES
from dimos_streams.messages.registry import type_names

_PLACE = re.compile(r"^(?P<file>.*\.lcm) : (?:(?P<line>\d+)|(?P<why>.*))$")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
"""A comment; one that does not end is one too, or each of its beginnings would be looked for an end."""
_ESCAPES = re.compile(r'"{3}|\\')
_AFTER_NAME = r"\s*[;=\[,]"
_SLOTS = re.compile(r"^    __slots__ = (\[.*\])$", re.MULTILINE)
_CONSTANT = re.compile(r"^    (\w+) = [-\d]", re.MULTILINE)
_TAKEN = frozenset(dir(Message)) | {"decode", "encode", "get_hash", "msg_name", "self"}
"""The names that generated classes use themselves."""


class LcmGenError(UserError):
    """The error that lcm-gen is not there, or can't run on this machine."""


@dataclass(frozen=True, slots=True)
class Struct:
    """One message type as its definition has it."""

    source: Path
    package: str
    name: str
    doc: str
    fields: tuple[Field, ...]
    constants: dict[str, int]
    python: str
    """The class as lcm-gen writes it."""

    @property
    def full_name(self) -> str:
        """The name of the type with its package, as ``"geometry_msgs.Twist"``."""
        return f"{self.package}.{self.name}"


def read_definitions(folder: Path, prefix: str) -> list[Struct]:
    """Return all message types that are defined below a folder, in order. ``prefix`` is the package of their classes.

    Raises ``UserError``, a line for each thing that is wrong, if lcm-gen refuses a definition, and for what classes
    can't be made from; ``LcmGenError`` if there is no lcm-gen.
    """
    sources = definition_files(folder)
    with tempfile.TemporaryDirectory() as made:
        run_lcm_gen(sources, "--python", "--ppath", made, "--python-no-init", "--package-prefix", prefix)
        root = Path(made, *prefix.split("."))
        return [_struct(source, root / source.parent.name / f"{source.stem}.py") for source in sources]


def line_of(source: Path, pattern: str) -> int:
    """The first line of a definition that a regular expression is found in, outside comments; 1 if there is none."""
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), source.read_text(encoding="utf-8"))
    found = re.search(pattern, text)
    return 1 if found is None else text.count("\n", 0, found.end()) + 1


def check_types(structs: Sequence[Struct], known: Callable[[str], object]) -> None:
    """Refuse fields of types that are not there, and types that contain themselves.

    ``known`` finds types that are defined elsewhere, by name; it gives None if there is none.
    """
    own = {struct.full_name: struct for struct in structs}
    problems = []
    for struct in structs:
        for field in struct.fields:
            if field.is_message and field.type not in own and known(field.type) is None:
                problems.append(_unknown(struct, field, list(own)))
        if struct.full_name in _inside(struct, own, frozenset()):
            problems.append(f"{struct.source}:1: {struct.full_name} contains itself; a message can't")
    if problems:
        raise UserError("\n".join(problems))


def definition_files(folder: Path) -> list[Path]:
    """The files ``PACKAGE/Name.lcm`` of a folder, in order. Raises ``UserError`` if there are none, and for other
    files of definitions in it."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {str(folder)!r}")
    sources = sorted(folder.glob("*/*.lcm"))
    stray = sorted(folder.glob("*.lcm"))
    if stray:
        raise UserError(
            f"{stray[0]} must be in a folder that is named as its package, as in "
            f"{folder / 'weather_msgs' / 'Reading.lcm'} for 'package weather_msgs; struct Reading'"
        )
    if not sources:
        raise UserError(
            f"{str(folder)!r} has no definitions: they are files PACKAGE/Name.lcm, as in "
            f"{folder / 'weather_msgs' / 'Reading.lcm'}"
        )
    for source in sources:
        for name in (source.parent.name, source.stem):
            if not _usable(name):
                raise UserError(f"{source}: {name!r} can't be the name of a package or class in Python")
    return sources


def run_lcm_gen(sources: Sequence[Path], *options: str) -> None:
    """Have lcm-gen write classes. Raises as ``read_definitions`` does."""
    for source in sources:
        _refuse_escapes(source)
    command = [str(lcm_gen()), *options, *map(str, sources)]
    try:
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        raise LcmGenError(f"lcm-gen can't be run: {error}") from error
    if result.returncode != 0:
        complaints = _complaints(result.stderr or result.stdout)
        if not complaints:
            raise LcmGenError(f"lcm-gen failed: {(result.stderr or result.stdout).strip()}")
        raise UserError(complaints)


def _refuse_escapes(source: Path) -> None:
    """Refuse what could make code of a comment: lcm-gen writes comments into the classes as they are, between the
    quotes or the marks of that language."""
    try:
        text = read_small(source).decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(f"{source}:{line}: it is not UTF-8 ({error.reason})") from error
    except OSError as error:
        raise UserError(f"{source} can't be read: {error.strerror}" if error.strerror else str(error)) from error
    line_comments = [found for found in _COMMENT.finditer(text) if found[0].startswith("//")]
    places = [found.start() for found in _ESCAPES.finditer(text)]
    places += [found.start() + found[0].index("*/") for found in line_comments if "*/" in found[0]]
    if places:
        line = text.count("\n", 0, min(places)) + 1
        raise UserError(
            f"{source}:{line}: a definition can't have three quotes, a backslash, or the end of a comment in another"
            " one: classes have its comments as they are, and would take the rest for code"
        )


def _complaints(output: str) -> str:
    """The faults that lcm-gen finds, as ``file:line: what is wrong``, a line for each; empty if it names no file."""
    said, found = "", []
    for line in output.splitlines():
        place = _PLACE.match(line)
        if place is None:
            said = line.strip() or said
        elif place["line"] is None:
            found.append(f"{place['file']}: {place['why']}")
        else:
            found.append(f"{place['file']}:{place['line']}: {said}")
    return "\n".join(found)


def lcm_gen() -> Path:
    """The program that comes with the Python package lcm. Raises ``UserError`` if it is not there."""
    spec = importlib.util.find_spec("lcm")
    if spec is None or spec.origin is None:
        raise LcmGenError("the Python package lcm is not installed; it brings lcm-gen")
    package = Path(spec.origin).parent
    # Wheels of lcm differ: beside the package or inside it.
    for candidate in (package.parent / "bin" / "lcm-gen", package / "bin" / "lcm-gen"):
        if candidate.exists():
            return candidate
    raise LcmGenError(f"the installed lcm at {package} has no lcm-gen")


def _struct(source: Path, made: Path) -> Struct:
    """Read the class that lcm-gen has made from a definition."""
    package, name = source.parent.name, source.stem
    text = made.read_text(encoding="utf-8") if made.exists() else ""
    _refuse_content(source, text)
    _refuse_names(source, text)
    found, values = _class_in(source, text)
    rows = zip(values["__slots__"], values["__typenames__"], values["__dimensions__"], strict=True)
    fields = tuple(_field(source, *row) for row in rows)
    constants = {key: value for key, value in values.items() if not key.startswith("_")}
    doc = (ast.get_docstring(found) or "").strip()
    return Struct(source, package, name, doc, fields, constants, text)


def _refuse_content(source: Path, text: str) -> None:
    """Refuse a file that has anything else than the struct of its name, in the package of its folder."""
    package, name = source.parent.name, source.stem
    code = _COMMENT.sub(" ", source.read_text(encoding="utf-8"))
    packages = re.findall(r"\bpackage\s+([\w.]+)\s*;", code)  # lcm-gen takes a missing one from the file before
    others = re.findall(r"\b(?:struct|enum)\s+(\w+)", code)
    if not text or others != [name] or packages != [package]:
        of = f"package {', '.join(packages)}" if packages else "no package"
        has = f"; it has {', '.join(others)} of {of}" if others else ""
        line = line_of(source, r"package" if packages and others == [name] else r"(struct|enum)")
        raise UserError(
            f"{source}:{line}: the file must define struct {name} of package {package} and nothing else{has}"
        )
    if re.search(r"\benum\s", code):
        raise UserError(
            f"{source}:{line_of(source, r'enum')}: it must define a struct; lcm-gen's Python for "
            "enums does not work: a struct may have constants, as in 'const int8_t IDLE = 0;'"
        )


def _class_in(source: Path, text: str) -> tuple[ast.ClassDef, dict[str, Any]]:
    """The class that lcm-gen has written, and the values of its attributes."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        why = f"{error.msg}: {(error.text or '').strip()!r}"
        raise UserError(f"{source}:1: lcm-gen's Python of it is damaged ({why})") from error
    [found] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    values = {
        node.targets[0].id: _value(source, node.targets[0].id, node.value)
        for node in found.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return found, values


def _value(source: Path, name: str, written: ast.expr) -> Any:
    """The value of a class's attribute. Raises ``UserError`` for a constant that is a number to C only."""
    try:
        return ast.literal_eval(written)
    except ValueError as error:
        where = f"{source}:{line_of(source, rf'{name}{_AFTER_NAME}')}"
        why = f"{ast.unparse(written)} is no number in Python"
        raise UserError(f"{where}: the constant {name!r} can't be used: {why}") from error


def _refuse_names(source: Path, text: str) -> None:
    """Refuse the names that would not be Python, or that the class uses itself."""
    slots = _SLOTS.search(text)
    for name in [*(ast.literal_eval(slots[1]) if slots else ()), *_CONSTANT.findall(text)]:
        if not _usable(name) or name in _TAKEN:
            where = f"{source}:{line_of(source, rf'{name}{_AFTER_NAME}')}"
            raise UserError(f"{where}: no field or constant can be called {name!r}: Python or the class uses it")


def _usable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _field(source: Path, name: str, typename: str, dimensions: list[int | str] | None) -> Field:
    if dimensions and len(dimensions) > 1:
        line = line_of(source, rf"\b{name}\s*\[")
        raise UserError(f"{source}:{line}: {name} has {len(dimensions)} dimensions; arrays must have one")
    return field_from_lcm(name, typename, dimensions)


def _unknown(struct: Struct, field: Field, own: list[str]) -> str:
    package, _, name = field.type.partition(".")
    line = line_of(struct.source, rf"\b{name}\s+{field.name}\b")
    written = field.type if package != struct.package else name
    names = [*own, *type_names()]
    same = [known for known in names if known.partition(".")[2] == name]
    near = f"; did you mean {same[0]!r}?" if same else suggest(field.type, names)
    primitives = "" if near else f" (there are {', '.join(sorted(PRIMITIVES))}, and message types as package.Name)"
    if re.fullmatch(r"u(?:nsigned_)?int(?:8|16|32|64)?(?:_t)?", name):
        near, primitives = (
            "; LCM has no unsigned numbers: int8_t, int16_t, int32_t, int64_t, or byte for 0 to 255",
            "",
        )
    return f"{struct.source}:{line}: there is no type {written!r}, of the field {field.name!r}{near}{primitives}"


def _inside(struct: Struct, own: Mapping[str, Struct], seen: frozenset[str]) -> set[str]:
    """The names of all own types inside one."""
    found: set[str] = set()
    for field in struct.fields:
        if field.type in own and field.type not in seen:
            found |= {field.type} | _inside(own[field.type], own, seen | {field.type})
    return found
