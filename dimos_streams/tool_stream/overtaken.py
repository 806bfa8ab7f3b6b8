"""The reasons why a call does not begin that was asked for before an order to stop. Bridges and hubs share them."""

from __future__ import annotations

from typing import Literal

OrderKind = Literal["stop", "cancel", "motion"]
"""The kind of an order: an operator's to stop a robot (``stop``) or to end all calls (``cancel``), or that of a model
or a skill to end motions (``motion``)."""
_SAID: dict[OrderKind, str] = {
    "stop": "an operator has stopped the robot since it was asked for",
    "cancel": "all calls were ended since it was asked for",
    "motion": "motions were ended since it was asked for",
}


def overtaken(skill: object, kind: OrderKind) -> str:
    """The reason why a call does not begin that was asked for before an order."""
    return f"{skill!r} does not begin: {_SAID[kind]}; what is still wanted is to be asked for anew"
