"""Who holds what in families of calls."""

from __future__ import annotations

import itertools

import pytest

from dimos_streams.bridge.calls.state.leases import Leases
from dimos_streams.skill import public_names
from dimos_streams.tool_stream.family import ancestors_of, child_id, head_of_family, parent_of
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

pytestmark = pytest.mark.feature("K1")
FAMILY = ("a", "a~1", "a~1~2")


def test_an_id_says_whose_child_a_call_is() -> None:
    assert child_id("a", 3) == "a~3"
    assert [parent_of(call_id) for call_id in ("a", "a~1", "a~1~2", "a.1", "a~1.2", "a~", "a~b", "~1")] == (
        ["", "a", "a~1", "", "", "", "", ""]
    )
    assert ancestors_of("a~1~2") == ("a~1", "a")
    assert [head_of_family(call_id) for call_id in ("a~1~2", "a~1.2", "a")] == ["a", "a~1.2", "a"]
    assert all(map(is_call_id, FAMILY))


@pytest.mark.parametrize("order", [*itertools.permutations(FAMILY)])
def test_leases_pass_down_and_back_in_whatever_order_calls_become_known(order: tuple[str, ...]) -> None:
    leases = Leases()
    for call_id in order:
        leases.grant(call_id, ["base"])
    assert leases.holders() == {"base": "a~1~2"}
    assert leases.conflicts("a~1~2~1", ["base", "arm"]) == {}
    assert leases.conflicts("a~2", ["base"]) == {"base": "a~1~2"}
    assert leases.conflicts("b", ["base"]) == {"base": "a~1~2"}
    assert all(leases.lacking(call_id, ["base"]) == {} for call_id in FAMILY)
    leases.grant("b", ["base"])
    assert leases.lacking("b", ["base"]) == {"base": "a~1~2"}
    for ended, holder in (("a~1~2", "a~1"), ("a", "a~1")):
        leases.release(ended)
        assert leases.holders() == {"base": holder}
    leases.release("a~1")
    assert leases.holders() == {}


def test_what_others_hold_costs_a_call_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    leases = Leases()
    leases.grant("a", [f"r{number}" for number in range(100)])
    monkeypatch.setattr(leases, "holders", None)  # a table of all
    assert leases.conflicts("b", ["r7", "arm"]) == leases.lacking("b", ["r7", "arm"]) == {"r7": "a"}
    leases.grant("b", ["arm"])
    leases.release("a")
    assert leases.lacking("c", ["r7", "arm"]) == {"arm": "b"}


def test_names_are_looked_for_from_the_inside_to_the_outside() -> None:
    assert public_names("go", "x/a/patrol") == ("x_a_go", "x_go", "go")
    assert public_names("go", "patrol") == public_names("go") == ("go",)
    assert public_names("/b/go", "x/a/patrol") == ("b_go",)
    assert public_names("/go", "x/a/patrol") == ("go",)
    assert public_names("b/go") == ("b_go",), "as its module is called, whose settings and restart say b/"
    assert public_names("b/go", "x/patrol") == ("x_b_go", "b_go")
