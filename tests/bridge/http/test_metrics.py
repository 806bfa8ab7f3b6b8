from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families

from tests.bridge.http.test_http import until_closed
from tests.bridge.serving import served

_SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"\})? (\S+)')


def parsed(page: str) -> dict[tuple[str, str], float]:
    """Values by name and label value. Checks what the format demands: help and type once, before the samples."""
    values: dict[tuple[str, str], float] = {}
    kinds: dict[str, str] = {}
    assert page.endswith("\n")
    lines = page.splitlines()
    for index, line in enumerate(lines):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert lines[index + 1].startswith(f"# TYPE {name} ")
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds
            kinds[name] = kind
            assert kind in ("counter", "gauge")
            assert name.endswith("_total") == (kind == "counter")
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            name, _, label, number = match.groups(default="")
            assert name == list(kinds)[-1], "samples follow the type of their own name"
            assert (name, label) not in values
            values[name, label] = float(number)
    return values


def test_the_page_shows_what_happened() -> None:
    with served() as bridge:
        bridge.call("count", label="a", to=3)
        bridge.call("fail")
        running = bridge.call("follow", wait="answer", description="ann")["call_id"]
        bridge.stream()
        bridge.scene.inner.publish("/tool_streams#dimos_streams.ToolStreamEvent", b"garbage")
        bridge.run(bridge.broker.wait(running, "close", 0.2))

        response = bridge.get("/metrics")
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        values = parsed(response.text)
        assert values["dimos_streams_calls_closed_total", "completed"] == 1
        assert values["dimos_streams_calls_closed_total", "failed"] == 1
        assert values["dimos_streams_calls_closed_total", "lost"] == 0
        assert values["dimos_streams_calls", "open"] == 1
        assert values["dimos_streams_lease_held", "base"] == 1
        assert values["dimos_streams_module_alive", "worker"] == 1
        assert values["dimos_streams_module_heartbeat_age_seconds", "worker"] < 2
        assert values["dimos_streams_streams_open", ""] == 1
        assert values["dimos_streams_streams_cut_total", ""] == 0
        assert values["dimos_streams_journal_ok", ""] == 1
        assert values["dimos_streams_malformed_total", "events"] == 1
        assert values["dimos_streams_bus_published_total", ""] > 0
        offset, received = (
            values[f"dimos_streams_{name}", ""] for name in ("journal_last_offset", "events_received_total")
        )
        assert offset == received >= 5 + 2 + 2

        bridge.post(f"/calls/{running}/cancel")
        until_closed(bridge, running)
        after = parsed(bridge.get("/metrics").text)
        assert after["dimos_streams_calls_closed_total", "cancelled"] == 1
        assert ("dimos_streams_lease_held", "base") not in after


def test_label_values_are_escaped_and_every_bridge_of_a_process_has_metrics_of_its_own() -> None:
    name = 'a "b"\\\nc'
    with served() as bridge, served() as other:
        bridge.broker.ledger.leases.grant("somebody", {name})
        page = bridge.get("/metrics").text
        assert r'dimos_streams_lease_held{resource="a \"b\"\\\nc"} 1.0' in page.splitlines()
        (held,) = (each for each in text_string_to_metric_families(page) if each.name == "dimos_streams_lease_held")
        assert [sample.labels for sample in held.samples] == [{"resource": name}]
        assert "lease_held{" not in other.get("/metrics").text


def test_a_scrape_reads_the_counters_of_that_moment() -> None:
    with served() as bridge:
        for count in (3, 5):
            bridge.broker.ledger.ignored = count
            assert parsed(bridge.get("/metrics").text)["dimos_streams_events_ignored_total", ""] == count
