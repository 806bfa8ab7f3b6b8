"""Takes back changes of settings of which nobody knows whether they were made, once their modules are heard again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.bridge.calls.settings import owed_settings
from dimos_streams.bridge.calls.settings.owed_settings import OwedSettings
from dimos_streams.common.tasks import end_tasks_silently
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
    """Old values that modules are asked to take again. Use from the bus's loop only."""

    def __init__(
        self, ask: AskModule, alive: Callable[[str], bool], changing: Mapping[str, asyncio.Lock], path: Path | None
    ) -> None:
        """``changing`` has the lock of each module, held while anybody changes its settings; ``path`` is the file
        that keeps what is owed over restarts, None for none."""
        self._ask = ask
        self._alive = alive
        self._changing = changing
        self._path = path
        self._owed: dict[str, OwedSettings] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def start(self) -> None:
        """Take up what an earlier life of the bridge has left."""
        latest = clock.utime() + round(SETTLES_WITHIN_S * 1e6)
        for owed in owed_settings.load(self._path) if self._path is not None else ():
            if owed.until_utime > clock.utime():
                self._owe(owed.model_copy(update={"until_utime": min(owed.until_utime, latest)}))
            else:
                _log_unknown(owed.module)
        self._save()

    def take_back(self, name: str, old: Mapping[str, str], caller: str) -> None:
        """Ask a module for old values as soon as it is heard.

        Of several old values for one setting the first counts: it is the one that is known to have held.
        """
        known = self._owed.get(name)
        if known is None:
            until = clock.utime() + round(SETTLES_WITHIN_S * 1e6)
            self._owe(OwedSettings(module=name, settings=dict(old), caller=caller, until_utime=until))
        else:
            self._owed[name] = known.model_copy(update={"settings": {**old, **known.settings}})
        self._save()

    def decided(self, name: str, settings: Collection[str]) -> None:
        """Forget the old values of settings to which an operator has given other values since: those stay."""
        owed = self._owed.get(name)
        if owed is not None:
            left = {path: text for path, text in owed.settings.items() if path not in settings}
            self._owed[name] = owed.model_copy(update={"settings": left})
            self._save()

    async def stop(self) -> None:
        """Ask nobody any more in this life. Twice is fine."""
        tasks = list(self._tasks)
        await end_tasks_silently(*tasks)

    def _owe(self, owed: OwedSettings) -> None:
        self._owed[owed.module] = owed
        task = asyncio.get_running_loop().create_task(self._settle(owed.module), name=f"settings of {owed.module}")
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _settle(self, name: str) -> None:
        """Ask a module for its old values until it has them or the time is up. Unless this is cancelled, nothing is
        owed afterwards."""
        until = clock.monotonic() + (self._owed[name].until_utime - clock.utime()) / 1e6
        try:
            while not await self._settled(name):
                if clock.monotonic() > until:
                    _log_unknown(name)
                    break
                await asyncio.sleep(_LOOK_S)
            else:
                _logger.warning("module %r, which was not heard, has the settings that it had before", name)
        except SkillError as error:
            _logger.error("module %r may have new settings that were to be taken back: %s", name, error)
        except Exception:  # else it would be owed for ever, and never asked for again
            _logger.exception("module %r may have new settings that were to be taken back", name)
        del self._owed[name]
        self._save()

    def _save(self) -> None:
        """Write down what is owed. This waits for the disk, because it is little and rare, and must not be lost."""
        if self._path is not None:
            owed_settings.save(self._path, self._owed.values())

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


def _log_unknown(name: str) -> None:
    _logger.error("nobody knows the settings of module %r: it is not heard", name)
