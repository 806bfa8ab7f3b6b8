"""Users' gates, loaded by the names that a blueprint has for them."""

from __future__ import annotations

import inspect

from dimos_streams.agent.policies.gates.base import Gate
from dimos_streams.common.importing import import_attribute, is_reference
from dimos_streams.errors import UserError


def load_gate(reference: str) -> Gate:
    """Make a user's gate, ``"package.module:Class"``. Raises ``UserError``, which says what is wrong."""
    if not is_reference(reference) or "." in reference.partition(":")[2]:
        raise UserError(f"gate {reference!r} is not of the form 'package.module:Class'")
    try:
        make = import_attribute(reference)
    except UserError as error:
        raise UserError(f"gate {reference!r} can't be imported: {error}") from error
    try:
        gate = make()
    except Exception as error:
        raise UserError(f"gate {reference!r} can't be made: {type(error).__name__}: {error}") from error
    review = getattr(gate, "review", None)
    if not callable(review):
        raise UserError(f"gate {reference!r} has no method 'review'")
    function = getattr(review, "__func__", None)  # of Python's own: a compiled one does not say what it is
    if inspect.isfunction(function) and not any(
        map(inspect.iscoroutinefunction, (function, inspect.unwrap(function)))
    ):
        raise UserError(f"gate {reference!r}: its review must be `async def`")
    try:
        inspect.signature(review, follow_wrapped=False).bind(None)
    except TypeError as error:
        raise UserError(f"gate {reference!r}: its review can't be given a request alone: {error}") from error
    except ValueError:  # nobody knows what this one takes
        pass
    checked: Gate = gate
    return checked
