"""Classes as plain ``lcm-gen --python`` writes them, taken in as messages.

A plain class has no keyword constructor, no equality and no name; and it is somebody's own, which stays as it is. So
each gets a subclass here that is a ``Message`` as well. What a module receives is of that subclass, therefore of its
own class too; what it publishes is converted.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from dimos_streams.common.importing import kind_of
from dimos_streams.messages.base import Field, Message, field_from_lcm, fields_of, wire_name

if TYPE_CHECKING:
    from io import BytesIO

PRIMITIVES = frozenset({"int8_t", "int16_t", "int32_t", "int64_t", "byte", "float", "double", "boolean", "string"})
_MADE_BY_LCM_GEN = (
    "__slots__",
    "__typenames__",
    "__dimensions__",
    "_get_packed_fingerprint",
    "_decode_one",
    "encode",
)


def is_message_class(found: object) -> TypeGuard[type]:
    """Return whether it is a class of lcm-gen's, made directly or through ``dimos-streams messages generate``."""
    if not isinstance(found, type) or found is Message:
        return False
    return issubclass(found, Message) or all(name in vars(found) for name in _MADE_BY_LCM_GEN)


@functools.cache
def message_class(found: type) -> type[Message]:
    """The ``Message`` class for one that lcm-gen has written: itself, or the subclass that takes it in.

    Raises ``TypeError`` that names what is not supported.
    """
    if issubclass(found, Message):
        return found
    refuse_unsupported(found, ())
    namespace: dict[str, Any] = {
        "__slots__": (),
        "__module__": found.__module__,
        "__doc__": found.__doc__,
        "__init__": _initialise,
        "_plain": found,
        "_decode_one": classmethod(_decode_one),
        "msg_name": wire_name(found.__module__),
    }
    return cast("type[Message]", type(found.__name__, (found, Message), namespace))


def class_of(field: Field) -> type[Message]:
    """The class of a field that is a message."""
    return _class_at(field.path)


def accepted(value: object, cls: type[Message]) -> Message | None:
    """A value as an instance of ``cls``: it may be one already, or one of the plain class that ``cls`` takes in.

    Returns None for anything else. Fields that can't be encoded are left for ``encode`` to name.
    """
    if isinstance(value, cls):
        return value
    plain = vars(cls).get("_plain")
    return _taken_in(value, cls) if plain is not None and isinstance(value, plain) else None


def refuse_unsupported(found: type, within: tuple[type, ...]) -> None:
    """Raise ``TypeError`` if a class of lcm-gen, or one inside it, can't be a message."""
    module = found.__module__.split(".")
    if len(module) < 2 or module[-1] != found.__name__:
        raise TypeError(
            f"{found.__name__} of the module {found.__module__!r} has no LCM package: its .lcm file must begin with "
            "'package NAME;', and Python must find the class in the folder NAME that lcm-gen makes"
        )
    name = wire_name(found.__module__)
    if found in within:
        raise TypeError(f"{name} contains itself; a message can't")
    lcm = vars(found)
    for row in zip(lcm["__slots__"], lcm["__typenames__"], lcm["__dimensions__"], strict=True):
        if row[2] and len(row[2]) > 1:
            raise TypeError(f"{name}.{row[0]} has {len(row[2])} dimensions; arrays must have one")
        field = field_from_lcm(*row)
        if field.is_message:
            inner = _lcm_class_at(field.path)
            if not issubclass(inner, Message):
                refuse_unsupported(inner, (*within, found))
        elif field.type not in PRIMITIVES:
            raise TypeError(f"{name}.{field.name} is of the type {field.type!r}, which has no LCM package")


@functools.cache
def _class_at(path: str) -> type[Message]:
    return message_class(_lcm_class_at(path))


def _lcm_class_at(path: str) -> type:
    found: Any = getattr(importlib.import_module(path), path.rpartition(".")[2])
    if not is_message_class(found):
        raise TypeError(f"{path} is no class that lcm-gen has written but {kind_of(found)}")
    return found


def _converted(value: Any, field: Field) -> Any:
    if not field.is_message:
        return value
    cls = class_of(field)
    if field.size is None:
        return accepted(value, cls) or value
    return [accepted(item, cls) or item for item in value]


def _taken_in(value: object, cls: type[Message]) -> Message:
    message = cls.__new__(cls)
    for field in fields_of(cls):
        if hasattr(value, field.name):  # without it encode says so
            setattr(message, field.name, _converted(getattr(value, field.name), field))
    return message


def _initialise(self: Any, **fields: Any) -> None:
    self._plain.__init__(self)
    for field in fields_of(type(self)):
        setattr(self, field.name, _converted(getattr(self, field.name), field))
    self._assign(fields)


def _decode_one(cls: Any, buf: BytesIO) -> Any:
    return _taken_in(cls._plain._decode_one(buf), cls)
