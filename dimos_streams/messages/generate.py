"""Makes message classes from definitions: ``dimos-streams messages generate FOLDER [--check]``.

lcm-gen writes the classes; a few textual changes give them keyword constructors and the base ``Message``, whose
``encode`` sets the sizes of arrays. The code that reads and writes the wire stays lcm-gen's, but for one word: text
that is not UTF-8 is an error.
``python -m dimos_streams.messages.generate [--check]`` does the same for this package's own, from ``lcm_types``.
With ``--check`` nothing is written; the exit code is 1 if files are stale, missing or left over.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dimos_streams.common.process.disk import real_path
from dimos_streams.errors import UserError
from dimos_streams.messages import registry
from dimos_streams.messages.base import Message
from dimos_streams.messages.generation.definitions import Struct, check_types, read_definitions
from dimos_streams.messages.generation.stubs import stub
from dimos_streams.messages.index import TYPE_NAMES

HERE = Path(__file__).parent
DEFINITIONS = HERE.parent / "lcm_types"
PREFIX = "dimos_streams.messages"

_PLAIN_ENCODE = """
    def encode(self):
        buf = BytesIO()
        buf.write({}._get_packed_fingerprint())
        self._encode_one(buf)
        return buf.getvalue()
"""
"""``Message.encode`` takes its place: this one loses arrays whose size is not set."""
_MADE = "by dimos_streams.messages.generate; do not edit."
_LEFT_ALONE = "# ruff: noqa\n# fmt: off\n"
"""What has linters and formatters leave a file as it is, or it would be stale."""

Find = Callable[[str], type[Message] | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the classes of this package; returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m dimos_streams.messages.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything would change")
    check = parser.parse_args(arguments).check
    expected = generate(DEFINITIONS)
    differing = differences(expected, HERE)
    if not check:
        update(expected, differing, HERE)
    for path, what in differing.items():
        sys.stderr.write(f"{what if check else outcome(what)}: {HERE / path}\n")
    return 1 if check and differing else 0


def generate(
    definitions: Path, prefix: str = PREFIX, *, source: str = "lcm_types/", find: Find | None = None
) -> dict[Path, str]:
    """The text of every generated file, by its path below the folder of the classes, which Python calls ``prefix``.

    ``source`` stands before the path of a definition in the files' first line; ``find`` finds types of other packages
    by their name. Raises ``UserError`` if lcm-gen is missing, for definitions that are wrong, and for those of types
    that this package has.
    """
    structs = read_definitions(definitions, prefix)
    find = find or (lambda name: None)
    check_types(structs, find)
    files: dict[Path, str] = {}
    for struct in (_with_references(struct, structs, prefix, find) for struct in structs):
        path = Path(struct.package, f"{struct.name}.py")
        banner = _banner(f"{source}{struct.package}/{struct.name}.lcm")
        files[path] = _finished(struct, banner)
        files[path.with_suffix(".pyi")] = banner + stub(struct)
    names = [struct.full_name for struct in structs]
    for package in sorted({struct.package for struct in structs}):
        files[Path(package, "__init__.py")] = _package_init(package, names, prefix, source)
    files[Path("index.py")] = _index(names, source)
    return files


def generate_own(folder: Path, package: str = "") -> dict[Path, str]:
    """The files of a package's own types, whose classes stand beside their definitions, by path below the folder.

    ``package`` is the folder's name in Python; without it, it follows from the ``__init__.py`` of the folders above.
    Raises ``UserError`` as ``generate`` does, and if a file of somebody's is where a generated one belongs.
    """
    prefix = package or python_name(folder)

    def elsewhere(name: str) -> type[Message] | None:
        found = registry.find(name)
        return None if found is None or found.__module__.startswith(f"{prefix}.") else found

    files = generate(folder, prefix, source="", find=elsewhere)
    for path in files:
        if path.suffix == ".py" and path.stem != "__init__" and f"{path.parent.name}.{path.stem}" in TYPE_NAMES:
            raise UserError(
                f"{folder / path.with_suffix('.lcm')}:1: {path.parent.name}.{path.stem} is a message type of "
                f"dimos_streams: import it from dimos_streams.messages.{path.parent.name}, or choose another name"
            )
    if not _is_somebodys(folder / "__init__.py"):
        files[Path("__init__.py")] = _banner("*/*.lcm").rstrip() + "\n"
    for path in files:
        if _is_somebodys(folder / path):
            raise UserError(f"{str(folder / path)!r} is not a generated file, but one belongs there: move it away")
    return files


def python_name(folder: Path) -> str:
    """The name under which Python imports a folder, from the topmost ``__init__.py`` on. Raises ``UserError``."""
    folder = real_path(folder)
    parts = [folder.name]
    while (folder := folder.parent).joinpath("__init__.py").exists():
        parts.insert(0, folder.name)
    if not all(part.isidentifier() for part in parts):
        raise UserError(f"{'.'.join(parts)!r} can't be imported: rename the folder, or give its name with --package")
    return ".".join(parts)


def differences(expected: dict[Path, str], folder: Path, *, shared: bool = False) -> dict[Path, str]:
    """The paths that differ between ``expected`` and ``folder``, each "missing", "stale" or "left over".

    In a ``shared`` folder what was not generated is somebody's, and is left alone; so is everywhere a folder whose
    ``__init__.py`` was not.
    """
    present = {path for path in folder.glob("*/*.py*") if _is_generated(path.with_name("__init__.py"))}
    left = {path.relative_to(folder) for path in present if not shared or _is_generated(path)} - expected.keys()
    found = dict.fromkeys(left, "left over")
    for path, text in expected.items():
        if not (folder / path).exists():
            found[path] = "missing"
        elif (folder / path).read_text(encoding="utf-8") != text:
            found[path] = "stale"
    return dict(sorted(found.items()))


def update(expected: dict[Path, str], differing: dict[Path, str], folder: Path) -> None:
    """Write the files that differ, and delete those that are left over."""
    for path in differing:
        if path in expected:
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(expected[path], encoding="utf-8")
        else:
            (folder / path).unlink()


def outcome(what: str) -> str:
    """Return the word for a difference that ``update`` has mended."""
    return "deleted" if what == "left over" else "written"


def _is_generated(path: Path) -> bool:
    if path.suffix not in (".py", ".pyi") or not path.exists():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return _MADE in file.readline()


def _is_somebodys(path: Path) -> bool:
    """Return whether a file was not made here and is not empty. A link counts as somebody's, wherever it leads: the
    folder may be a stranger's, and what is written through its links is not in it."""
    if path.is_symlink():
        return True
    return path.exists() and path.stat().st_size > 0 and not _is_generated(path)


