"""The fields of a request to run a skill that not every text is valid for."""

from __future__ import annotations

import typing

from dimos_streams.common.names import fault_of_names
from dimos_streams.errors import MessageError
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.skill import OnLoss
from dimos_streams.tool_stream.protocol.call_ids import CALL_ID_RULE, is_call_id


def check_names(call: SkillCall, channel: str) -> None:
    """Raise ``MessageError`` for a request to run a skill with a name that nobody can have, or an id that is none."""
    ids = (call.call_id, call.parent) if call.parent else (call.call_id,)
    fault = "" if all(map(is_call_id, ids)) else f"an id in it is none; {CALL_ID_RULE}"
    if fault := fault or fault_of_names((call.skill, call.caller)):
        raise MessageError(channel, SkillCall.msg_name, fault)


def on_loss_of(call: SkillCall, channel: str) -> OnLoss | None:
    """Return the ``on_loss`` of a request to run a skill, or None if it has none. Raises ``MessageError`` for an
    invalid one."""
    if call.on_loss not in ("", *typing.get_args(OnLoss)):
        raise MessageError(
            channel, SkillCall.msg_name, f"on_loss is {call.on_loss!r} (valid: stop, continue, or nothing)"
        )
    return typing.cast("OnLoss | None", call.on_loss or None)
