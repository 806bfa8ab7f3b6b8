"""Takes changes of settings back of which nobody knows whether they were made, once their modules are heard again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.errors import SettingsError, SkillError, SkillUnavailableError

SETTLES_WITHIN_S = 60.0
"""A module that is not heard for so long is not asked any more."""
_LOOK_S = 0.2

_logger = logging.getLogger(__name__)


class UnknownChangeError(SkillUnavailableError):
    """A module was to change settings and was not heard afterwards: it may have done so, or may still do so."""


class AskModule(Protocol):
    """Has a module take or check settings."""

    def __call__(
        self, name: str, values: Mapping[str, str], caller: str, *, only_check: bool = False
    ) -> Awaitable[dict[str, Any]]:
        """What changes. Raises ``SkillError``."""


class UnsettledSettings:
    """Old values that modules are asked to take again. Use from the bus's loop only."""

    def __init__(self, ask: AskModule, alive: Callable[[str], bool], changing: asyncio.Lock) -> None:
        """``changing`` is held while anybody changes settings."""
        self._ask = ask
        self._alive = alive
        self._changing = changing
        self._owed: dict[str, dict[str, str]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def take_back(self, name: str, old: Mapping[str, str], caller: str) -> None:
        """Ask a module for old values as soon as it is heard.

        Of several for one setting, the first is the one that is known to have held.
        """
        begun = name in self._owed
        self._owed[name] = {**old, **self._owed.get(name, {})}
        if not begun:
            task = asyncio.get_running_loop().create_task(self._settle(name, caller), name=f"settings of {name}")
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

    def decided(self, name: str, settings: Iterable[str]) -> None:
        """An operator has given these settings other values since: they stay."""
        for path in settings:
            self._owed.get(name, {}).pop(path, None)

    async def stop(self) -> None:
        """Ask nobody any more. Twice is fine."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _settle(self, name: str, caller: str) -> None:
        until = clock.monotonic() + SETTLES_WITHIN_S
        try:
            while not await self._settled(name, caller):
                if clock.monotonic() > until:
                    _logger.error("nobody knows the settings of module %r: it is not heard", name)
                    return
                await asyncio.sleep(_LOOK_S)
            _logger.warning("module %r, which was not heard, has the settings that it had before", name)
        except SkillError as error:
            _logger.error("module %r may have new settings that were to be taken back: %s", name, error)
        finally:
            del self._owed[name]

    async def _settled(self, name: str, caller: str) -> bool:
        """Whether a module says that it has its old values; else it was asked for them if it is heard."""
        async with self._changing:
            old = self._owed[name]
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
