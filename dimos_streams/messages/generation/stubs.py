"""Stubs of message classes, which say their fields' types to type checkers and editors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dimos_streams.messages.base import Field
from dimos_streams.messages.generation.definitions import Struct

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


def stub(struct: Struct) -> str:
    """The text of a class's stub after its first line."""
    names = _python_names(struct)
    sizes = {field.size for field in struct.fields}
    attributes = [f"    {name}: ClassVar[{type(value).__name__}]" for name, value in struct.constants.items()]
    parameters = []
    for field in struct.fields:
        annotation, default = _annotation(field, names)
        attributes.append(f"    {field.name}: {annotation}")
        if field.name not in sizes:
            parameters.append(f"        {field.name}: {annotation} = {default},")
    end = " " if struct.doc.endswith('"') else ""  # a fourth quote would begin another text
    doc = [f'    """{struct.doc}{end}"""'] if struct.doc else []
    signature = ["    def __init__(", "        self,", "        *,", *parameters, "    ) -> None: ..."]
    body = [
        f"class {struct.name}(Message):",
        *doc,
        *([""] if doc and attributes else []),
        *attributes,
        *([""] if doc or attributes else []),
        *(signature if parameters else ["    def __init__(self) -> None: ..."]),
    ]
    return "\n".join([*_imports(names, attributes), "", *body]) + "\n"


def _python_names(struct: Struct) -> dict[str, tuple[str, str]]:
    """Return the class's name of each message inside, by path, and its name in the stub, different for each."""
    paths = sorted({field.path for field in struct.fields if field.is_message})
    classes = Counter(path.rpartition(".")[2] for path in paths)
    found = {}
    for path in paths:
        package, name = path.split(".")[-2:]
        clear = classes[name] == 1 and name != struct.name
        found[path] = name, name if clear else f"{package}_{name}"
    return found


def _imports(names: Mapping[str, tuple[str, str]], attributes: Sequence[str]) -> list[str]:
    used = "\n".join(attributes)
    standard = {"Sequence[": "from collections.abc import Sequence", "ClassVar[": "from typing import ClassVar"}
    from_base = [name for name in ("FloatArray", "IntArray") if name in used] + ["Message"]
    lines = [line for name, line in standard.items() if name in used]
    return [
        *([*lines, ""] if lines else []),
        f"from dimos_streams.messages.base import {', '.join(from_base)}",
        *(
            f"from {path} import {name}" + (f" as {called}" if called != name else "")
            for path, (name, called) in names.items()
        ),
    ]


def _annotation(field: Field, names: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """The type of a field in a stub and its default in the constructor."""
    if field.is_message:
        name = names[field.path][1]
        return (f"list[{name}]", "...") if field.size is not None else (name, "...")
    if field.type == "byte" and field.size is not None:
        return "bytes", "..." if isinstance(field.size, int) else 'b""'
    scalar, default = _SCALARS[field.type]
    return (_ARRAYS[scalar], "...") if field.size is not None else (scalar, default)
