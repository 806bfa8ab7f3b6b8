"""Calls of a test that go over the bus, to the modules themselves, and the modules that take them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import UnknownSkillError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import Module
from dimos_streams.skill.names import own_name, public_prefix
from dimos_streams.skill.spec import SkillSpec
from dimos_streams.tool_stream.protocol.channels import CALLS

_AGAIN_S = 0.5


@contextlib.contextmanager
def asking(ask: Callable[[], None]) -> Iterator[None]:
    """Ask at once and, as a bridge does, again and again as long as the block lasts: a module whose loop was blocked
    takes no request that may be an old one."""
    timer: asyncio.TimerHandle

    def ask_again() -> None:
        nonlocal timer
        ask()
        timer = asyncio.get_running_loop().call_later(_AGAIN_S, ask_again)

    ask_again()
    try:
        yield
    finally:
        timer.cancel()


def request_call(
    bus: Bus, call_id: str, *, module: str, skill: str, caller: str, arguments: Mapping[str, Any]
) -> None:
    """Ask a module to begin a call, as a bridge would."""
    message = SkillCall(
        utime=clock.utime(),
        call_id=call_id,
        module=module,
        skill=skill,
        caller=caller,
        arguments_json=json_text(arguments),
    )
    bus.publish(CALLS, encode(message))


def find_offered(skill: str, modules: Iterable[Module]) -> tuple[Module, SkillSpec]:
    """Return the first of some modules that offers a skill of that public name, and the skill. Raises
    ``UnknownSkillError`` if none does."""
    known = tuple(modules)
    for module in known:
        spec = module.offered_skills().get(own_name(skill, module.context.namespace))
        if spec is not None:
            return module, spec
    raise UnknownSkillError(skill, sorted(set(public_skills(known))))


def public_skills(modules: Iterable[Module]) -> Iterator[str]:
    """Yield the public names of the skills that modules offer."""
    for module in modules:
        yield from (f"{public_prefix(module.context.namespace)}{name}" for name in module.offered_skills())
