"""Java classes of message types, so that Java programs, lcm-spy first of all, can read what is on the bus.

lcm-gen writes them, but what it writes of the stock types does not compile: inside of ``std_msgs``, whose ``String``
is a message, it calls Java's own class by the same short name. Such names are written out; the rest stays lcm-gen's,
and with it the fingerprints.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dimos_streams.common.process.disk import real_path
from dimos_streams.errors import UserError
from dimos_streams.messages.generate import DEFINITIONS
from dimos_streams.messages.generation.definitions import (
    LcmGenError,
    Struct,
    check_types,
    definition_files,
    lcm_gen,
    line_of,
    read_definitions,
    run_lcm_gen,
)

_USED = {
    "String": "java.lang",
    "Class": "java.lang",
    "ArrayList": "java.util",
    "IOException": "java.io",
    "DataInput": "java.io",
    "DataOutput": "java.io",
    "LCMDataInputStream": "lcm.lcm",
}
"""The classes that lcm-gen's Java calls by their short names, and their packages."""
_OWN_CONSTRUCTOR = r"\((?:\)|byte\[\]|(?:java\.io\.)?DataInput )"
_WORDS = """abstract assert boolean break byte case catch char class const continue default do double else enum
extends false final finally float for goto if implements import instanceof int interface long native new null package
private protected public return short static strictfp super switch synchronized this throw throws transient true try
void volatile while"""
"""Java's own."""


def java_classes(folders: Iterable[Path] = ()) -> dict[Path, str]:
    """The text of the Java class of each stock type, and of each that is defined below ``folders``, by its path.

    Raises ``UserError`` for definitions that are wrong or can't be Java, and if lcm-gen is missing.
    """
    sources: list[Path] = []
    structs: list[Struct] = []
    for folder in (DEFINITIONS, *folders):
        sources += definition_files(folder)
        structs += read_definitions(folder, "java")
    _refuse_duplicates(structs)
    check_types(structs, lambda name: None)
    _refuse_reserved(structs)
    with tempfile.TemporaryDirectory() as made:
        run_lcm_gen(sources, "--java", "--jpath", made)
        paths = [Path(struct.package, f"{struct.name}.java") for struct in structs]
        texts = {path: (made / path).read_text(encoding="utf-8") for path in paths}
    return {path: _ascii(_qualified(text, path, paths)) for path, text in texts.items()}


def write_java(classes: Mapping[Path, str], out: Path) -> None:
    """Write classes below a folder. Raises ``UserError`` where a link leads out of it, and ``OSError``."""
    for path in classes:
        if not real_path(out / path).is_relative_to(real_path(out)):
            raise UserError(f"{str(out / path)!r} is not written: a link leads to {str(real_path(out / path))!r}")
    for path, text in classes.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="ascii")


def lcm_jar() -> Path:
    """The library that Java programs need beside the classes. Raises ``UserError`` if it is not there."""
    package = lcm_gen().parents[1]
    jar = package / "share" / "java" / "lcm.jar"
    if not jar.exists():
        raise LcmGenError(f"the installed lcm at {package} has no {jar.relative_to(package)}")
    return jar


def _qualified(text: str, path: Path, paths: Iterable[Path]) -> str:
    """A class with Java's own classes under their whole names, where messages of its package have the short ones."""
    shadowed = {other.stem for other in paths if other.parent == path.parent} & _USED.keys()
    for name in sorted(shadowed):
        its_own = rf"(?<!class )(?!{name}{_OWN_CONSTRUCTOR})" if name == path.stem else ""
        text = re.sub(rf"(?<![\w.]){its_own}{name}\b", f"{_USED[name]}.{name}", text)
    return text


def _ascii(text: str) -> str:
    """Java source with escapes for all that is not ASCII, so that javac reads it alike in any locale: comments of
    definitions may have any letters."""
    return re.sub(r"[^\x00-\x7f]", lambda found: _escape(found[0]), text)


def _escape(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _refuse_duplicates(structs: Sequence[Struct]) -> None:
    first: dict[str, Struct] = {}
    for struct in structs:
        known = first.setdefault(struct.full_name, struct)
        if known is not struct:
            raise UserError(f"{struct.source}:1: {struct.full_name} is defined by {known.source} as well")


def _refuse_reserved(structs: Sequence[Struct]) -> None:
    words = frozenset(_WORDS.split())
    for struct in structs:
        for name in (*(field.name for field in struct.fields), *struct.constants, struct.name):
            if name in words:
                line = line_of(struct.source, rf"\b{name}\b")
                raise UserError(
                    f"{struct.source}:{line}: {name!r} can't be a name in Java: it is a word of the language"
                )
