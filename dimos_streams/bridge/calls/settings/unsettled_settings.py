"""Takes back changes of settings of which nobody knows whether they were made, once their modules are heard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.bridge.calls.settings import owed_settings
from dimos_streams.bridge.calls.settings.owed_settings import OwedSettings
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.errors import SettingsError, SkillError, SkillUnavailableError

SETTLES_WITHIN_S = 60.0
"""Time, in seconds, after which a module that was not heard is not asked any more."""
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


class UnsettledSettings:
    """Old values of settings that are changed just now, and those that modules are asked to take again. Use from the
    bus's loop only."""

    def __init__(
        self, ask: AskModule, alive: Callable[[str], bool], changing: Mapping[str, asyncio.Lock], path: Path | None
    ) -> None:
        """``changing`` has the lock of each module, held while anybody changes its settings; ``path`` is the file
        that keeps what is owed over restarts, None for none."""
        self._ask = ask
        self._alive = alive
        self._changing = changing
        self._path = path
        self._begun: dict[str, OwedSettings] = {}
        """The old values of changes that have begun and not ended, by module."""
        self._owed: dict[str, OwedSettings] = {}
        """The old values that modules are asked for, by module."""
        self._until: dict[str, float] = {}
        """Times on the monotonic clock until which these modules are waited for."""
        self._stopped = False
        self._tasks = OwnedTasks()

    def start(self) -> None:
        """Take up what an earlier life of the bridge has left."""
        latest = _settles_until()
        for owed in owed_settings.load(self._path) if self._path is not None else ():
            if owed.until_utime > clock.utime():
                self._owe(owed.model_copy(update={"until_utime": min(owed.until_utime, latest)}))
            else:
                _log_unknown(owed.module)
        self._save()

    def begin(self, name: str, old: Mapping[str, str], caller: str) -> None:
        """Note the old values of settings that a module is asked to change from now on: if the bridge does not live
        to know what becomes of that, the next one takes it back."""
        if old:
            self._begun[name] = OwedSettings(
                module=name, settings=dict(old), caller=caller, until_utime=_settles_until()
            )
            self._save()

    def end(self, name: str) -> None:
        """Forget a change that was begun: it is known what has become of it."""
        if self._begun.pop(name, None) is not None:
            self._save()

    def decided(self, name: str, settings: Collection[str]) -> None:
        """End a change that was made. The old values of its settings are forgotten, also those that were owed: what
        an operator has decided stays."""
        owed = self._owed.get(name)
        if owed is not None:
            left = {path: text for path, text in owed.settings.items() if path not in settings}
            self._owed[name] = owed.model_copy(update={"settings": left})
        if self._begun.pop(name, None) is not None or owed is not None:
            self._save()

    def take_back(self, name: str) -> None:
        """Ask a module for the old values of a change that was begun and has not ended, as soon as it is heard."""
        if name in self._begun:
            owed = self._with_begun(name).model_copy(update={"until_utime": _settles_until()})
            del self._begun[name]
            self._owe(owed)
            self._save()

    async def stop(self) -> None:
        """Ask nobody any more in this life, and leave the file to the next one. Twice is fine."""
        self._stopped = True
        await self._tasks.end()

    def _with_begun(self, name: str) -> OwedSettings:
        """All old values of a module. Of several for one setting the first counts: it is the one that is known to
        have held."""
        begun, owed = self._begun.get(name), self._owed.get(name)
        if begun is None or owed is None:
            return begun or self._owed[name]
        return begun.model_copy(update={"settings": {**begun.settings, **owed.settings}})

    def _owe(self, owed: OwedSettings) -> None:
        """Ask a module for old values, from now on or, if it is asked already, for these."""
        name = owed.module
        is_asked = name in self._owed
        self._owed[name] = owed
        self._until[name] = clock.monotonic() + (owed.until_utime - clock.utime()) / 1e6
        if is_asked or self._stopped:
            return
        self._tasks.spawn(self._settle(name), name=f"settings of {name}")

    async def _settle(self, name: str) -> None:
        """Ask a module for its old values until it has them or the time is up. Unless this is cancelled, nothing is
        owed afterwards."""
        try:
            while not await self._settled(name):
                if clock.monotonic() > self._until[name]:
                    _log_unknown(name)
                    break
                await asyncio.sleep(_LOOK_S)
            else:
                _logger.warning("module %r, whose settings nobody knew, has those that it had before", name)
        except SkillError as error:
            _logger.error("module %r may have new settings that were to be taken back: %s", name, error)
        except Exception:  # else it would be owed for ever, and never asked for again
            _logger.exception("module %r may have new settings that were to be taken back", name)
        del self._owed[name], self._until[name]
        self._save()

    def _save(self) -> None:
        """Write down what is owed. This waits for the disk, because it is little and rare, and must not be lost."""
        if self._path is not None and not self._stopped:
            owed_settings.save(self._path, map(self._with_begun, {**self._owed, **self._begun}))

    async def _settled(self, name: str) -> bool:
        """Return whether a module has its old values; one that is heard and has others is first asked for them."""
        async with self._changing[name]:
            old, caller = self._owed[name].settings, self._owed[name].caller
            if not self._alive(name):
                return not old
            try:
                if not old or not await self._ask(name, old, caller, only_check=True):
                    return True
                await self._ask(name, old, caller)
            except SettingsError:
                raise
            except SkillUnavailableError as error:
                _logger.warning("settings are not taken back yet: %s", error)
                return False
            return True


def _settles_until() -> int:
    """The time, µs since the Unix epoch, until which a module is waited for from now on."""
    return clock.utime() + round(SETTLES_WITHIN_S * 1e6)


def _log_unknown(name: str) -> None:
    _logger.error("nobody knows the settings of module %r: it is not heard", name)
