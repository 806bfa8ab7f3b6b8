"""Tells what the failure of a model's server means: whether it may pass, and whether the request was too long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from dimos_streams import clock

_MAY_PASS = frozenset({408, 409, 425, 429})
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""The codes by which servers say that there is no money left."""
REFUSALS = frozenset({400, 404, 413, 415, 422, 500, 501})
"""The statuses with which servers refuse a request that they could take if it were another one."""
_TOO_LONG = re.compile(
    r"context[_ -]?(length|size|window)|maximum context|\bn_ctx\b|string_above_max_length"
    r"|(prompt|input|inputs|request|messages?|conversation)( tokens)? (is|are|was|were) too (long|large)"
    r"|too many (input |prompt )?tokens|reduce the length|(request entity|payload) too large"
    r"|(input|prompt|token)s?( token)?( count| length)?\b.{0,60}\bexceed|exceeds? .{0,40}(number of|token|context)",
    re.IGNORECASE,
)


def may_pass(status: int, code: object = None) -> bool:
    """Return whether the same request may succeed later. ``code`` is the server's word for it: spent money stays
    spent."""
    return (status in _MAY_PASS or status >= 500) and code not in SPENT


def is_too_long(status: int | None, code: object, text: str) -> bool:
    """Return whether a request was refused because it is longer than what the model can look at. ``status`` is None
    for a failure that came in a stream."""
    if status == 413 or code in ("context_length_exceeded", "exceed_context_size_error"):
        return True
    return (status is None or status in REFUSALS) and _TOO_LONG.search(text) is not None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait, as the server asks for (a number or a date, or milliseconds in OpenAI's own header), or
    None."""
    milliseconds, text = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if text is None:
            return None
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text or "").timestamp() - clock.utime() / 1e6)
    except (ValueError, OverflowError):  # OverflowError: of a time zone that is no number of hours and minutes
        return None
