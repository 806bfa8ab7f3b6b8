"""Idempotency keys: whoever asks a second time for the same call gets the first one."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.common.json.canonical import canonical_json
from dimos_streams.common.names import tool_meant, tool_name
from dimos_streams.errors import CallRejectedError, KeyUsedError, SkillError
from dimos_streams.skill import OnLoss, public_names

_KEYS = 1000
"""Number of the newest keys of each caller that count."""
_ALL_KEYS = 10_000
"""Maximum number of keys; beyond it the caller with the most loses the oldest of its own, so that nobody's keys are
pushed out by those that another one makes up."""


@dataclass(frozen=True, slots=True)
class _What:
    """The part that must be the same in two calls with one idempotency key: all of it but how it gets its turn."""

    tools: tuple[str, ...]
    """The names of the tool that may have been asked for. Of a call of the journal only the skill's own name is
    known: if that looks like a shortened one, it was asked for by that, or by what it is shortened to."""
    arguments: bytes
    """A digest: ten thousand keys would keep as many times the most that arguments may have."""
    on_loss: OnLoss | None

    def difference(self, other: _What) -> str:
        """Return how a call differs from this one; empty if it does not."""
        if not set(self.tools).intersection(other.tools):
            return "is of another skill"
        if self.arguments != other.arguments:
            return "has other arguments"
        return "has another on_loss" if self.on_loss != other.on_loss else ""


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A call that was begun with an idempotency key, perhaps not yet admitted."""

    what: _What
    id: str
    call_id: asyncio.Future[str]
    """The same id, once the call has begun."""


class IdempotencyKeys:
    """The newest calls of each caller that were begun with a key. Use from one loop only."""

    def __init__(self, find: Callable[[str], CallState | None]) -> None:
        """``find`` gives the call of an id as it is now, or None if it is remembered no more."""
        self._find = find
        self._callers: dict[str, OrderedDict[str, _Keyed]] = {}
        self._count = 0

    def restore(self, call: CallState) -> None:
        """Remember a call of the journal by its key."""
        self._remember(call, _what(call, tool_name(call.skill))).set_result(call.call_id)

    def call_of(self, caller: str, key: str) -> str | None:
        """The id of the call that a caller has begun with a key, None if there is none."""
        keys = self._callers.get(caller)
        known = None if keys is None else keys.get(key)
        return None if known is None else known.id

    async def begin(self, call: CallState, admit: Callable[[CallState], Awaitable[None]]) -> str:
        """Begin a call that has a key by ``admit``, unless it was begun before; return its id, or that of the first
        one.

        Raises what ``admit`` raises, for all that wait for it, and ``KeyUsedError`` for the key of another call.
        """
        keys = self._callers.get(call.caller)
        known = None if keys is None else keys.get(call.key or "")
        if known is not None:
            if differs := known.what.difference(_what(call)):
                raise self._key_used(call, known, differs)
            return await asyncio.shield(known.call_id)
        future = self._remember(call, _what(call))
        try:
            await admit(call)
        except BaseException as error:
            self._forget(call.caller, call.key or "")
            given_up = CallRejectedError(f"the first call with idempotency key {call.key!r} was given up")
            future.set_exception(error if isinstance(error, SkillError) else given_up)
            future.exception()  # nobody else may be waiting for it
            raise
        future.set_result(call.call_id)
        return call.call_id

    def _key_used(self, call: CallState, known: _Keyed, differs: str) -> KeyUsedError:
        first = self._find(known.id)
        state = CLOSED if first is None else first.state
        shown = f"{state}: {first.outcome}" if first is not None and first.outcome else state
        skill = known.what.tools[0] if first is None else first.skill
        return KeyUsedError(
            f"idempotency key {call.key!r} is that of call {known.id!r} of {skill!r} ({shown}), which"
            f" {differs}; valid is a key that {call.caller!r} has not used",
            call_id=known.id,
            skill=skill,
            state=state,
        )

    def _remember(self, call: CallState, what: _What) -> asyncio.Future[str]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        keys = self._callers.setdefault(call.caller, OrderedDict())
        self._count += (call.key or "") not in keys
        keys[call.key or ""] = _Keyed(what, call.call_id, future)
        if len(keys) > _KEYS:
            self._forget_oldest(call.caller)
        if self._count > _ALL_KEYS and not self._forget_oldest(max(self._callers, key=self._size)):
            any(map(self._forget_oldest, sorted(self._callers, key=self._size, reverse=True)))
        return future

    def _size(self, caller: str) -> int:
        return len(self._callers[caller])

    def _forget_oldest(self, caller: str) -> bool:
        """Forget the oldest key of a caller whose call does not wait to begin; return whether there was one. Whoever
        asks again for one that does waits, too, and begins no second one."""
        decided = (key for key, keyed in self._callers[caller].items() if keyed.call_id.done())
        oldest = next(decided, None)
        if oldest is not None:
            self._forget(caller, oldest)
        return oldest is not None

    def _forget(self, caller: str, key: str) -> None:
        keys = self._callers.get(caller)
        if keys is not None and keys.pop(key, None) is not None:
            self._count -= 1
        if not keys:
            self._callers.pop(caller, None)


def _what(call: CallState, *further: str) -> _What:
    """Return what a call is, with ``further`` names by which its tool may have been asked for."""
    # What was asked for as "/b/move", or as a tool, has its skill's own name when it is restored from the journal.
    tool = tool_meant(public_names(call.skill)[0])
    arguments = canonical_json(call.arguments).encode(errors="surrogatepass")
    digest = hashlib.blake2b(arguments, digest_size=32).digest()
    return _What((tool, *further), digest, call.asked_on_loss)
