"""Files behind links and in homes, also behind links that lead nowhere, and in homes that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import dimos_streams
from dimos_streams.agent.models import create_model
from dimos_streams.cli.app import create_app
from dimos_streams.cli.bridge_client.certificates import CA, own_tls
from dimos_streams.cli.option_groups.home_paths import with_home_paths
from dimos_streams.common.process.disk import at_home, real_path
from dimos_streams.errors import UserError
from dimos_streams.hub.storage.engines.sqlite import sqlite_engine


def test_the_file_behind_links_is_found_and_a_circle_of_them_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    assert real_path(tmp_path / "link") == real_path(tmp_path) / "file"
    assert real_path(tmp_path / "circle") == real_path(tmp_path) / "circle"
    assert real_path(tmp_path / "\0") == tmp_path / "\0"


def test_nobody_follows_links_or_looks_for_homes_in_another_way() -> None:
    """``Path.resolve`` raises ``RuntimeError`` for a circle of links, and ``Path.expanduser`` for a home that nobody
    knows, which runs report as an error of their own: their files need one."""
    sources = Path(dimos_streams.__file__).parent.rglob("*.py")
    texts = {path: path.read_text("utf-8") for path in sources}
    assert [path for path, text in texts.items() if ".resolve()" in text] == []
    assert [path.name for path, text in texts.items() if ".expanduser()" in text] == ["run_directories.py"]


def test_a_path_in_a_home_that_nobody_knows_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert at_home("~/token") == tmp_path / "token"
    assert at_home("~no-such-user/token") == Path("~no-such-user/token")


def test_whatever_names_a_file_may_have_it_in_the_users_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match=f"'{tmp_path}/no.yaml'"):
        create_model("scripted:~/no.yaml")
    assert sqlite_engine("sqlite:///~/hub.sqlite", partition=0).where == f"{tmp_path}/hub.sqlite"
    (tmp_path / "empty.pem").touch()
    monkeypatch.setenv(CA, "~/empty.pem")
    with pytest.raises(UserError, match=f"the files of {CA} can't be used"):
        own_tls("https://robot:7780")


def test_commands_take_paths_in_the_users_directory_behind_an_equals_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    told = CliRunner().invoke(create_app(["recording"]), ["recording", "info", "~/no.lcmlog"])
    assert isinstance(told.exception, UserError)
    assert f"{tmp_path}/no.lcmlog" in str(told.exception)

    @with_home_paths
    def command(output: Path, files: list[Path], name: str, record: Path | None) -> tuple[object, ...]:
        return (output, files, name, record)

    given = command(output=Path("~/a"), files=[Path("~/b"), Path("c")], name="~/d", record=None)
    assert given == (tmp_path / "a", [tmp_path / "b", Path("c")], "~/d", None)
