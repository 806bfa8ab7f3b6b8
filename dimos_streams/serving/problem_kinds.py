"""The kinds of problems that HTTP requests end with (RFC 9457): each has one status, one type and one title."""

from __future__ import annotations

from typing import NamedTuple

from dimos_streams import errors
from dimos_streams.client.problems import problem_name

TYPE = "urn:dimos-streams:problem:"


class ProblemKind(NamedTuple):
    """A kind of problem that programs distinguish. What is particular to one occurrence is in its ``detail``."""

    status: int
    name: str
    """The end of the type."""
    title: str

    @property
    def type(self) -> str:
        """The type, a URI."""
        return TYPE + self.name


BAD_HTTP = ProblemKind(400, "bad-http", "This is not HTTP")
BAD_JSON = ProblemKind(400, "bad-json", "The body is not JSON")
SKILL_ERROR = ProblemKind(400, problem_name(errors.SkillError), "The skill refused")
TOKEN_NEEDED = ProblemKind(401, "token-needed", "A token is needed")
FOREIGN_HOST = ProblemKind(403, "foreign-host", "Foreign host")
FOREIGN_ORIGIN = ProblemKind(403, "foreign-origin", "Foreign origin")
WATCH_ONLY = ProblemKind(403, "watch-only", "This run can only be watched")
NOT_FOUND = ProblemKind(404, "not-found", "Nothing is here")
UNKNOWN_SKILL = ProblemKind(404, problem_name(errors.UnknownSkillError), "No such skill")
UNKNOWN_AGENT = ProblemKind(404, problem_name(errors.UnknownAgentError), "No such agent")
UNKNOWN_ROBOT = ProblemKind(404, problem_name(errors.UnknownRobotError), "No such robot")
UNKNOWN_CALL = ProblemKind(404, problem_name(errors.UnknownCallError), "No such call")
METHOD_NOT_ALLOWED = ProblemKind(405, "method-not-allowed", "The method is not possible here")
TOO_SLOW = ProblemKind(408, "too-slow", "The body is too slow")
CALL_REJECTED = ProblemKind(409, problem_name(errors.CallRejectedError), "The call was refused")
KEY_USED = ProblemKind(409, problem_name(errors.KeyUsedError), "The key is another call's")
CONFLICT = ProblemKind(409, problem_name(errors.ConflictError), "It is not as it was seen")
TOO_LARGE = ProblemKind(413, "too-large", "The body is too large")
NOT_DECLARED_JSON = ProblemKind(415, "not-declared-json", "The body is not declared as JSON")
BAD_REQUEST = ProblemKind(422, problem_name(errors.BadRequestError), "The request is not of the right form")
BAD_ARGUMENTS = ProblemKind(422, problem_name(errors.SkillArgumentError), "The arguments do not fit the skill")
BAD_SETTINGS = ProblemKind(422, problem_name(errors.SettingsError), "The settings can't be so")
UPGRADE_NEEDED = ProblemKind(426, "upgrade-needed", "This is a WebSocket")
INTERNAL_ERROR = ProblemKind(500, "internal-error", "Internal error")
SKILL_UNAVAILABLE = ProblemKind(503, problem_name(errors.SkillUnavailableError), "The skill is not available")
TOO_MANY_BODIES = ProblemKind(503, "too-many-bodies", "Too many bodies at once")
TOO_MANY_CONNECTIONS = ProblemKind(503, "too-many-connections", "Too many connections at once")
HTTP_ERROR = ProblemKind(400, "http-error", "The request was refused")
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
KINDS = tuple(value for value in globals().values() if isinstance(value, ProblemKind))
_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(error: errors.SkillError) -> ProblemKind:
    """The kind of problem that a skill's error is."""
    return _BY_NAME[problem_name(type(error))]
