"""Tokens of requests: what one side sends, the other one finds, and who else can read them."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path

import pytest

from dimos_streams.common.http.bearer import (
    authorization_in,
    bearer_headers,
    bearer_token,
    has_token,
    overheard_at,
    token_in,
    without_token,
)
from dimos_streams.common.secrets import know, redacted

HEADERS = [(b"authorization", b"Bearer t0ken"), (b"Authorization", b"Bearer x"), (b"host", b"localhost")]


def test_a_token_that_was_sent_is_found() -> None:
    (authorization,) = bearer_headers("t0ken").values()
    assert bearer_token(authorization) == "t0ken"
    assert has_token("t0ken", authorization, "")
    assert not has_token("t0ken2", authorization, "")
    assert bearer_headers(None) == bearer_headers("") == {}


@pytest.mark.parametrize(
    ("authorization", "token"),
    [
        ("bearer  t0ken ", "t0ken"),
        ("BEARER t", "t"),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("Basic t0ken", None),
        ("", None),
    ],
)
def test_the_scheme_is_read_in_any_case_and_blanks_do_not_count(authorization: str, token: str | None) -> None:
    assert bearer_token(authorization) == token


def test_the_query_counts_only_where_the_header_names_no_token() -> None:
    assert has_token("t0ken", "", "a=1&token=t0ken")
    assert has_token("t0ken", "Basic abc", "token=t0ken%20")
    assert not has_token("t0ken", "Bearer wrong", "token=t0ken")
    assert not has_token("t0ken", "Bearer", "token=t0ken")
    assert not has_token("t0ken", "Bearer \xff", "")
    assert not has_token("t0ken", "", "")


@pytest.mark.parametrize(
    "query", ["token=t0ken&token=x", "token=x&token=t0ken", "token=t0ken&token", "token=t0ken&tok%65n="]
)
def test_a_token_is_given_once_in_a_query(query: str) -> None:
    assert not has_token("t0ken", "", query)


def test_a_header_that_comes_twice_has_no_token() -> None:
    right, wrong, other = ((name, value) for name, value in HEADERS)
    assert has_token("t0ken", authorization_in([other, right]), "")
    assert authorization_in([other]) == ""
    for twice in ([right, wrong], [wrong, right], [right, right]):
        assert not has_token("t0ken", authorization_in([other, *twice]), "token=t0ken")
        assert not bearer_token(authorization_in(twice))


def in_subprotocol(token: str) -> str:
    return "bearer." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


@pytest.mark.parametrize("token", ["t0ken", "a", "ab", "abc", "tökén>?", "~~~???"])
def test_a_subprotocol_counts_before_the_query_and_after_the_header(token: str) -> None:
    offered = ["dimos-streams", in_subprotocol(token)]
    assert has_token(token, "", "token=wrong", offered)
    assert not has_token(token, "Bearer wrong", "", offered)
    assert not has_token(token, "", f"token={token}", [in_subprotocol("wrong")])
    for broken in ("bearer.", "bearer.!", "bearer.a", "bearer._w", "bearer.\xff"):
        assert not has_token(token, "", "", [broken])
    assert not has_token(token, "", "", ["dimos-streams"])


def test_a_token_is_given_once_among_the_subprotocols() -> None:
    given = in_subprotocol("t0ken")
    for another in (in_subprotocol("x"), "bearer.", given):
        assert not has_token("t0ken", "", "token=t0ken", ["dimos-streams", given, another])
        assert not has_token("t0ken", "", "", [another, given])


def test_logs_do_not_have_a_token_of_a_subprotocol() -> None:
    know("s3cret-of-a-subprotocol")
    said = redacted(f"Sec-WebSocket-Protocol: dimos-streams, {in_subprotocol('s3cret-of-a-subprotocol')}")
    assert said.startswith("Sec-WebSocket-Protocol: dimos-streams, bearer.")
    assert in_subprotocol("s3cret-of-a-subprotocol")[7:-2] not in said


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("", ""),
        ("token=s3cret", ""),
        ("x=1&token=s3cret&y=%26token%3D", "x=1&y=%26token%3D"),
        ("%74ok%65n=s3cret&x=1", "x=1"),
        ("token=&token=s3cret&tokens=3", "tokens=3"),
        ("token", ""),
    ],
)
def test_a_query_is_passed_on_without_its_token(query: str, left: str) -> None:
    assert without_token(query) == left
    assert not has_token("s3cret", "", without_token(query))


def test_a_token_file_that_every_user_can_read_is_said_once(
    tmp_path: Path, settled_log: pytest.LogCaptureFixture
) -> None:
    for name, mode, warned in (("own", 0o600, False), ("its group's", 0o640, False), ("open", 0o644, True)):
        file = tmp_path / name
        file.write_text(f"token-of-{mode}\n")
        file.chmod(mode)
        assert [token_in(file), token_in(file)] == [f"token-of-{mode}"] * 2
        text = f"every user of this machine can read the token in {file} (its mode is 644): chmod 600 "
        assert settled_log.messages == [text + shlex.quote(str(file))] * warned


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://robot.local:7780", "robot.local"),
        ("ws://192.168.1.7:7780/monitor", "192.168.1.7"),
        ("http://[fd00::7]:7780", "fd00::7"),
        ("https://robot.local", ""),
        ("wss://robot.local/monitor", ""),
        ("http://localhost:7780", ""),
        ("http://127.0.0.2:7780", ""),
        ("http://[::1]:7780", ""),
    ],
)
def test_a_token_can_be_read_on_its_way_to_other_machines_without_tls(url: str, host: str) -> None:
    assert overheard_at(url) == host
