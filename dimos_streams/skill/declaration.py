"""The decorator ``@skill``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from pydantic import ValidationError

from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.schemas.declaration_error import DeclarationError
from dimos_streams.skill.policy import ODOM, Approval, Audience, DuplicateScope, OnDuplicate, OnLoss, SkillPolicy

F = TypeVar("F", bound=Callable[..., Any])
_ATTRIBUTE = "__dimos_streams_skill__"


@overload
def skill(function: F) -> F: ...
@overload
def skill(
    *,
    resources: Iterable[str] = (),
    tags: Iterable[str] = (),
    on_duplicate: OnDuplicate = "allow",
    duplicate_scope: DuplicateScope = "name",
    audience: Audience = "everyone",
    motion: bool = False,
    concurrent: bool = False,
    read_only: bool = False,
    reversible: bool = True,
    undo: str = "",
    frame: str = ODOM,
    approval: Approval = "never",
    polling: bool = False,
    protected: bool = False,
    on_loss: OnLoss = "stop",
    time_limit_s: float | None = None,
    name: str = "",
) -> Callable[[F], F]: ...
def skill(
    function: F | None = None, *, resources: Iterable[str] = (), tags: Iterable[str] = (), **policy: Any
) -> F | Callable[[F], F]:
    """Mark a method as a skill: its signature is its schema, its docstring its description.

    A parameter annotated ``Call`` receives the running call. A plain ``def`` runs in a thread. See ``SkillPolicy``
    for the arguments. Raises ``TypeError`` for a policy that is not valid, and for a method
    that has one already.
    """

    def mark(method: F) -> F:
        where = f"@skill of {getattr(method, '__qualname__', repr(method))}"
        if policy_of(method) is not None:
            raise TypeError(f"{where}: it is marked as a skill already: state all of it in one @skill(…)")
        try:
            stated = SkillPolicy(resources=_several("resources", resources), tags=_several("tags", tags), **policy)
        except ValidationError as error:
            wrong = problems_with_values(error, "the policy", lambda path: SkillPolicy.model_fields)
            raise DeclarationError([f"{where}: {in_a_line(wrong)}"]) from error
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from error
        setattr(method, _ATTRIBUTE, stated)
        return method

    return mark if function is None else mark(function)


def _several(what: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return names as they are declared, sorted. Raises ``TypeError`` for a single text, which would count as its
    letters."""
    if isinstance(names, str):
        raise TypeError(f"{what}={names!r} is one text, where several are meant: {what}=({names!r},)")
    return tuple(sorted(set(names), key=str))


def policy_of(function: object) -> SkillPolicy | None:
    """The policy of a function that is marked as a skill, or None for any other."""
    stated = getattr(function, _ATTRIBUTE, None)
    return stated if isinstance(stated, SkillPolicy) else None
