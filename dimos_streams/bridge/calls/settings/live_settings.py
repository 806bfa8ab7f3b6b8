"""Settings that operators change while their modules run. The only way to do that is ``POST /settings``.

Each module gets its part as a call of a skill that it does not offer, so that no model, skill or script can call it
by name. Each part is checked by its module before any takes its own: a module that hangs is never given an order that
it could carry out later, and what it had before is known.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from dimos_streams.bridge.calls.authority import Authority, by_model
from dimos_streams.bridge.calls.sending.call_sender import CallSender
from dimos_streams.bridge.calls.settings.pending_changes import PendingChanges, UnknownChangeError
from dimos_streams.bridge.calls.settings.rollback_file import ROLLBACK_WITHIN_S
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import know_settings, telling_name
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import CallRejectedError, SettingsError, SkillError, SkillUnavailableError, suggest
from dimos_streams.live_settings import shown_secret
from dimos_streams.operator.messages.settings import SettingChange, SettingsReport
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting.settings_change import SET, as_assignments
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS

_CLOSES_WITHIN_S = 5.0
"""Time, in seconds, within which a module must have changed its settings; it does so at once, unless it hangs."""
_SHOWN = 80
"""Maximum length of what is no assignment in an error, in characters."""
_ASKED_LATER = f"it is asked for its old values if it is heard within {ROLLBACK_WITHIN_S:g} s"


class LiveSettings:
    """Changes live settings of modules on an operator's order. Use from the bus's loop only."""

    def __init__(
        self,
        directory: ModuleDirectory,
        authority: Authority,
        sender: CallSender,
        new_id: Callable[[], str],
        rollbacks: Path | None,
    ) -> None:
        """``rollbacks`` is the file of what is to be rolled back, None for none."""
        self._directory = directory
        self._authority = authority
        self._sender = sender
        self._new_id = new_id
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """The lock of each module, held while somebody changes its settings. Nobody waits for what is asked of
        another module: a gate can be slowed down while a module that hangs is waited for."""
        self._pending = PendingChanges(self._ask, lambda name: not self._why_not(name), self._changing, rollbacks)

    def start(self) -> None:
        """Go on with what an earlier life of the bridge was to roll back."""
        self._pending.start()

    async def stop(self) -> None:
        """Ask modules for nothing more. Twice is fine."""
        await self._pending.stop()

    async def change(self, assignments: Iterable[str], caller: str) -> SettingsReport:
        """Carry out ``module.setting=value`` assignments, all or none.

        Raises ``SettingsError`` that names each assignment that is not possible, ``CallRejectedError`` for a caller
        that is no operator, and ``SkillError`` if a module does not do it.
        """
        assignments = tuple(assignments)
        _refuse_size(sum(len(assignment.encode()) for assignment in assignments))
        names = {assignment.partition(".")[0].strip() for assignment in assignments}
        await self._directory.meet(lambda: all(map(self._directory.module, names)))
        silent = {name: why for name in names if (why := self._why_not(name))}
        async with self._turn(names - silent.keys()):
            by_module, problems = await self._by_module(assignments, silent)
            self._leave_out_silent(by_module, problems)
            checks = (self._ask(name, values, caller, only_check=True) for name, values in by_module.items())
            outcomes = await asyncio.gather(*checks, return_exceptions=True)
            _raise_all(outcomes, problems)
            old = {name: _old(found) for name, found in zip(by_module, outcomes, strict=True)}
            _refuse_secrets(old)
            return await self._carry_out(by_module, old, caller)

    @contextlib.asynccontextmanager
    async def _turn(self, names: Collection[str]) -> AsyncGenerator[None, None]:
        """Wait until nobody else changes settings of these modules, and keep it so."""
        async with contextlib.AsyncExitStack() as turns:
            for name in sorted(names):  # in one order, so that no two wait for each other
                await turns.enter_async_context(self._changing[name])
            yield

    def _leave_out_silent(self, by_module: dict[str, dict[str, str]], problems: dict[str, str]) -> None:
        """Move the assignments of modules that have fallen silent while their turn was waited for to the problems."""
        for name in list(by_module):
            if why := self._why_not(name):
                problems.update({f"{name}.{path}": why for path in by_module.pop(name)})

    async def _carry_out(
        self, by_module: Mapping[str, Mapping[str, str]], old: Mapping[str, Mapping[str, str]], caller: str
    ) -> SettingsReport:
        done: list[SettingChange] = []
        try:
            for name, values in by_module.items():
                self._pending.begin(name, old[name], caller)
                try:
                    changed = await self._ask(name, values, caller)
                except SkillError as error:
                    raise await self._roll_back(done, old, name, caller, error) from error
                done += [SettingChange(module=name, setting=path, **change) for path, change in changed.items()]
            self._pending.commit(by_module)
        finally:  # whatever ends this too early, a bridge that stops for instance
            for name in by_module:
                self._pending.roll_back(name)
        return SettingsReport(changes=tuple(done))

    async def _roll_back(
        self,
        done: list[SettingChange],
        old: Mapping[str, Mapping[str, str]],
        failed: str,
        caller: str,
        why: SkillError,
    ) -> SkillError:
        """Give modules their old values again because another one ``failed``; return the error to raise. Those of
        which nobody knows whether they have them are left to be asked later."""
        left = []
        if isinstance(why, UnknownChangeError):
            left.append(_ASKED_LATER)
        else:
            self._pending.discard(failed)
        for name in dict.fromkeys(change.module for change in done):
            try:
                await self._ask(name, old[name], caller)
            except UnknownChangeError as error:
                left.append(f"{error}; {_ASKED_LATER}")
                continue
            except SkillError as error:
                left.append(f"{name} has the new values all the same: {error}")
            self._pending.discard(name)
        if not left:
            return why
        kind = SkillUnavailableError if isinstance(why, SkillUnavailableError) else SkillError
        return kind("; ".join([str(why), *left]))

    async def _by_module(
        self, assignments: Iterable[str], silent: Mapping[str, str]
    ) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
        """The assignments that modules can be asked for, by module and setting, and the problems of the others:
        nothing can be set in those that are ``silent``, for these reasons."""
        problems: dict[str, str] = {}
        found: dict[str, dict[str, str]] = {}
        for index, assignment in enumerate(assignments):
            await asyncio.sleep(0)  # to read YAML takes long: a stop waits for one value at most
            address, equals, text = assignment.partition("=")
            address = address.strip()
            name, _, path = address.partition(".")
            know_settings(text, telling_name(path.split(".")))  # before something is said of it
            if not (equals and name and path):
                problems[address or f"assignments.{index}"] = _no_assignment(address, equals, text)
            elif why := silent.get(name):
                problems[address] = why
            elif path in found.setdefault(name, {}):
                problems[address] = "it is given twice"
            elif why := shown_secret(path, text):
                problems[address] = why
            else:
                found[name][path] = text
        return found, problems

    def _why_not(self, name: str) -> str:
        """The reason why nothing can be set in a module; empty if something can."""
        module = self._directory.module(name)
        if module is None:
            known = [view.name for view in self._directory.modules()]
            return f"no module {name!r} runs{suggest(name, known)} (modules: {', '.join(known) or 'none'})"
        return "" if module.alive else f"module {name!r} is {module.health}"

    async def _ask(
        self, name: str, values: Mapping[str, str], caller: str, *, only_check: bool = False
    ) -> dict[str, Any]:
        """Have a module take or check its part; return what changes. Raises ``SkillError``."""
        arguments = {"assignments": dict(values), **({"only_check": True} if only_check else {})}
        _refuse_size(len(json_text({"caller": caller, "arguments": arguments}).encode()))
        call = CallState(
            call_id=self._new_id(),
            skill=SET,
            module=name,
            caller=caller,
            arguments=arguments,
            journalled=not only_check,
        )
        self._authority.check_caller(call)
        if by_model(call):
            raise CallRejectedError(f"settings are for operators: {caller!r} may not change them")
        self._sender.begin(call)
        if not await ends_within(_CLOSES_WITHIN_S, call.closed.wait()):
            raise _unheard_error(call, f"it has not answered within {_CLOSES_WITHIN_S:g} s", only_check)
        return _result_of(call, only_check)


def _refuse_size(size: int) -> None:
    """Raise ``SettingsError`` for settings of more bytes than a call has room for."""
    if size > MAX_ARGUMENTS:
        raise SettingsError({"": f"the settings have {size} bytes, {MAX_ARGUMENTS} are possible"})


def _no_assignment(address: str, equals: str, text: str) -> str:
    """Return the error for a text that is no assignment. Its value is left out: which setting it is for, and so
    whether it is secret, nobody knows."""
    given = shortened(repr(f"{address}{equals}{'…' if text else ''}"), _SHOWN)
    return f"this is not of the form module.setting=value (given: {given})"


def _old(changes: object) -> dict[str, str]:
    """The present values of the settings that would change according to a check."""
    assert isinstance(changes, dict)
    return as_assignments({path: change["old"] for path, change in changes.items()})


def _refuse_secrets(old: Mapping[str, Mapping[str, str]]) -> None:
    """Raise ``SettingsError`` if a module could not be given its old values again without a secret being shown."""
    given = ((name, path, text) for name, values in old.items() for path, text in values.items())
    problems = {f"{name}.{path}": why for name, path, text in given if (why := shown_secret(path, text))}
    if problems:
        raise SettingsError(problems)


def _unheard_error(call: CallState, why: str, only_check: bool) -> SkillUnavailableError:
    """The error for a module that was not heard. A check changes nothing, whatever became of it; whether an ordered
    change was made only the module knows."""
    if only_check:
        return SkillUnavailableError(f"module {call.module!r} has not changed its settings: {why}")
    return UnknownChangeError(f"nobody knows whether module {call.module!r} has changed its settings: {why}")


def _result_of(call: CallState, only_check: bool) -> dict[str, Any]:
    if call.outcome is Outcome.COMPLETED and isinstance(call.result, dict):
        return call.result
    if call.outcome is Outcome.FAILED and call.last is not None and call.last.data.get("error") == "SettingsError":
        problems = call.last.data.get("result")
        given = problems if isinstance(problems, dict) else {"": call.text}
        raise SettingsError({f"{call.module}.{path}" if path else call.module: text for path, text in given.items()})
    if call.outcome is Outcome.LOST:
        raise _unheard_error(call, f"{call.outcome}, {call.text}", only_check)
    raise SkillUnavailableError(f"module {call.module!r} has not changed its settings: {call.outcome}, {call.text}")


def _raise_all(outcomes: Iterable[object], before: Mapping[str, str]) -> None:
    """Raise what is wrong with the settings of any module as one error, with what was wrong ``before``."""
    problems = dict(before)
    unavailable: SkillUnavailableError | None = None
    for outcome in outcomes:
        if isinstance(outcome, SettingsError):
            problems = outcome.problems | problems
        elif isinstance(outcome, SkillUnavailableError):
            unavailable = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
    if problems:
        raise SettingsError(problems | ({"": str(unavailable)} if unavailable else {}))
    if unavailable is not None:
        raise unavailable
