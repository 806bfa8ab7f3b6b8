"""Skills: methods of modules that agents, operators and scripts call, and that may go on after they answered."""

from __future__ import annotations

import abc
import asyncio
import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from dimos_streams.common.docstrings import described
from dimos_streams.common.invalid import problems_with_values
from dimos_streams.common.plain_schema import plain_schema
from dimos_streams.errors import SkillArgumentError

F = TypeVar("F", bound=Callable[..., Any])
OnDuplicate = Literal["allow", "reject", "replace", "confirm"]
DuplicateScope = Literal["name", "arguments"]
Audience = Literal["everyone", "operator", "bridge"]
Approval = Literal["never", "ask"]
OnLoss = Literal["stop", "continue"]
OnUpdate = Callable[[str, Mapping[str, Any]], Awaitable[None] | None]
"""Gets text and data of what a child says; a coroutine function is awaited."""

BASE = "base"
"""The resource that everything holds which moves the robot's base."""
_ATTRIBUTE = "__dimos_streams_skill__"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPolicy:
    """The policy of a skill: what ``@skill(…)`` states about it besides its signature."""

    resources: frozenset[str] = frozenset()
    """Resources that a call holds, exclusively, from its beginning to its close."""
    on_duplicate: OnDuplicate = "allow"
    """The fate of a second call while one runs: both run, it is refused, it takes over, the caller chooses."""
    duplicate_scope: DuplicateScope = "name"
    """The calls that count as a second one: any of the same skill, or only one with equal arguments."""
    audience: Audience = "everyone"
    """Skills for operators are neither offered to models nor begun by skills or agents; other callers may call them.
    One for the bridge makes its module an agent, see ``tool_stream/review.py``."""
    motion: bool = False
    """It moves the robot."""
    concurrent: bool = False
    """It only senses: a model's calls of such skills may run beside each other."""
    read_only: bool = False
    """Its author vouches that a call changes nothing, in the robot or elsewhere, and begins or ends no other call.
    Some clients run such skills without asking anybody."""
    reversible: bool = True
    """Its effect can be taken back, by ``undo`` or by other calls; False for what can't, a dropped parcel."""
    undo: str = ""
    """A skill of the same module that takes a call back; it takes that call's ``arguments`` and ``result``."""
    approval: Approval = "never"
    """Whether an operator is asked before a model's call of it runs."""
    polling: bool = False
    """To call it again and again with the same arguments is ordinary, not a loop."""
    protected: bool = False
    """No duplicate replaces a call of it that runs."""
    on_loss: OnLoss = "stop"
    """The fate of a moving call that nobody acknowledges any more, because a link is cut; its caller may say
    otherwise."""
    time_limit_s: float | None = None
    """A call that runs longer is ended with outcome ``timed_out``."""
    name: str = ""
    """Its public name where that can't be the method's; empty for the method's name."""

    def __post_init__(self) -> None:
        """Raises ``TypeError`` for what contradicts itself."""
        others = {"motion=True": self.motion, "resources": self.resources, "undo": self.undo}
        stated = [name for name, given in (*others.items(), ("reversible=False", not self.reversible)) if given]
        if self.read_only and stated:
            raise TypeError(f"a skill can't be read_only with {', '.join(stated)}: it would change something")

    @property
    def moves(self) -> bool:
        """Whether a call may move the robot: it says so, or it holds the base."""
        return self.motion or BASE in self.resources


@overload
def skill(function: F) -> F: ...
@overload
def skill(
    *,
    resources: Iterable[str] = (),
    on_duplicate: OnDuplicate = "allow",
    duplicate_scope: DuplicateScope = "name",
    audience: Audience = "everyone",
    motion: bool = False,
    concurrent: bool = False,
    read_only: bool = False,
    reversible: bool = True,
    undo: str = "",
    approval: Approval = "never",
    polling: bool = False,
    protected: bool = False,
    on_loss: OnLoss = "stop",
    time_limit_s: float | None = None,
    name: str = "",
) -> Callable[[F], F]: ...
def skill(function: F | None = None, *, resources: Iterable[str] = (), **policy: Any) -> F | Callable[[F], F]:
    """Mark a method as a skill: its signature is its schema, its docstring its description.

    A parameter annotated ``Call`` receives the running call. A plain ``def`` runs in a thread. See ``SkillPolicy``
    for the arguments.
    """
    stated = SkillPolicy(resources=frozenset(resources), **policy)

    def mark(method: F) -> F:
        setattr(method, _ATTRIBUTE, stated)
        return method

    return mark if function is None else mark(function)


