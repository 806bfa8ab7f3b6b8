"""Makes the message classes from ``lcm_types``: ``python -m dimos_streams.messages.generate [--check]``.

lcm-gen writes the classes; a few textual changes give them keyword constructors and the base ``Message``. The
code that reads and writes the wire stays lcm-gen's, but for one word: text that is not UTF-8 is an error.
With ``--check`` nothing is written; the exit code is 1 if files are stale, missing or left over.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import logging
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dimos_streams.errors import UserError
from dimos_streams.messages.base import PREFIX, Field, field_from_lcm

HERE = Path(__file__).parent
DEFINITIONS = HERE.parent / "lcm_types"

log = logging.getLogger(__name__)

_SCALARS = {
    "int8_t": ("int", "0"),
    "int16_t": ("int", "0"),
    "int32_t": ("int", "0"),
    "int64_t": ("int", "0"),
    "byte": ("int", "0"),
    "float": ("float", "0.0"),
    "double": ("float", "0.0"),
    "boolean": ("bool", "False"),
    "string": ("str", '""'),
}
_ARRAYS = {"int": "IntArray", "float": "FloatArray", "bool": "Sequence[bool]", "str": "list[str]"}


@dataclass(frozen=True, slots=True)
class Struct:
    """The facts that the stub of a message class is written from."""

    package: str
    name: str
    doc: str
    fields: tuple[Field, ...]
    constants: dict[str, int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m dimos_streams.messages.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything would change")
    check = parser.parse_args(arguments).check
    expected = generate(DEFINITIONS)
    differing = differences(expected, HERE)
    for path, what in differing.items():
        sys.stderr.write(f"{what}: {HERE / path}\n")
        if not check:
            _update(HERE / path, expected.get(path))
    return 1 if check and differing else 0


def generate(definitions: Path) -> dict[Path, str]:
    """The text of every generated file, by its path below ``dimos_streams/messages``.

    Raises ``UserError`` if lcm-gen is missing, refuses a definition, or gives something not supported here.
    """
    sources = sorted(definitions.glob("*/*.lcm"))
    files: dict[Path, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        _run_lcm_gen(sources, Path(folder))
        for source in sources:
            path = Path(source.parent.name, source.stem + ".py")
            made = Path(folder, *PREFIX.rstrip(".").split("."), path)
            if not made.exists():
                raise UserError(f"{source} must define struct {source.stem} of package {source.parent.name}")
            text = made.read_text(encoding="utf-8")
            struct = _parse(text, source)
            files[path] = _finished(text, struct)
            files[path.with_suffix(".pyi")] = _stub(struct)
    names = [f"{source.parent.name}.{source.stem}" for source in sources]
    for package in sorted({name.partition(".")[0] for name in names}):
        files[Path(package, "__init__.py")] = _package_init(package, names)
    files[Path("index.py")] = _index(names)
    return files


def differences(expected: dict[Path, str], folder: Path) -> dict[Path, str]:
    """The paths that differ between ``expected`` and ``folder``, each "missing", "stale" or "left over"."""
    present = {path.relative_to(folder) for path in folder.glob("*/*.py*") if path.parent.name != "__pycache__"}
    found = dict.fromkeys(present - expected.keys(), "left over")
    for path, text in expected.items():
        if not (folder / path).exists():
            found[path] = "missing"
        elif (folder / path).read_text(encoding="utf-8") != text:
            found[path] = "stale"
    return dict(sorted(found.items()))


def _update(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _run_lcm_gen(sources: Sequence[Path], folder: Path) -> None:
    prefix = PREFIX.rstrip(".")
    options = ["--python", "--ppath", str(folder), "--python-no-init", "--package-prefix", prefix]
    command = [str(_lcm_gen()), *options, *map(str, sources)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UserError(f"lcm-gen failed: {(result.stderr or result.stdout).strip()}")


def _lcm_gen() -> Path:
    spec = importlib.util.find_spec("lcm")
    if spec is None or spec.origin is None:
        raise UserError("the Python package lcm is not installed; it brings lcm-gen")
    package = Path(spec.origin).parent
    # Wheels of lcm differ: beside the package or inside it.
    for candidate in (package.parent / "bin" / "lcm-gen", package / "bin" / "lcm-gen"):
        if candidate.exists():
            return candidate
    raise UserError(f"the installed lcm at {package} has no lcm-gen")


def _parse(text: str, source: Path) -> Struct:
    """Read the class that lcm-gen wrote."""
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    if len(classes) != 1 or classes[0].name != source.stem:
        raise UserError(f"{source} must define struct {source.stem} and nothing else")
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in classes[0].body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    if "__typenames__" not in values:
        raise UserError(f"{source} must define a struct; lcm-gen's Python for enums does not work")
    fields = tuple(
        _field(source, *row)
        for row in zip(values["__slots__"], values["__typenames__"], values["__dimensions__"], strict=True)
    )
    constants = {name: value for name, value in values.items() if not name.startswith("_")}
    doc = (ast.get_docstring(classes[0]) or "").strip()
    return Struct(source.parent.name, source.stem, doc, fields, constants)


def _field(source: Path, name: str, typename: str, dimensions: list[int | str] | None) -> Field:
    if dimensions and len(dimensions) > 1:
        raise UserError(f"{source}: {name} has {len(dimensions)} dimensions; arrays must have one")
    return field_from_lcm(name, typename, dimensions)


def _finished(text: str, struct: Struct) -> str:
    """lcm-gen's text with our base class, keyword constructor and strict UTF-8."""
    header = text[: text.index("from io import BytesIO")]
    text = _replaced(text, header, _banner(struct.package, struct.name))
    text = _replaced(text, "import struct\n", "import struct\n\nfrom dimos_streams.messages.base import Message\n")
    text = _replaced(text, f"class {struct.name}(object):", f"class {struct.name}(Message):")
    text = _replaced(
        text, "    __slots__ = [", f'    msg_name = "{struct.package}.{struct.name}"\n\n    __slots__ = ['
    )
    text = _replaced(text, "    def __init__(self):\n", "    def __init__(self, **fields):\n")
    text = _replaced(
        text,
        "\n    def encode(self):",
        "\n        if fields:\n            self._assign(fields)\n\n    def encode(self):",
    )
    # Decoding sets every field: defaults, which are whole messages, would be made for nothing.
    text = _replaced(text, f" self = {struct.name}()\n", f" self = {struct.name}.__new__({struct.name})\n")
    text = text.replace(".decode('utf-8', 'replace')", ".decode('utf-8')")
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise UserError(f"this lcm-gen writes other Python than expected: {old!r} occurs {text.count(old)} times")
    return text.replace(old, new)


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines).replace('"""\n\n\n', '"""\n\n') + "\n"


