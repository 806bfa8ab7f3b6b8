"""Tokens of requests: what one side sends, the other one finds."""

from __future__ import annotations

import pytest

from dimos_streams.common.bearer import bearer_headers, bearer_token, has_token, without_token


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
