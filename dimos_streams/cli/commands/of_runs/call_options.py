"""Options of the commands that begin and follow calls: `call`, `follow` and `say`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dimos_streams.client.call_body import MAX_LEASE_WAIT_S
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.tool_stream.gateway import CallTerms

_SHOWN = 60
"""Maximum length of a value in an error, in characters."""


def _checked_key(value: str | None) -> str | None:
    from dimos_streams.common.names import MAX_NAME, is_key

    if value is not None and not is_key(value):
        shown = shortened(repr(value), _SHOWN)
        rule = f"it must have 1 to {MAX_NAME} characters, all of them printable, and has {len(value)}"
        raise UserError(f"--idempotency-key {shown}: {rule}")
    return value


def _checked_caller(value: str | None) -> str | None:
    if value is None:
        return None
    from dimos_streams.bridge.calls.authority import MCP
    from dimos_streams.common.names import NAME_RULE, is_name, taken_for
    from dimos_streams.operator.known_names import OWN_CALLERS
    from dimos_streams.tool_stream.audience import is_bridge

    if not is_name(value):
        raise UserError(f"--caller {shortened(repr(value), _SHOWN)}: {NAME_RULE}")
    like = taken_for(value)  # which a bridge would take for the same
    is_client = f"{like}/".startswith(MCP)
    if is_client or is_bridge(like):
        whose = "an MCP client" if is_client else "a bridge"
        raise UserError(f"--caller {value!r} is the name of {whose}: valid is a name of your own")
    if like in OWN_CALLERS and like != value:
        raise UserError(f"--caller {value!r} looks like {like!r}, which is not you: valid is a name of your own")
    return value


Wait = Annotated[
    Literal["answer", "close"],
    typer.Option("--wait", help="How long to watch the call: until its first answer, or until it closes."),
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Cancel the call after this time.")
]
FollowTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0,
        metavar="SECONDS",
        help="Stop watching after this time and exit with 1. The call continues.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class NewCall:
    """The options of a call that is begun: by whom, and on which terms."""

    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key",
            metavar="KEY",
            help="A key under which the call begins only once: if the caller has begun one with it already, follow"
            " that one.",
            callback=_checked_key,
        ),
    ] = None
    on_duplicate: Annotated[
        Literal["allow", "reject", "replace", "confirm"] | None,
        typer.Option(
            "--on-duplicate",
            help="If a call of the skill runs already: run beside it (allow), be refused (reject, confirm), or end "
            "it first (replace). Without it: as the skill declares.",
        ),
    ] = None
    lease_wait: Annotated[
        float,
        typer.Option(
            "--lease-wait",
            min=0,
            max=MAX_LEASE_WAIT_S,
            metavar="SECONDS",
            help=f"How long to wait for resources that another call holds, at most {MAX_LEASE_WAIT_S:g}.",
        ),
    ] = 0.0
    on_loss: Annotated[
        Literal["stop", "continue"] | None,
        typer.Option(
            "--on-loss",
            help="Whether the call stops or continues if the link to the robot is lost. Without it: as the skill"
            " declares.",
        ),
    ] = None
    caller: Annotated[
        str | None,
        typer.Option(
            "--caller",
            metavar="NAME",
            help="The name of the caller, as `calls` shows it. Without it: cli.",
            callback=_checked_caller,
        ),
    ] = None

    def terms(self) -> CallTerms:
        """Return the terms as a gateway takes them."""
        return {
            "idempotency_key": self.idempotency_key,
            "on_duplicate": self.on_duplicate,
            "on_loss": self.on_loss,
        }
