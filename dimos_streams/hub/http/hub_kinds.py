"""The problems of a hub, besides those of a bridge."""

from __future__ import annotations

from dimos_streams.fleet import protocol
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import ProblemKind

FOREIGN_ROBOT = ProblemKind(403, protocol.FOREIGN_ROBOT, "The token is another robot's, or nobody's")
FLEET_VERSION = ProblemKind(409, protocol.FLEET_VERSION, "The hub speaks another version of the protocol")
FLEET_POSITION = ProblemKind(409, protocol.FLEET_POSITION, "The batch begins behind what would be next")
FLEET_CONFLICT = ProblemKind(409, protocol.FLEET_CONFLICT, "Another event is stored at that offset")
FLEET_ENTRY = ProblemKind(422, protocol.FLEET_ENTRY, "An entry is no event")
HUB_UNAVAILABLE = ProblemKind(503, protocol.HUB_UNAVAILABLE, "The hub can't reach its database")
ROBOT_NEEDED = ProblemKind(409, "robot-needed", "Several robots could be meant")
COMMAND_REFUSED = ProblemKind(409, "command-refused", "The hub does not take the command")
ROBOT_UNREACHABLE = ProblemKind(503, "robot-unreachable", "The robot did not take the command")
ROBOT_ANSWER = ProblemKind(502, "robot-answer", "The robot's answer can't be passed on")
ROBOT_SILENT = ProblemKind(504, "robot-silent", "The robot has not answered")

KINDS = (*problem_kinds.KINDS, *(value for value in list(globals().values()) if isinstance(value, ProblemKind)))
