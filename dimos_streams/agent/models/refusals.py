"""What servers refuse: which failures may pass, and what a server is not sent again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal

from dimos_streams import clock

_MAY_PASS = frozenset({408, 409, 425, 429})
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_REFUSALS = frozenset({400, 404, 415, 422, 500, 501})
_ABOUT_IMAGES = re.compile(r"\b(image|images|image_url|vision|mmproj)\b|multi-?modal", re.IGNORECASE)
_ABOUT_ALTERNATION = re.compile(r"\balternat(?:e|es|ing|ion)\b", re.IGNORECASE)
_ABOUT_ROLES = re.compile(r"after role ['\"]?tool\b", re.IGNORECASE)


def may_pass(status: int, code: object = None) -> bool:
    """Whether the same request may succeed later. ``code`` is the server's word for it: spent money stays spent."""
    return (status in _MAY_PASS or status >= 500) and code not in _SPENT


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the server asks for: a number or a date, or milliseconds in OpenAI's own header."""
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
    except ValueError:
        return None


@dataclass(slots=True)
class Habits:
    """How a server wants to be asked; learnt from what it refuses."""

    images: bool = True
    usage: bool = True
    """Whether it is asked for its usage."""
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    user_after_tool: bool = True
    alternate: bool = False
    """Whether neighbouring messages of users are joined, whoever speaks in them."""

    def learn(self, status: int, text: str, *, images_sent: bool) -> str:
        """Take a refusal to heart: what is done otherwise from now on; empty if it teaches nothing."""
        if status not in _REFUSALS:
            return ""
        if self.usage and ("stream_options" in text or "include_usage" in text):
            self.usage = False
            return "usage is not asked for"
        if self.tokens_field == "max_tokens" and "max_completion_tokens" in text:
            self.tokens_field = "max_completion_tokens"
            return "max_completion_tokens is sent instead of max_tokens"
        if self.user_after_tool and _ABOUT_ROLES.search(text):
            self.user_after_tool = False
            return "an answer is put between results and users"
        if not self.alternate and _ABOUT_ALTERNATION.search(text):
            self.alternate = True
            return "neighbouring messages of users are joined"
        if self.images and images_sent and _ABOUT_IMAGES.search(text):
            self.images = False
            return "images are not sent"
        return ""
