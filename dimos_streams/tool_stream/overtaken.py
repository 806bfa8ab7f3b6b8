"""Calls that an operator's order has overtaken: why they do not begin, in the same words at a bridge and at a hub."""

from __future__ import annotations

from typing import Literal

OrderKind = Literal["stop", "cancel", "motion"]
"""An order of an operator: that a robot stands still, or that all calls end; or a model's or a skill's, that motions
end."""
_SAID: dict[OrderKind, str] = {
    "stop": "an operator has stopped the robot since it was asked for",
    "cancel": "all calls were ended since it was asked for",
    "motion": "motions were ended since it was asked for",
}


def overtaken(skill: object, kind: OrderKind) -> str:
    """The reason why a call does not begin that was asked for before an order."""
    return f"{skill!r} does not begin: {_SAID[kind]}; what is still wanted is to be asked for anew"