def _banner(package: str, name: str = "*") -> str:
    source = f"lcm_types/{package}/{name}.lcm"
    return f'"""Generated from {source} by dimos_streams.messages.generate; do not edit."""\n\n'


def _stub(struct: Struct) -> str:
    sizes = {field.size for field in struct.fields}
    attributes = [f"    {name}: ClassVar[int]" for name in struct.constants]
    parameters = []
    for field in struct.fields:
        annotation, default = _annotation(field)
        attributes.append(f"    {field.name}: {annotation}")
        if field.name not in sizes:
            parameters.append(f"        {field.name}: {annotation} = {default},")
    body = [
        f"class {struct.name}(Message):",
        *([f'    """{struct.doc}"""', ""] if struct.doc else []),
        *attributes,
        "",
        "    def __init__(",
        "        self,",
        "        *,",
        *parameters,
        "    ) -> None: ...",
    ]
    return _joined([_banner(struct.package, struct.name), *_stub_imports(struct, attributes), "", *body])


def _stub_imports(struct: Struct, attributes: Sequence[str]) -> list[str]:
    used = "\n".join(attributes)
    standard = {"Sequence[": "from collections.abc import Sequence", "ClassVar[": "from typing import ClassVar"}
    from_base = [name for name in ("FloatArray", "IntArray") if name in used] + ["Message"]
    messages = sorted({field.type for field in struct.fields if field.is_message})
    lines = [line for name, line in standard.items() if name in used]
    return [
        *([*lines, ""] if lines else []),
        f"from dimos_streams.messages.base import {', '.join(from_base)}",
        *(f"from {PREFIX}{message} import {message.partition('.')[2]}" for message in messages),
    ]


def _annotation(field: Field) -> tuple[str, str]:
    """The type of a field in a stub and its default in the constructor."""
    if field.is_message:
        name = field.type.partition(".")[2]
        return (f"list[{name}]", "...") if field.size is not None else (name, "...")
    if field.type == "byte" and field.size is not None:
        return "bytes", 'b""'
    scalar, default = _SCALARS[field.type]
    return (_ARRAYS[scalar], "...") if field.size is not None else (scalar, default)


def _package_init(package: str, names: Sequence[str]) -> str:
    types = [name.partition(".")[2] for name in names if name.startswith(package + ".")]
    lines = [
        _banner(package),
        *(f"from dimos_streams.messages.{package}.{name} import {name}" for name in types),
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in types),
        "]",
    ]
    return _joined(lines)


def _index(names: Sequence[str]) -> str:
    lines = [
        _banner("*"),
        "TYPE_NAMES = (",
        *(f'    "{name}",' for name in names),
        ")",
    ]
    return _joined(lines)


if __name__ == "__main__":
    sys.exit(main())
