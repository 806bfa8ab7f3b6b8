"""Inputs on which nothing comes because what is sent on their topics has another type."""

from __future__ import annotations

import asyncio

from dimos_streams.bus import Bus
from dimos_streams.messages.codec import split_channel
from dimos_streams.module import Module
from dimos_streams.streams import In, StreamSpec
from dimos_streams.streams.conversion import other_type

FIRST_LOOK_S = 5.0
LOOK_S = 1.0
_LONGEST_PAUSE_S = 300.0


class UnfedInputWatch:
    """A watch over the inputs that modules can't do without, while nothing has ever come on them.

    Now and then, more and more seldom, it listens to all of the bus for a second. What it finds is in the module's
    log, once, and its health, until something comes.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._modules: list[Module] = []
        self._logged: dict[tuple[str, str], str] = {}
        self._shown: dict[tuple[str, str], str] = {}
        """The texts in the health of modules, by the module's name and the stream's."""
        self._task: asyncio.Task[None] | None = None

    def add(self, module: Module) -> None:
        """Look after a module's inputs, from now on at the pace of the beginning."""
        self._modules.append(module)
        self.stop()
        if any(_needed(each) for each in self._modules):
            self._task = asyncio.get_running_loop().create_task(self._run(), name="unfed input watch")

    def remove(self, module: Module) -> None:
        """Look after the module no more."""
        if module in self._modules:
            self._modules.remove(module)
        for found in (self._logged, self._shown):  # one of the same name may come
            for key in [key for key in found if key[0] == module.name]:
                del found[key]

    def stop(self) -> None:
        """Look no more. Stopping twice is fine."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        pause = FIRST_LOOK_S
        while True:
            await asyncio.sleep(pause)
            unfed = [
                (module, spec) for module in self._modules for spec in _needed(module) if _is_unfed(module, spec)
            ]
            if not unfed:
                return
            await self._look(unfed)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _look(self, unfed: list[tuple[Module, StreamSpec]]) -> None:
        topics = {_topic(module, spec) for module, spec in unfed}
        heard: dict[str, dict[str, None]] = {topic: {} for topic in topics}

        def hear(channel: str, data: bytes) -> None:
            topic, type_name = split_channel(channel)
            heard[topic][type_name or "an unknown type"] = None

        subscription = self._bus.subscribe_all(hear, wants=lambda channel: split_channel(channel)[0] in topics)
        try:
            await asyncio.sleep(LOOK_S)
        finally:
            subscription.close()
        for module, spec in unfed:
            topic = _topic(module, spec)
            others = [name for name in heard[topic] if name not in {cls.msg_name for cls in spec.messages}]
            if others and _is_unfed(module, spec):
                self._warn(module, spec, other_type(topic, others, f"{module.name}.{spec.name}", spec.messages))

    def _warn(self, module: Module, spec: StreamSpec, text: str) -> None:
        key = module.name, spec.name
        if self._logged.get(key) != text:
            self._logged[key] = text
            module.log.warning("%s", text)
        if module.health not in ("ok", self._shown.get(key)):
            return  # something else is wrong with it; this is shown at a later look, if it is still true
        if key not in self._shown:
            _stream(module, spec).on_message(lambda _: self._recover(module, key))
        module.health = self._shown[key] = text

    def _recover(self, module: Module, key: tuple[str, str]) -> None:
        if module.health == self._shown.get(key):
            module.health = "ok"


def _needed(module: Module) -> list[StreamSpec]:
    """Return the inputs that a module can't do without, and that receive all the time."""
    needed = frozenset(module.needed_inputs(module.config))
    return [
        spec
        for spec in module.streams().values()
        if spec.direction == "in" and not spec.on_demand and (spec.required or spec.name in needed)
    ]


def _is_unfed(module: Module, spec: StreamSpec) -> bool:
    stream = _stream(module, spec)
    return stream.wired and not stream.statistics().received


def _topic(module: Module, spec: StreamSpec) -> str:
    return split_channel(_stream(module, spec).channel)[0]


def _stream(module: Module, spec: StreamSpec) -> In:  # type: ignore[type-arg]
    stream: In = getattr(module, spec.name)  # type: ignore[type-arg]
    return stream
