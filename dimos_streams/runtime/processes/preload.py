"""The modules that every worker needs, imported once by the forkserver: workers start fast and share its memory."""

from __future__ import annotations

import importlib
import importlib.util

from dimos_streams.common.process.collector import collect_seldom

_SHARED = (
    "numpy",
    "lcm",
    "logging.handlers",
    "dimos_streams.blueprint.classes",
    "dimos_streams.bus.lcm.bus",
    "dimos_streams.messages.geometry_msgs",
    "dimos_streams.messages.nav_msgs",
    "dimos_streams.messages.sensor_msgs",
    "dimos_streams.messages.vision_msgs",
    "dimos_streams.runtime.module_host",
    "dimos_streams.runtime.processes.worker",
    "dimos_streams.tool_stream.arguments.bounded_validator",
)

collect_seldom()
for _name in _SHARED:
    importlib.import_module(_name)
if importlib.util.find_spec("uvloop"):
    importlib.import_module("uvloop")
