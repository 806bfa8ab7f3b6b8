"""A module: a node with typed streams, a config and skills."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
import random
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from dimos_streams.common.process.threads import in_executor
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.tasks import end_tasks, stray_cancellation
from dimos_streams.module.class_check import check_class, check_streams
from dimos_streams.module.config import ConfigFault, ModuleConfig, declared_config
from dimos_streams.module.run_context import RunContext
from dimos_streams.module.services import Clocks
from dimos_streams.module.state_text import state_text
from dimos_streams.skill import SkillInfo, SkillSpec, skills_of
from dimos_streams.streams import In, Out, StreamSpec, declared_streams

R = TypeVar("R")

WARNINGS = "warnings"
"""The topic of a module's state that has texts of what may be wrong with it, as a list: ``status`` shows them."""
_MAX_SHOWN = 200


class Module:
    """A node. Subclass it, annotate streams and ``config``, mark skills; override the hooks that you need.

    The constructor does no I/O and starts nothing; a host connects the streams and calls the hooks.
    """

    # For authors: what a subclass may declare.
    config: ModuleConfig
    packages: ClassVar[tuple[str, ...]] = ()
    """Python packages that the module imports only while it runs; ``check`` names those that are missing."""
    late_imports: ClassVar[tuple[str, ...]] = ()
    """Python modules that it always imports, but only while it runs: a process that forks many workers imports them
    once before it forks."""
    shared_outputs: ClassVar[frozenset[str]] = frozenset()
    """Outputs that may share their channel with other modules' outputs, because something else, such as a lease,
    keeps them from publishing at once."""
    exclusive_outputs: ClassVar[frozenset[str]] = frozenset()
    """Outputs on whose channel no other module may publish, since all of its messages have to pass this module."""

    stamped_as: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The inputs whose stamps an output's messages carry, by output: of several the first that is wired."""

    sees_channels: ClassVar[bool] = False
    """True if its context has the channels of the whole run: for modules that show whatever there is."""

    one_per_bus: ClassVar[bool] = False
    """True if it does its work for the whole bus, so that a second such module would do it twice: ``check`` refuses a
    blueprint with two."""

    skills_vary: ClassVar[bool] = False
    """True if it has skills that are known only while it runs, see ``offered_skills``: ``check`` does not warn of
    names that may mean one of them."""

    def __init__(
        self,
        config: ModuleConfig | Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        context: RunContext | None = None,
    ) -> None:
        """``config`` is the module's config or its values. Raises pydantic's ``ValidationError`` for bad ones."""
        expected = self.config_type()
        if not isinstance(config, ModuleConfig):
            config = expected.model_validate(dict(config or {}))
        elif not isinstance(config, expected):
            raise TypeError(f"{type(self).__name__} takes {expected.__name__}, not {type(config).__name__}")
        # For authors.
        self.config = config
        self.name = name or type(self).__name__
        self.context = context or RunContext()
        self.log = logging.getLogger(f"dimos_streams.module.{self.name.replace('/', '.')}")
        self.random = random.Random(_seed_for(self.context.seed, self.name))
        self.configured = config
        """The config that the module was made with, whatever has changed since."""
        # For hosts.
        self.state_json = ""
        """The state that the module reports of itself as JSON, see ``report_state``; empty if it reports none."""
        self.on_state: Callable[[], None] = lambda: None
        """Called when the reported state has changed."""
        self.on_skills: Callable[[], None] = lambda: None
        """Called when the skills that the module offers have changed."""
        self.live_values: Mapping[str, Any] = {}
        """The live settings that differ from ``configured``."""
        self.on_live: Callable[[], None] = lambda: None
        """Called when the live settings have changed."""
        self._health = "ok"
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._failed: asyncio.Future[None] | None = None
        for spec in self.streams().values():
            setattr(self, spec.name, (In if spec.direction == "in" else Out).from_spec(spec))

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse what would replace something that every module has. Raises ``TypeError``."""
        super().__init_subclass__(**more)
        check_class(cls, Module)

    @classmethod
    def streams(cls) -> Mapping[str, StreamSpec]:
        """The declared inputs and outputs by name."""
        return _streams(cls)  # type: ignore[arg-type]  # classes are hashable

    @classmethod
    def config_type(cls) -> type[ModuleConfig]:
        """The class that annotates ``config``. Raises ``TypeError`` if that is not a ``ModuleConfig``."""
        return declared_config(cls)  # type: ignore[arg-type]

    @classmethod
    def problems(cls, config: Any) -> Iterable[ConfigFault]:
        """Faults that no single setting shows, such as a name that refers to nothing. ``check`` calls this, and so
        does a run before it starts anything. ``config`` is of the class's config type."""
        return ()

    @classmethod
    def possible_faults(cls, config: Any) -> Iterable[ConfigFault]:
        """Return what may be wrong with a config, or only not be there yet, such as a file that somebody writes
        later. ``check`` warns of it, and so does a run at its start."""
        return ()

    @classmethod
    def listens_at(cls, config: Any) -> tuple[str, int] | None:
        """The host and the TCP port that a module of this config serves at; None if it serves nowhere, or at any free
        port. A live run keeps the port for it, also while it is restarted (``RunContext.port_is_kept``)."""
        return None

    @classmethod
    def skill_warnings(
        cls, config: Any, name: str, skills: Mapping[str, Sequence[SkillInfo]]
    ) -> Iterable[ConfigFault]:
        """The possible faults of the config of the module ``name`` that depend on ``skills``, the skills of each
        module of its blueprint by the module's name. ``check`` warns of them."""
        return ()

    @classmethod
    def needed_inputs(cls, config: Any) -> Iterable[str]:
        """The inputs that must be wired with this config, besides those that are declared as required."""
        return ()

    @classmethod
    def longest_gaps(cls, config: Any) -> Mapping[str, float]:
        """Return how long each input may be silent, in seconds, before the module counts it as lost; inputs without
        such a time are left out. ``check --live`` reports senders that are slower, and heartbeats say in place of the
        health ``"ok"`` which inputs are silent."""
        return {}

    @property
    def health(self) -> str:
        """A text for operators; anything but ``"ok"`` says what is wrong. Sent with each heartbeat. To set an empty
        text means ``"ok"``, and what is no text raises ``TypeError``."""
        return self._health

    @health.setter
    def health(self, text: str) -> None:
        if not isinstance(text, str):
            what = shortened(repr(text), _MAX_SHOWN)
            raise TypeError(f"the health of module {self.name!r} can't be {what}: set a text, as in str(…)")
        self._health = text or "ok"

    async def start(self) -> None:
        """Prepare: open devices, load models. The module counts as ready when this returns."""

    async def run(self) -> None:
        """The module's main task, after ``start``. Returning is fine; an exception is the module's failure."""

    async def stop(self) -> None:
        """Release what ``start`` took. Also called if ``start`` failed."""

    def on_settings(self, changed: frozenset[str]) -> None:
        """React to live settings (see ``Live``) that an operator has changed, named with dots between nested ones;
        ``config`` has the new values already. This is for what was made of the old values: code that reads ``config``
        where it is needed has nothing to do here.

        An exception refuses the change: its text is the operator's answer, and ``config`` is what it was.
        """

    @classmethod
    def configured_skills(cls, config: Any) -> Mapping[str, SkillSpec]:
        """The skills that a module with this config has from its start on, by name: those of its class, unless its
        config makes more. ``check`` and programs that draw a blueprint know them.

        Raises ``UserError`` for what the config can't make, which ``problems`` names too.
        """
        return skills_of(cls)

    def offered_skills(self) -> Mapping[str, SkillSpec]:
        """The skills that the module offers now, by name: those that its class and its config make.

        A module that learns while it runs what it can do adds them here, and calls ``offer_anew``.
        """
        return self.configured_skills(self.config)

    def offer_anew(self) -> None:
        """Tell callers at once that what ``offered_skills`` returns has changed; calls that run go on as they are.

        Raises ``TypeError`` for skills that can't be described; the previous ones are then still offered.
        """
        self.on_skills()

    def report_state(self, state: Mapping[str, Any], *, names: Collection[str] = ()) -> None:
        """Report the module's own state, by topics: at once, and in each heartbeat from now on.

        Operators' tools show it, without secrets, which keys and ``names`` can't be: modules and channels by which
        others find something. What was reported already is not reported again. Raises ``ValueError`` for what has no
        JSON form, or more than ``MAX_STATE`` bytes of it, and ``TypeError`` for what is no mapping.
        """
        text = state_text(self.name, state, names)
        if text != self.state_json:
            self.state_json = text
            self.on_state()

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run a task that ends with the module at the latest. Its exception is the module's failure, and so is the
        cancellation of something that it awaits; to cancel the task itself is fine."""
        task = asyncio.get_running_loop().create_task(work, name=f"{self.name}:{name}")
        self._tasks[task] = None
        task.add_done_callback(self._on_task_done)
        return task

    def clock_ahead(self, of: In[Any], than: In[Any]) -> Callable[[], int | None]:
        """Return a function that tells how far the clock that stamps one input is ahead of the one that stamps
        another, in µs.

        It returns 0 for inputs that one machine stamps, and None while the difference is not known: then the two
        can't be compared.
        """

        def ahead() -> int | None:
            one, other = (self.context.stamped_on.get(each.channel.partition("#")[0], "") for each in (of, than))
            if one == other:
                return 0
            clocks = self.context.services.get(Clocks)  # type: ignore[type-abstract]
            return None if clocks is None else clocks.ahead_us(one, other)

        return ahead

    async def run_blocking(self, function: Callable[..., R], *args: Any) -> R:
        """Run a function that blocks: in one of the 32 threads that its process has for this, or inline in virtual
        time, where nothing may depend on how fast a thread is. Raises what it raises, ``RuntimeError`` for a
        ``StopIteration``, and ``OSError`` if the system has no thread for it: then it does not run later, either.

        What blocks outside of it stops all modules of its process, and their heartbeats: their calls end as
        ``lost`` when none was heard for 1.5 s."""
        return await in_executor(None, function, *args)

    def failure(self) -> asyncio.Future[None]:
        """A future that gets the exception when one of the module's tasks fails; for hosts."""
        if self._failed is None:
            self._failed = asyncio.get_running_loop().create_future()
        return self._failed

    async def end_tasks(self) -> None:
        """Cancel all spawned tasks and wait for them; for hosts."""
        await end_tasks(*(task for task in self._tasks if task is not asyncio.current_task()))

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if (error := _failure_of(task)) is None:
            return
        failed = self.failure()
        if failed.done():
            self.log.error("%s failed too", task.get_name(), exc_info=error)
        else:
            failed.set_exception(error)


def _failure_of(task: asyncio.Task[Any]) -> BaseException | None:
    """Return the error by which a task has ended, or None if it returned or was cancelled itself."""
    if not task.cancelled():
        return task.exception()
    return None if task.cancelling() else stray_cancellation(task.get_name())


@functools.cache
def _streams(owner: Any) -> Mapping[str, StreamSpec]:
    streams = declared_streams(owner)
    check_streams(owner, streams)
    return streams


def _seed_for(seed: int, name: str) -> int:
    """The seed of a module: different for each name, the same in every process and Python."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")
