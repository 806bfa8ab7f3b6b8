"""The kinds of modules that runs and replays treat in a way of their own."""

from __future__ import annotations

import pytest

from dimos_streams.blueprint import ModuleSpec, blueprint, module
from dimos_streams.blueprint.kinds import AGENT, BRIDGE, FOXGLOVE_SERVER, RECORDER, bridge_in, is_of
from dimos_streams.bridge.module import Bridge
from dimos_streams.common.importing import import_attribute
from dimos_streams.module import Module


class DoorBridge(Bridge):
    """A bridge of a user's own."""


@pytest.mark.parametrize("kind", [AGENT, BRIDGE, FOXGLOVE_SERVER, RECORDER])
def test_each_kind_is_a_class_that_there_is(kind: str) -> None:
    found = import_attribute(kind)
    assert isinstance(found, type)
    assert issubclass(found, Module)


def test_a_class_that_is_based_on_one_is_of_its_kind() -> None:
    own = blueprint("own", module(DoorBridge, name="door"))
    assert is_of(own.modules["door"], RECORDER, BRIDGE)
    assert not is_of(own.modules["door"], RECORDER, AGENT)
    assert bridge_in(own) == "door"


def test_a_class_that_can_not_be_imported_is_no_bridge() -> None:
    lost = ModuleSpec(name="lost", type="nowhere.at_all:Bridge")
    both = blueprint("both", module(Bridge))
    assert bridge_in(both.model_copy(update={"modules": {"lost": lost, **both.modules}})) == "bridge"
    assert bridge_in(both.model_copy(update={"modules": {"lost": lost}})) is None
