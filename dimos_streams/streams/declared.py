"""The streams that a module class declares by its annotations."""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.schemas.declaration_faults import DeclarationFaults
from dimos_streams.messages import registry
from dimos_streams.messages.base import Message
from dimos_streams.messages.plain_classes import is_message_class, message_class
from dimos_streams.streams.input import In
from dimos_streams.streams.output import Out
from dimos_streams.streams.spec import StreamSpec


@functools.cache
def declared_streams(owner: type) -> Mapping[str, StreamSpec]:
    """The streams that a class and its bases declare, in the order of their declaration.

    Raises ``TypeError`` for a stream without a message type, or an annotation that can't be resolved.
    """
    try:
        hints = typing.get_type_hints(owner)
    except Exception as error:  # it may be any expression
        raise TypeError(f"{owner.__name__}: an annotation can't be resolved: {error}") from error
    specs: dict[str, StreamSpec] = {}
    typed = {name for name, hint in hints.items() if (typing.get_origin(hint) or hint) in (In, Out)}
    faults = DeclarationFaults()
    for name, hint in hints.items():
        with faults.noting():
            if name in typed:
                specs[name] = _declared(owner, name, hint)
            else:
                _refuse_within(hint, f"{owner.__name__}.{name}")
    for base in owner.__mro__:
        for name, value in vars(base).items():
            with faults.noting():
                if isinstance(value, In | Out) and name not in typed:
                    kind = type(value).__name__
                    raise TypeError(f"{base.__name__}.{name} needs a type, as in {name}: {kind}[Twist] = {kind}()")
                _refuse_assigned(value, base, name)
    faults.refuse()
    return specs


def _declared(owner: type, name: str, hint: Any) -> StreamSpec:
    """The stream that an annotation and its value declare. Raises ``TypeError`` for one without a message type."""
    origin: type[In[Any]] | type[Out[Any]] = typing.get_origin(hint) or hint
    message = _message_of(typing.get_args(hint), f"{owner.__name__}.{name}")
    declaration = getattr(owner, name, None)
    if declaration is None:
        declaration = origin()
    if not isinstance(declaration, origin):
        raise TypeError(f"{owner.__name__}.{name} is annotated {hint} but set to {declaration!r}")
    spec = declaration.declare(name, message)
    if spec.fresh and not hasattr(message, "header"):
        raise TypeError(f"{owner.__name__}.{name}: In(fresh=True) needs a type with a header, for its stamp")
    for used in spec.messages:
        registry.use(used)
    return spec


def _refuse_assigned(value: object, owner: type, name: str) -> None:
    """Raise ``TypeError`` for the type of a stream in the place of its value, which would declare nothing."""
    kind = typing.get_origin(value) or value
    if kind in (In, Out):
        of = ", ".join(getattr(one, "__name__", repr(one)) for one in typing.get_args(value)) or "Twist"
        declared = f"{kind.__name__}[{of}]"
        raise TypeError(f"{owner.__name__}.{name} = {declared} declares no stream; valid: {name}: {declared}")


def _refuse_within(hint: object, where: str) -> None:
    """Raise ``TypeError`` for a stream that a type has inside, and for one's value in the place of a type: each would
    be none, without a word."""
    if isinstance(hint, In | Out):
        kind = type(hint).__name__
        raise TypeError(
            f"{where}: {kind}(…) is no type; valid: {where.rpartition('.')[2]}: {kind}[Twist] = {kind}(…)"
        )
    for part in typing.get_args(hint):
        if (typing.get_origin(part) or part) in (In, Out):
            why = "In(required=False) may stay unwired"
            raise TypeError(f"{where}: a stream is declared by itself, and not as {hint}; {why}")
        _refuse_within(part, where)


def _message_of(arguments: tuple[object, ...], where: str) -> type[Message]:
    if len(arguments) != 1 or not is_message_class(arguments[0]):
        given = ", ".join(getattr(one, "__name__", repr(one)) for one in arguments) or "nothing"
        raise TypeError(
            f"{where} must name an LCM message type, as in In[Twist], not {given}: a class of "
            "dimos_streams.messages, or one that 'dimos-streams messages generate' or lcm-gen has made"
        )
    try:
        return message_class(arguments[0])
    except (TypeError, ImportError, AttributeError) as error:
        raise TypeError(f"{where}: {error}") from error
