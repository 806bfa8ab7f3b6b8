"""The names of runs, which their directories have."""

from __future__ import annotations

import pytest

from dimos_streams.blueprint.names import run_name


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-8", "größe_机器@arm-1"), ("ascii", "gr__e___@arm-1"), ("iso8859-1", "gr__e___@arm-1")],
)
def test_a_run_has_the_letters_that_a_directory_may_have_here(
    encoding: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: encoding)
    assert run_name("größe 机器", "arm-1") == name
