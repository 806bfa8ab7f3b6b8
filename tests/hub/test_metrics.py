"""What a scrape of a hub says."""

from __future__ import annotations

from pathlib import Path

from tests.bridge.http.test_metrics import parsed
from tests.hub.serving import added, served_hub


def test_the_page_shows_robots_readers_and_the_database(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1", "r2")
    with served_hub(database) as hub:
        assert hub.get("/robots").ok
        values = parsed(hub.get("/metrics").text)
    assert values["dimos_streams_hub_ok", ""] == 1
    assert (values["dimos_streams_hub_first_offset", ""], values["dimos_streams_hub_last_offset", ""]) == (1, 0)
    assert values["dimos_streams_hub_entries_total", ""] == 0
    assert 0 < values["dimos_streams_hub_pace_seconds", ""] < 2
    assert [values["dimos_streams_robot_connected", robot] for robot in ("r1", "r2")] == [0, 0]
    assert values["dimos_streams_streams_open", ""] == values["dimos_streams_streams_lag", ""] == 0
