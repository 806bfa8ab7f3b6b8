"""The problems of a hub, besides those of a bridge."""

from __future__ import annotations

from dimos_streams.fleet import protocol
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import Kind

FOREIGN_ROBOT = Kind(403, protocol.FOREIGN_ROBOT, "The token is another robot's, or nobody's")
FLEET_VERSION = Kind(409, protocol.FLEET_VERSION, "The hub speaks another version of the protocol")
FLEET_POSITION = Kind(409, protocol.FLEET_POSITION, "The batch begins behind what would be next")
FLEET_CONFLICT = Kind(409, protocol.FLEET_CONFLICT, "Another event is stored at that offset")
FLEET_ENTRY = Kind(422, protocol.FLEET_ENTRY, "An entry is no event")
HUB_UNAVAILABLE = Kind(503, protocol.HUB_UNAVAILABLE, "The hub can't reach its database")
ROBOT_NEEDED = Kind(409, "robot-needed", "Several robots could be meant")
COMMAND_REFUSED = Kind(409, "command-refused", "The hub does not take the command")
ROBOT_UNREACHABLE = Kind(503, "robot-unreachable", "The robot did not take the command")
ROBOT_ANSWER = Kind(502, "robot-answer", "The robot's answer can't be passed on")
ROBOT_SILENT = Kind(504, "robot-silent", "The robot has not answered")

KINDS = (*problem_kinds.KINDS, *(value for value in list(globals().values()) if isinstance(value, Kind)))
