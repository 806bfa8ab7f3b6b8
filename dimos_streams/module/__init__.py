"""Modules: nodes with typed streams, a config and skills."""

from dimos_streams.module.config import ConfigFault, ModuleConfig, OfRobot
from dimos_streams.module.module import WARNINGS, Module
from dimos_streams.module.run_context import LOSS_BOUND_S, RunContext
from dimos_streams.module.services import Clocks, Services
from dimos_streams.module.state_text import MAX_STATE

__all__ = [
    "LOSS_BOUND_S",
    "MAX_STATE",
    "WARNINGS",
    "Clocks",
    "ConfigFault",
    "Module",
    "ModuleConfig",
    "OfRobot",
    "RunContext",
    "Services",
]
