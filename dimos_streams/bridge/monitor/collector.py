"""Puts the state of a run together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.monitor.scenes import Scenes
from dimos_streams.bridge.monitor.sources import Sources
from dimos_streams.operator.agents import AgentView, agents_among
from dimos_streams.operator.messages.run import CallLine, ModuleLine, MonitorSnapshot, SkillLine
from dimos_streams.operator.reporting import shortened
from dimos_streams.tool_stream.liveness.called_skills import called_skills
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S, ModuleView
from dimos_streams.tool_stream.review import review_skill

_MAX_CALLS = 200
_MAX_TEXT = 500
_MAX_ARGUMENT = 300
_MAX_FIELDS = 32


class Collector:
    """Reads the sources of a run. What has not changed costs only a comparison."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._scenes = Scenes()
        self._skills_of: object = None
        self.skills: tuple[SkillLine, ...] = ()
        """The skills as of the last snapshot: of each name the one that is called."""
        self.agents: tuple[AgentView, ...] = ()
        """The agents as of the last snapshot, also those whose skills are not called."""

    def snapshot(self, watchers: int) -> MonitorSnapshot:
        """The state now."""
        sources = self._sources
        modules, agents = sources.modules(), sources.agents()
        return MonitorSnapshot(
            agents=dict(agents),
            calls=tuple(_call_line(call) for call in sources.open_calls()[:_MAX_CALLS] if call.journalled),
            leases=sources.leases(),
            skills=self._skill_lines(modules),
            modules=tuple(_module_line(module) for module in modules),
            robots=sources.robots(module.name for module in modules),
            watchers=watchers,
            stopped=sources.stopped(),
            not_ending=tuple(sources.lingering()),
            scene=self._scenes.of(modules, agents),
        )

    def _skill_lines(self, modules: list[ModuleView]) -> tuple[SkillLine, ...]:
        key = [(module.name, module.alive, module.age_s > ALIVE_S, module.skills) for module in modules]
        if key != self._skills_of:
            self._skills_of = key
            lines = [line for module in modules for line in _lines_of(module)]
            called = {(each.module.name, each.info.name) for each in called_skills(modules)}
            self.skills = tuple(line for line in lines if (line.module, line.name) in called)
            self.agents = tuple(agents_among(lines))
        return self.skills


def _lines_of(module: ModuleView) -> Iterator[SkillLine]:
    is_agent = review_skill(module.skills) is not None
    for info in module.skills:
        if info.audience != "bridge":
            yield SkillLine(
                name=info.name,
                module=module.name,
                description=info.description[:_MAX_TEXT],
                available=module.alive,
                audience=info.audience,
                agent=is_agent,
            )


def _call_line(call: CallState) -> CallLine:
    return CallLine(
        call_id=call.call_id,
        skill=call.skill,
        module=call.module,
        caller=call.caller,
        parent=call.parent,
        arguments=shortened(dict(call.arguments), _MAX_ARGUMENT),
        state="open" if call.state == "open" else "requested",
        text=call.text[:_MAX_TEXT],
        progress=_plain(call.progress),
        resources=call.resources,
        requested_utime=call.requested_utime,
    )


def _plain(progress: Mapping[str, Any]) -> dict[str, Any]:
    plain = (item for item in progress.items() if item[1] is None or isinstance(item[1], int | float | str))
    return {
        shortened(name, _MAX_ARGUMENT): shortened(value, _MAX_ARGUMENT) for name, value in islice(plain, _MAX_FIELDS)
    }


def _module_line(module: ModuleView) -> ModuleLine:
    # How long it has been silent would make a new state of each moment.
    health = module.health if module.alive else module.health.partition(":")[0]
    return ModuleLine(
        name=module.name,
        pid=module.pid,
        health=health,
        alive=module.alive,
        state=dict(module.state),
    )