class SkillClient(Protocol):
    """The other skills as a running skill may use them: check, start, cancel."""

    async def check(self, skill: str, arguments: Mapping[str, Any]) -> None:
        """Raises ``UnknownSkillError``, ``SkillArgumentError`` or ``CallRejectedError`` if such a call would be
        refused for its form, or because its skill is not for skills to begin."""

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        on_wait: Callable[[], Awaitable[None]] | None = None,
    ) -> str:
        """Begin a call on behalf of this call's caller, to whom its events go; the new call's id. It goes on when
        this call ends; ``run`` is for a part of this call.

        If the caller is an agent, the call passes the agent's gates as one that its model makes, and may wait for
        long: ``on_wait`` is awaited once when it does. If this is cancelled, the call does not begin any more.
        Raises ``CallRejectedError`` if it is refused, and ``SkillError`` if nobody takes it within a bound.
        """

    async def run(
        self,
        skill: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        on_update: OnUpdate | None = None,
        on_wait: Callable[[], Awaitable[None]] | None = None,
        quiet: bool = True,
        **named: Any,
    ) -> Any:
        """Run another skill as a part of this call, to its end; its result, as JSON has it.

        The call of that skill, the *child*, belongs to this one: it ends when this one ends, however that comes
        about, and when this is cancelled, which waits a moment for it. What this call holds the child may use.
        ``on_update`` gets text and data of each of its updates and of its progress; unless it is ``quiet`` they are
        this call's updates too. It passes the gates of an agent as what ``start`` begins does, for ``on_wait`` see
        there.

        Arguments whose names are this method's own are given in ``arguments``. Raises ``SkillRunError`` with the
        child's outcome and text if it did not complete or was refused.
        """

    async def cancel(self, call_id: str, reason: str) -> None:
        """Ask a call to end. Returns at once."""


class Call(abc.ABC):
    """One running invocation of a skill, seen from inside it."""

    id: str
    skill: str
    module: str
    caller: str
    parent: str
    """The id of the call that began this one, or an empty string."""
    arguments: Mapping[str, Any]
    skills: SkillClient
    loop: asyncio.AbstractEventLoop
    """The loop on which the call's methods may be used; other threads use ``ToolStream``."""
    cancel_reason: str | None
    """The reason for which it was asked to end, None as long as nobody has asked."""
    unsent: dict[asyncio.Task[None], None]
    """Updates that nobody waits for; the call closes after them."""

    @abc.abstractmethod
    async def update(self, text: str, **data: Any) -> None:
        """Send the caller a text that must arrive. The first update answers the call; the skill goes on.

        Waits while the reader is too far behind. Raises ``StreamClosedError`` after the call's close.
        """

    @abc.abstractmethod
    def progress(self, text: str, **data: Any) -> None:
        """Send the caller a text that the next progress makes obsolete. As often as you like; never waits.

        Raises ``StreamClosedError`` after the call's close.
        """


