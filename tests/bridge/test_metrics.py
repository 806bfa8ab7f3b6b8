from __future__ import annotations

import re

from dimos_streams.bridge.exposition import Exposition
from tests.bridge.serving import served
from tests.bridge.test_http import until_closed

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
        place, received = (
            values[f"dimos_streams_{name}", ""] for name in ("journal_last_place", "events_received_total")
        )
        assert place == received >= 5 + 2 + 2

        bridge.post(f"/calls/{running}/cancel")
        until_closed(bridge, running)
        after = parsed(bridge.get("/metrics").text)
        assert after["dimos_streams_calls_closed_total", "cancelled"] == 1
        assert ("dimos_streams_lease_held", "base") not in after


def test_names_and_labels_are_escaped() -> None:
    page = Exposition("x")
    page.counter("a", 'of "b"\\\nc', {'q"\\\n': 1}, "of")
    page.gauge("b", "", float("inf"))
    page.gauge("c", "", True)
    assert page.text() == (
        '# HELP x_a_total of "b"\\\\\\nc\n# TYPE x_a_total counter\nx_a_total{of="q\\"\\\\\\n"} 1\n'
        "# HELP x_b \n# TYPE x_b gauge\nx_b inf\n"
        "# HELP x_c \n# TYPE x_c gauge\nx_c 1\n"
    )
