"""The kinds of problems that HTTP requests end with (RFC 9457): each has one status, one type and one title."""

from __future__ import annotations

from typing import NamedTuple

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
SKILL_ERROR = Kind(400, "skill-error", "The skill refused")
TOKEN_NEEDED = Kind(401, "token-needed", "A token is needed")
FOREIGN_HOST = Kind(403, "foreign-host", "Foreign host")
FOREIGN_ORIGIN = Kind(403, "foreign-origin", "Foreign origin")
WATCH_ONLY = Kind(403, "watch-only", "This run can only be watched")
NOT_FOUND = Kind(404, "not-found", "Nothing is here")
UNKNOWN_SKILL = Kind(404, "unknown-skill", "No such skill")
UNKNOWN_AGENT = Kind(404, "unknown-agent", "No such agent")
UNKNOWN_ROBOT = Kind(404, "unknown-robot", "No such robot")
UNKNOWN_CALL = Kind(404, "unknown-call", "No such call")
METHOD_NOT_ALLOWED = Kind(405, "method-not-allowed", "The method is not possible here")
TOO_SLOW = Kind(408, "too-slow", "The body is too slow")
CALL_REJECTED = Kind(409, "call-rejected", "The call was refused")
CONFLICT = Kind(409, "conflict", "It is not as it was seen")
TOO_LARGE = Kind(413, "too-large", "The body is too large")
NOT_DECLARED_JSON = Kind(415, "not-declared-json", "The body is not declared as JSON")
BAD_REQUEST = Kind(422, "bad-request", "The request is not of the right form")
BAD_ARGUMENTS = Kind(422, "bad-arguments", "The arguments do not fit the skill")
BAD_SETTINGS = Kind(422, "bad-settings", "The settings can't be so")
INTERNAL_ERROR = Kind(500, "internal-error", "Internal error")
SKILL_UNAVAILABLE = Kind(503, "skill-unavailable", "The skill is not available")
TOO_MANY_BODIES = Kind(503, "too-many-bodies", "Too many bodies at once")
TOO_MANY_CONNECTIONS = Kind(503, "too-many-connections", "Too many connections at once")
HTTP_ERROR = Kind(400, "http-error", "The request was refused")
"""A refusal of the framework for a reason of its own, with any status."""

KINDS = tuple(value for value in globals().values() if isinstance(value, Kind))
