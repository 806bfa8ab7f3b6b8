"""Changes of settings that are not yet committed. If nobody knows whether a module has made one, it is rolled back as
soon as the module is heard again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.bridge.calls.settings import rollback_file
from dimos_streams.bridge.calls.settings.rollback_file import Rollback
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.errors import SkillError, SkillUnavailableError

_LOOK_S = 0.2

_logger = logging.getLogger(__name__)


class UnknownChangeError(SkillUnavailableError):
    """Raised if a module was to change settings and was not heard afterwards: it may have done so, or still do so."""


class AskModule(Protocol):
    """Has a module take or check settings."""

    def __call__(
        self, name: str, values: Mapping[str, str], caller: str, *, only_check: bool = False
    ) -> Awaitable[dict[str, Any]]:
        """Return what changes. Raises ``SkillError``."""


class PendingChanges:
    """The changes that have begun and are neither committed nor rolled back, by the old values that they replace. Use
    from the bus's loop only."""

    def __init__(
        self, ask: AskModule, alive: Callable[[str], bool], changing: Mapping[str, asyncio.Lock], path: Path | None
    ) -> None:
        """``changing`` has the lock of each module, held while anybody changes its settings; ``path`` is the file
        that keeps rollbacks over restarts, None for none."""
        self._ask = ask
        self._alive = alive
        self._changing = changing
        self._path = path
        self._pending: dict[str, Rollback] = {}
        """The rollbacks of changes that are pending, by module: nobody asks for them yet."""
        self._rollbacks: dict[str, Rollback] = {}
        """The rollbacks under way, by module: it is asked for its old values."""
        self._until: dict[str, float] = {}
        """Times on the monotonic clock until which these modules are waited for."""
        self._stopped = False
        self._tasks = OwnedTasks()

    def start(self) -> None:
        """Take up what an earlier life of the bridge has left."""
        for rollback in rollback_file.load(self._path) if self._path is not None else ():
            if (left_s := rollback.left_s()) > 0:
                self._start(rollback.waited_for(left_s))
            else:
                _log_unknown(rollback.module)
        self._save()

    def begin(self, name: str, old: Mapping[str, str], caller: str) -> None:
        """Note the old values of settings that a module is asked to change from now on: if the bridge does not live
        to know what becomes of that, the next one rolls it back."""
        if old:
            self._pending[name] = Rollback(module=name, settings=dict(old), caller=caller).waited_for()
            self._save()

    def discard(self, name: str) -> None:
        """Forget a pending change: it was not made, or its module has the old values again."""
        if self._pending.pop(name, None) is not None:
            self._save()

    def commit(self, settings: Mapping[str, Collection[str]]) -> None:
        """Keep a change that was made, by the paths of its settings in each module. They are rolled back no more,
        whatever was to become of them: what an operator has decided stays."""
        for name, paths in settings.items():
            if (rollback := self._rollbacks.get(name)) is not None:
                left = {path: text for path, text in rollback.settings.items() if path not in paths}
                self._rollbacks[name] = rollback.model_copy(update={"settings": left})
            self._pending.pop(name, None)
        self._save(decided=True)

    def roll_back(self, name: str) -> None:
        """Ask a module for the old values of a change that is still pending, as soon as it is heard."""
        if name in self._pending:
            rollback = self._with_pending(name).waited_for()
            del self._pending[name]
            self._start(rollback)
            self._save()

    async def stop(self) -> None:
        """Ask nobody any more in this life, and leave the file to the next one. Twice is fine."""
        self._stopped = True
        await self._tasks.end()

    def _with_pending(self, name: str) -> Rollback:
        """The rollback of all changes of a module. Of several old values of one setting the first counts: it is the
        one that is known to have held."""
        pending, rollback = self._pending.get(name), self._rollbacks.get(name)
        if pending is None or rollback is None:
            return pending or self._rollbacks[name]
        return pending.model_copy(update={"settings": {**pending.settings, **rollback.settings}})

    def _start(self, rollback: Rollback) -> None:
        """Ask a module for old values, from now on or, if it is asked already, for these."""
        name = rollback.module
        is_asked = name in self._rollbacks
        self._rollbacks[name] = rollback
        self._until[name] = clock.monotonic() + rollback.left_s()
        if is_asked or self._stopped:
            return
        self._tasks.spawn(self._finish(name), name=f"settings of {name}")

    async def _finish(self, name: str) -> None:
        """Ask a module for its old values until it has them or the time is up. Unless this is cancelled, its
        rollback has ended then."""
        try:
            while not await self._attempt(name):
                if clock.monotonic() > self._until[name]:
                    _log_unknown(name)
                    break
                await asyncio.sleep(_LOOK_S)
            else:
                _log_end(self._rollbacks[name])
        except SkillError as error:
            _logger.error("module %r may have new settings that were to be taken back: %s", name, error)
        except Exception:  # else the rollback would never end, and no other one begin
            _logger.exception("module %r may have new settings that were to be taken back", name)
        del self._rollbacks[name], self._until[name]
        self._save()

    def _save(self, *, decided: bool = False) -> None:
        """Write down what is to be rolled back; ``decided`` if an operator has decided on some. This waits for the
        disk, because it is little and rare, and must not be lost."""
        if self._path is not None and not self._stopped:
            left = map(self._with_pending, {**self._rollbacks, **self._pending})
            rollback_file.save(self._path, left, decided=decided)

    async def _attempt(self, name: str) -> bool:
        """Return whether a module has its old values; one that is heard and has others is first asked for them."""
        async with self._changing[name]:
            old, caller = self._rollbacks[name].settings, self._rollbacks[name].caller
            if not self._alive(name):
                return not old
            try:
                if not old or not await self._ask(name, old, caller, only_check=True):
                    return True
                await self._ask(name, old, caller)
            except SkillUnavailableError as error:
                _logger.warning("settings are not taken back yet: %s", error)
                return False
            return True


def _log_end(rollback: Rollback) -> None:
    if rollback.settings:
        _logger.warning("module %r, whose settings nobody knew, has those that it had before", rollback.module)
    else:
        _logger.info("module %r keeps the settings on which an operator has decided meanwhile", rollback.module)


def _log_unknown(name: str) -> None:
    _logger.error("nobody knows the settings of module %r: it is not heard", name)
