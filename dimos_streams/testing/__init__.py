"""Helpers for tests of modules and skills, without processes or network."""

from dimos_streams.testing.faults.fault_bus import FaultBus, FaultCounts, Faults
from dimos_streams.testing.faults.fault_injection import FaultInjection
from dimos_streams.testing.faults.part import CrashablePart, PartDownError
from dimos_streams.testing.faults.part_gateway import PartGateway
from dimos_streams.testing.harness import ModuleHarness
from dimos_streams.testing.harness_call import HarnessCall
from dimos_streams.testing.mission import MissionRun
from dimos_streams.testing.mock_skill import MockSkill, mock_module, mock_skill
from dimos_streams.testing.model_reply import Reply
from dimos_streams.testing.model_server import ModelServer, RecordedRequest
from dimos_streams.testing.patterns import EventPattern, event

__all__ = [
    "CrashablePart",
    "EventPattern",
    "FaultBus",
    "FaultCounts",
    "FaultInjection",
    "Faults",
    "HarnessCall",
    "MissionRun",
    "MockSkill",
    "ModelServer",
    "ModuleHarness",
    "PartDownError",
    "PartGateway",
    "RecordedRequest",
    "Reply",
    "event",
    "mock_module",
    "mock_skill",
]