class SkillInfo(BaseModel):
    """A skill as callers see it. ``parameters`` is a JSON Schema of the arguments' object."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    parameters: dict[str, Any]
    resources: tuple[str, ...] = ()
    on_duplicate: OnDuplicate = "allow"
    duplicate_scope: DuplicateScope = "name"
    audience: Audience = "everyone"
    motion: bool = False
    concurrent: bool = False
    read_only: bool = False
    reversible: bool = True
    undo: str = ""
    """The public name of the skill that takes a call of this one back; empty if there is none."""
    approval: Approval = "never"
    polling: bool = False
    protected: bool = False
    on_loss: OnLoss = "stop"


def may_move(skill: SkillInfo) -> bool:
    """Whether a call of a skill may move the robot: it says so, or it holds a base."""
    return skill.motion or any(resource.rpartition("/")[2] == BASE for resource in skill.resources)


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """A skill as the class that has it defines it."""

    name: str
    function: Callable[..., Any]
    policy: SkillPolicy
    model: type[BaseModel]
    description: str
    call_parameter: str | None

    def info(self, prefix: str = "") -> SkillInfo:
        """The description that callers see; a namespaced module's ``prefix`` comes before name and resources."""
        policy, public = self.policy, prefix.replace("/", "_")
        return SkillInfo(
            name=f"{public}{self.name}",
            description=self.description,
            parameters=plain_schema(self.model),
            resources=tuple(sorted(f"{prefix}{resource}" for resource in policy.resources)),
            on_duplicate=policy.on_duplicate,
            duplicate_scope=policy.duplicate_scope,
            audience=policy.audience,
            motion=policy.motion,
            concurrent=policy.concurrent,
            read_only=policy.read_only,
            reversible=policy.reversible,
            undo=f"{public}{policy.undo}" if policy.undo else "",
            approval=policy.approval,
            polling=policy.polling,
            protected=policy.protected,
            on_loss=policy.on_loss,
        )

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them. Raises ``SkillArgumentError`` that names each bad field."""
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise SkillArgumentError(self.name, problems_with_values(error, "arguments")) from error
        return {name: getattr(checked, name) for name in type(checked).model_fields}

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function; others run in a thread."""
        return inspect.iscoroutinefunction(self.function)


def public_names(skill: str, asked_by: str = "") -> tuple[str, ...]:
    """The public names that may be meant by a skill of the module ``asked_by`` (``"robots/a/patrol"``), in the order
    in which they are looked for: in its namespace (``robots_a_go_to``), in those around it (``robots_go_to``), in
    none (``go_to``).

    One that begins with a slash is absolute: ``"/robots/b/go_to"`` is ``robots_b_go_to``, wherever it is said.
    """
    if skill.startswith("/"):
        return (skill[1:].replace("/", "_"),)
    parts = asked_by.split("/")[:-1]
    around = ["_".join([*parts[:length], ""]) for length in range(len(parts), -1, -1)]
    return tuple(f"{prefix}{skill}" for prefix in around)


def skills_of(owner: type) -> dict[str, SkillSpec]:
    """The skills of a class and its bases, by name, in the order of their definition.

    Raises ``TypeError`` for a signature that can't be a schema.
    """
    found: dict[str, SkillSpec] = {}
    for base in reversed(owner.__mro__):
        for name in vars(base):
            function = inspect.unwrap(getattr(owner, name)) if callable(getattr(owner, name, None)) else None
            policy = getattr(function, _ATTRIBUTE, None)
            if function is not None and isinstance(policy, SkillPolicy):
                found[policy.name or name] = _spec(owner, function, policy)
    for spec in found.values():
        if spec.policy.undo and spec.policy.undo not in found:
            raise TypeError(f"{owner.__name__}.{spec.name}: undo names {spec.policy.undo!r}, which is no skill of it")
    return found


@functools.cache
def _spec(owner: type, function: Callable[..., Any], policy: SkillPolicy) -> SkillSpec:
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    text, descriptions = described(inspect.getdoc(function) or "", [parameter.name for parameter in parameters])
    fields: dict[str, Any] = {}
    call_parameter = None
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{owner.__name__}.{function.__name__}: a skill can't have {parameter}")
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"{owner.__name__}.{function.__name__}: {parameter.name!r} needs a type")
        if hint is Call:
            call_parameter = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        field = FieldInfo.from_annotated_attribute(hint, default)
        field.description = field.description or descriptions.get(parameter.name)
        fields[parameter.name] = (hint, field)
    name = policy.name or function.__name__
    model = create_model(name, __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields)
    return SkillSpec(name, function, policy, model, text, call_parameter)
