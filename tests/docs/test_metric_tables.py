"""The pages name every metric of a bridge and of a hub, with its labels and with what it says of itself."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.bridge.serving import served
from tests.hub.serving import added, served_hub

DOCS = Path(__file__).parents[2] / "docs"
_HEAD = "| metric | label | |\n|---|---|---|\n"


def listed(page: str) -> list[str]:
    """The rows of a page's table of metrics."""
    _, found, rest = (DOCS / page).read_text().partition(_HEAD)
    assert found, f"docs/{page} has no table of metrics"
    return rest.partition("\n\n")[0].splitlines()


def scraped(text: str) -> list[str]:
    """The rows that a scrape makes; each metric must have a sample."""
    rows = []
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        (labels,) = {tuple(sample.labels) for sample in family.samples}
        label = "".join(f"`{each}` " for each in labels)
        rows.append(f"| `{name}` | {label}| {family.documentation} |")
    return rows


def test_each_metric_of_a_bridge_is_in_its_table() -> None:
    with served() as bridge:
        bridge.call("follow", wait="answer", description="ann")
        assert listed("http.md") == scraped(bridge.get("/metrics").text)


def test_each_metric_of_a_hub_is_in_its_table(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    added(database, "r1")
    with served_hub(database) as hub:
        assert hub.get("/robots").ok
        assert listed("fleet.md") == scraped(hub.get("/metrics").text)
