"""A module whose skills are hosted, with its running calls."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from dimos_streams.module import Module
from dimos_streams.skill import SkillSpec, check_undos
from dimos_streams.tool_stream.hosting.inputs import what_inputs_lack
from dimos_streams.tool_stream.hosting.loss import LossWatch
from dimos_streams.tool_stream.hosting.running_call import RunningCall
from dimos_streams.tool_stream.hosting.settings_change import SET, settings_skill, state_json
from dimos_streams.tool_stream.liveness.heartbeat import module_said, stopping
from dimos_streams.tool_stream.liveness.skill_fragments import offered


@dataclass(slots=True)
class HostedModule:
    """A module of a host."""

    module: Module
    skills: dict[str, SkillSpec]
    """Its skills by public name."""
    descriptions: tuple[str, ...]
    """Its skills as JSON, one text for each heartbeat that is needed for them."""
    skills_version: str
    loss: LossWatch
    stops_for: str = ""
    """The reason for which it stops, and takes no more calls; empty while it takes them."""
    calls: dict[str, RunningCall] = field(default_factory=dict)

    @classmethod
    def of(cls, module: Module) -> HostedModule:
        """Return a module with no calls. Raises ``TypeError`` for skills that can't be described."""
        return cls(module, *_offer(module), LossWatch(module))

    def offer_anew(self) -> None:
        """Take up the skills that the module offers now. Raises ``TypeError`` as ``of`` does, and changes nothing
        then."""
        self.skills, self.descriptions, self.skills_version = _offer(self.module)

    @property
    def health(self) -> str:
        """The health that the module reports, unless it stops or a call of it does not end; one that reports nothing
        wrong may lack what its inputs are to bring."""
        if self.stops_for:
            return stopping(self.stops_for)
        if self.loss.runaway:
            cut_off = "; velocities are cut off" if self.loss.consequence else ""
            return f"call {self.loss.runaway} does not end{cut_off}"
        own = module_said(self.module.health)
        return (what_inputs_lack(self.module) or own) if own == "ok" else own

    @property
    def state_json(self) -> str:
        """The state that the module reports, and what of its settings differs from its blueprint."""
        return state_json(self.module)


def _offer(module: Module) -> tuple[dict[str, SkillSpec], tuple[str, ...], str]:
    """Return the skills of a module by public name, their descriptions, and the version of these."""
    prefix = module.context.namespace
    skills = module.offered_skills()
    check_undos(type(module).__name__, skills)
    specs = skills.values()
    infos = [spec.info(prefix) for spec in specs]
    descriptions = offered(module.name, infos)
    version = hashlib.sha256("".join(descriptions).encode()).hexdigest()[:12]
    named = {info.name: spec for info, spec in zip(infos, specs, strict=True)}
    named[SET] = settings_skill()  # which is not described: nobody finds it by its name
    return named, descriptions, version
