"""Stand-ins for skills: the same schema, policies, leases and events, and nothing moves.

    with mock_skill(FollowPerson, "follow_person", updates=["Following"], result={"followed_m": 3.0}) as mock:
        async with ModuleHarness(FollowPerson) as harness:
            call = await harness.call("follow_person", description="the man in red")
            assert await call.result() == {"followed_m": 3.0}
            assert mock.calls == [{"description": "the man in red", "timeout_s": 120.0}]

It works wherever the class is started within the ``with`` in this process: in a ``ModuleHarness``, in a run of a
whole blueprint with ``--in-process`` or in virtual time. ``mock_module`` makes a stand-in of a whole module, which
has no streams either and so needs no hardware.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import typing
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dimos_streams.errors import suggest
from dimos_streams.module import Module
from dimos_streams.skill import Call, skills_of

Behaviour: TypeAlias = Callable[[Call, Mapping[str, Any]], Awaitable[Any]]
"""The function of a stand-in: it gets the call and the checked arguments, gives the result."""
_POLICY = "__dimos_streams_skill__"
_CALL = "call"


@dataclass(slots=True, kw_only=True)
class MockSkill:
    """The behaviour of a stand-in, and what it was called with."""

    updates: Sequence[str] = ()
    """The texts of its updates, sent one after the other."""
    pause_s: float = 0.0
    """Seconds to wait before each update and before the end."""
    result: Any = None
    error: Exception | None = None
    """The error that is raised instead of giving the result; a ``SkillError`` reaches the caller word for word."""
    endless: bool = False
    """True if it goes on after the updates until ``end`` is set, or until it is cancelled."""
    behaviour: Behaviour | None = None
    """A function that runs in place of all of this."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """The arguments of each call, checked and with defaults, in order."""
    cancelled: int = 0
    """The number of calls that were cancelled."""
    end: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Raise ``TypeError`` for what it could not play."""
        if self.error is not None and not isinstance(self.error, Exception):
            raise TypeError(f"error={self.error!r} is no exception; valid: error=SkillError({str(self.error)!r})")
        if isinstance(self.updates, str):
            raise TypeError(f"updates={self.updates!r} is one text, not several; valid: updates=[{self.updates!r}]")

    async def run(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        """Play one call."""
        self.calls.append(dict(arguments))
        try:
            if self.behaviour is not None:
                return await self.behaviour(call, arguments)
            return await self._play(call)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def _play(self, call: Call) -> Any:
        for text in self.updates:
            await asyncio.sleep(self.pause_s)
            await call.update(text)
        if self.endless:
            await self.end.wait()
        await asyncio.sleep(self.pause_s)
        if self.error is not None:
            raise self.error
        return self.result


@contextlib.contextmanager
def mock_skill(module: type[Module], skill: str, mock: MockSkill | None = None, **script: Any) -> Iterator[MockSkill]:
    """Replace a skill of a class; ``script`` are fields of ``MockSkill``. Raises ``ValueError`` for no such skill.

    Modules that were started before keep what they had.
    """
    mock = mock or MockSkill(**script)
    attribute = _attribute(module, skill)
    own = vars(module).get(attribute)
    setattr(module, attribute, _stand_in(module, attribute, mock))
    try:
        yield mock
    finally:
        if own is None:
            delattr(module, attribute)
        else:
            setattr(module, attribute, own)


def mock_module(module: type[Module], **mocks: MockSkill) -> type[Module]:
    """A class with the config and the skills of a module, each a stand-in, and nothing else: no streams, no hooks.

    ``mocks`` says how skills behave, by name; the others end at once. Raises ``ValueError`` for no such skill.
    """
    for name in mocks:
        _attribute(module, name)
    functions = {}
    for name in skills_of(module):
        attribute = _attribute(module, name)
        functions[attribute] = _stand_in(module, attribute, mocks.get(name) or MockSkill())
    body = {**functions, "__annotations__": {"config": module.config_type()}, "__module__": module.__module__}
    return type(module.__name__, (Module,), body)


def _attribute(module: type[Module], skill: str) -> str:
    """The method that is the skill of that name."""
    specs = skills_of(module)
    if skill not in specs:
        known = ", ".join(specs) or "none"
        raise ValueError(f"{module.__name__} has no skill {skill!r}{suggest(skill, specs)} (skills: {known})")
    return specs[skill].function.__name__


def _stand_in(module: type[Module], attribute: str, mock: MockSkill) -> Callable[..., Awaitable[Any]]:
    """A method with the name, the signature, the description and the policies of the original."""
    original = inspect.unwrap(getattr(module, attribute))
    hints = typing.get_type_hints(original, include_extras=True)
    hints.pop("return", None)  # its test says what it gives
    parameters = list(inspect.signature(original).parameters.values())
    called = next((name for name, hint in hints.items() if hint is Call), None)
    if called is None:
        called = _CALL if _CALL not in hints else f"{_CALL}_"
        hints[called] = Call
        parameters.append(inspect.Parameter(called, inspect.Parameter.KEYWORD_ONLY))
    name = called

    async def stand_in(self: Module, **given: Any) -> Any:
        return await mock.run(given.pop(name), given)

    stand_in.__name__, stand_in.__qualname__, stand_in.__doc__ = attribute, original.__qualname__, original.__doc__
    stand_in.__annotations__ = hints
    stand_in.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    setattr(stand_in, _POLICY, getattr(getattr(module, attribute), _POLICY))
    return stand_in