def _with_references(struct: Struct, structs: Sequence[Struct], prefix: str, find: Find) -> Struct:
    """The struct with the types of other packages where Python has them; lcm-gen writes all as of one package."""
    own = {other.full_name for other in structs}
    text, fields = struct.python, []
    for field in struct.fields:
        cls = find(field.type) if field.is_message and field.type not in own else None
        if cls is not None:
            text = re.sub(rf"\b{re.escape(f'{prefix}.{field.type}')}\b", cls.__module__, text)
            field = dataclasses.replace(field, path=cls.__module__)
        fields.append(field)
    return dataclasses.replace(struct, python=text, fields=tuple(fields))


def _finished(struct: Struct, banner: str) -> str:
    """lcm-gen's text with our base class and its encode, keyword constructor and strict UTF-8."""
    text = struct.python
    text = _replaced(text, text[: text.index("from io import BytesIO")], banner)
    text = _replaced(text, "import struct\n", "import struct\n\nfrom dimos_streams.messages.base import Message\n")
    text = _replaced(text, f"class {struct.name}(object):", f"class {struct.name}(Message):")
    text = _replaced(text, "    __slots__ = [", f'    msg_name = "{struct.full_name}"\n\n    __slots__ = [')
    text = _replaced(text, "    def __init__(self):\n", "    def __init__(self, **fields):\n")
    text = _replaced(
        text, _PLAIN_ENCODE.format(struct.name), "\n        if fields:\n            self._assign(fields)\n"
    )
    # Decoding sets every field: defaults, which are whole messages, would be made for nothing.
    text = _replaced(text, f" self = {struct.name}()\n", f" self = {struct.name}.__new__({struct.name})\n")
    text = text.replace(".decode('utf-8', 'replace')", ".decode('utf-8')")
    for field in struct.fields:
        if field.type == "byte" and isinstance(field.size, int):  # lcm-gen's default is of another length
            text = _replaced(
                text, f'        self.{field.name} = b""\n', f"        self.{field.name} = bytes({field.size})\n"
            )
        if isinstance(field.size, int) or (field.is_message and field.size is None):  # a default that takes its time
            given = rf'\1fields.pop("{field.name}") if "{field.name}" in fields else '
            text = re.sub(rf"(?m)^( {{8}}self\.{field.name} = )", given, text, count=1)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise UserError(f"this lcm-gen writes other Python than expected: {old!r} occurs {text.count(old)} times")
    return text.replace(old, new)


def _banner(source: str) -> str:
    return f'"""Generated from {source} {_MADE}"""\n{_LEFT_ALONE}\n'


def _package_init(package: str, names: Sequence[str], prefix: str, source: str) -> str:
    types = [name.partition(".")[2] for name in names if name.startswith(package + ".")]
    lines = [
        *(f"from {prefix}.{package}.{name} import {name}" for name in types),
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in types),
        "]",
    ]
    return _banner(f"{source}{package}/*.lcm") + "\n".join(lines) + "\n"


def _index(names: Sequence[str], source: str) -> str:
    lines = ["TYPE_NAMES = (", *(f'    "{name}",' for name in names), ")"]
    return _banner(f"{source}*/*.lcm") + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
