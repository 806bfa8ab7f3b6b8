"""Which answers of HTTP servers are not read, and what is said of them."""

from __future__ import annotations

import pytest

from dimos_streams.common.http.unread_answers import why_unread
from dimos_streams.common.secrets import know

ASKED = "http://one/v1/chat/completions"


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {}),
        (200, {"Content-Encoding": ""}),
        (200, {"Content-Encoding": " IDENTITY "}),
        (200, {"Location": "http://two/"}),
        (201, {"Location": "/calls/1"}),
        (304, {"Location": "http://two/"}),
        (307, {}),
        (500, {}),
    ],
)
def test_plain_answers_are_read(status: int, headers: dict[str, str]) -> None:
    assert why_unread(ASKED, status, headers, setting="url") is None


@pytest.mark.parametrize(
    ("location", "shown", "meant"),
    [
        ("https://one/v1/chat/completions", "https://one/v1/chat/completions", "https://one/v1"),
        ("/v2/chat/completions", "http://one/v2/chat/completions", "http://one/v2"),
        ("//two/v1/chat/completions/", "http://two/v1/chat/completions/", "http://two/v1"),
        ("http://two:1/", "http://two:1/", "http://two:1"),
        ("http://[", "http://[", "http://["),
        ("http://eve:pa55word@two/", "http://two/", "http://two"),
        ("http://two/\x1b[2J", "http://two/\\x1b[2J", "http://two/\\x1b[2J"),
        ("http://two/pl4nted-secret", "http://two/[redacted]", "http://two/[redacted]"),
    ],
)
def test_a_redirection_names_its_place(location: str, shown: str, meant: str) -> None:
    know("pl4nted-secret")
    why = why_unread(ASKED, 307, {"Location": location}, setting="base_url", below="/chat/completions")
    assert (
        why == f"points to '{shown}' (HTTP 307), where nothing is sent; if that is meant, set base_url to '{meant}'"
    )


def test_what_is_said_is_short() -> None:
    for headers in ({"Location": "http://two/" + "x" * 90_000}, {"Content-Encoding": "x" * 90_000}):
        why = why_unread(ASKED, 307, headers, setting="url")
        assert why is not None
        assert len(why) < 1000
