"""docs/settings.md has every setting of the stock modules, and says what each means."""

from __future__ import annotations

import re
import socket

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.stock import stock_blueprints
from dimos_streams.common.importing import import_attribute
from docs.make_settings import MODULES, PAGE, page, settings_of


def test_the_page_is_of_the_modules_as_they_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m docs.make_settings"


def test_the_page_is_the_same_whatever_the_machine_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "another-machine")
    rows = settings_of(import_attribute("dimos_streams.bridge.module:Bridge"))
    assert "another-machine" not in str(rows)
    assert {row.path: row.default for row in rows}["hub.robot"] == "computed"


@pytest.mark.parametrize("reference", MODULES)
def test_each_setting_says_what_it_means(reference: str) -> None:
    meanings = {row.path: row.meaning for row in settings_of(import_attribute(reference))}
    assert [path for path, meaning in meanings.items() if not re.match(r"[A-Z\"`].*[.]\)?$", meaning)] == []


def test_a_default_is_the_one_that_its_module_gives() -> None:
    patrol = {row.path: row.default for row in settings_of(import_attribute("dimos_streams.skills.patrol:Patrol"))}
    drive = {row.path: row.default for row in settings_of(import_attribute("dimos_streams.skills.drive:Drive"))}
    assert (patrol["drive.max_speed"], drive["max_speed"]) == ("`0.5`", "`0.6`")
    assert (patrol["waypoints"], patrol["frozen_after_s"]) == ("required", "`3.0`")


def test_the_modules_of_all_stock_blueprints_are_on_it() -> None:
    named = {spec.type for name in stock_blueprints() for spec in resolve(name).modules.values()}
    assert "dimos_streams.agent.module:Agent" in named
    assert named - set(MODULES) == set()
