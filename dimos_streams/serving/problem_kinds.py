"""The kinds of problems that HTTP requests end with (RFC 9457): each has one status, one type and one title."""

from __future__ import annotations

from typing import NamedTuple

from dimos_streams import errors
from dimos_streams.client.problems import problem_name

TYPE = "urn:dimos-streams:problem:"


class Kind(NamedTuple):
    """A kind of problem that programs distinguish. What is particular to one occurrence is in its ``detail``."""

    status: int
    name: str
    """The end of the type."""
    title: str

    @property
    def type(self) -> str:
        """The type, a URI."""
        return TYPE + self.name


BAD_HTTP = Kind(400, "bad-http", "This is not HTTP")
BAD_JSON = Kind(400, "bad-json", "The body is not JSON")
SKILL_ERROR = Kind(400, problem_name(errors.SkillError), "The skill refused")
TOKEN_NEEDED = Kind(401, "token-needed", "A token is needed")
FOREIGN_HOST = Kind(403, "foreign-host", "Foreign host")
FOREIGN_ORIGIN = Kind(403, "foreign-origin", "Foreign origin")
WATCH_ONLY = Kind(403, "watch-only", "This run can only be watched")
NOT_FOUND = Kind(404, "not-found", "Nothing is here")
UNKNOWN_SKILL = Kind(404, problem_name(errors.UnknownSkillError), "No such skill")
UNKNOWN_AGENT = Kind(404, problem_name(errors.UnknownAgentError), "No such agent")
UNKNOWN_ROBOT = Kind(404, problem_name(errors.UnknownRobotError), "No such robot")
UNKNOWN_CALL = Kind(404, problem_name(errors.UnknownCallError), "No such call")
METHOD_NOT_ALLOWED = Kind(405, "method-not-allowed", "The method is not possible here")
TOO_SLOW = Kind(408, "too-slow", "The body is too slow")
CALL_REJECTED = Kind(409, problem_name(errors.CallRejectedError), "The call was refused")
KEY_USED = Kind(409, problem_name(errors.KeyUsedError), "The key is another call's")
CONFLICT = Kind(409, problem_name(errors.ConflictError), "It is not as it was seen")
TOO_LARGE = Kind(413, "too-large", "The body is too large")
NOT_DECLARED_JSON = Kind(415, "not-declared-json", "The body is not declared as JSON")
BAD_REQUEST = Kind(422, problem_name(errors.BadRequestError), "The request is not of the right form")
BAD_ARGUMENTS = Kind(422, problem_name(errors.SkillArgumentError), "The arguments do not fit the skill")
BAD_SETTINGS = Kind(422, problem_name(errors.SettingsError), "The settings can't be so")
UPGRADE_NEEDED = Kind(426, "upgrade-needed", "This is a WebSocket")
INTERNAL_ERROR = Kind(500, "internal-error", "Internal error")
SKILL_UNAVAILABLE = Kind(503, problem_name(errors.SkillUnavailableError), "The skill is not available")
TOO_MANY_BODIES = Kind(503, "too-many-bodies", "Too many bodies at once")
TOO_MANY_CONNECTIONS = Kind(503, "too-many-connections", "Too many connections at once")
HTTP_ERROR = Kind(400, "http-error", "The request was refused")
"""A refusal of the framework for a reason of its own, with any status."""

BEGINNING = (
    SKILL_ERROR,
    UNKNOWN_SKILL,
    UNKNOWN_AGENT,
    UNKNOWN_CALL,
    CALL_REJECTED,
    KEY_USED,
    CONFLICT,
    BAD_ARGUMENTS,
    SKILL_UNAVAILABLE,
)
"""The kinds with which a bridge answers a request for a call, besides those of all routes."""
KINDS = tuple(value for value in globals().values() if isinstance(value, Kind))
_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(error: errors.SkillError) -> Kind:
    """The kind of problem that a skill's error is."""
    return _BY_NAME[problem_name(type(error))]
