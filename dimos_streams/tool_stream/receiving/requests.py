"""Requests that a receiver sends to publishers: acknowledgements, and nacks for what it misses."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.common.allowance import Allowance
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ToolStreamRequest
from dimos_streams.tool_stream.protocol.channels import ACK, NACK, REQUESTS
from dimos_streams.tool_stream.receiving.received_call import CLOSED, ReceivedCall
from dimos_streams.tool_stream.signature import signed

_NACKS_PER_S = 10_000.0
"""Maximum number of requests for missing events per second, of all calls together."""
_UNSOLICITED_NACKS = (20.0, 200.0)
"""The bound of those requests for unsolicited calls: per second, and at once. Everybody on the bus
hears each request, so that one forged event must not make a flood of them. Calls of which it is known who runs them
have as many besides: else, after a flood of names, it would take minutes until their ends are asked for."""
_UNSOLICITED_ACKS = (100.0, 200.0)
"""Maximum number of acknowledgements of such calls, per second and at once; a heartbeat, or an event that comes
again, asks for those that were left out."""
_EVERYTHING = 2**31 - 1


class Requests:
    """The requests of one receiver, which are sent within bounds. Use from the bus's loop only."""

    def __init__(self, bus: Bus, name: str) -> None:
        """``name`` is the receiver's name."""
        self.nacks = 0
        """Number of nacks that were sent."""
        self._bus = bus
        self._name = name
        self._allowed = Allowance(_NACKS_PER_S, _NACKS_PER_S)
        self._unsolicited_nacks = {is_known: Allowance(*_UNSOLICITED_NACKS) for is_known in (False, True)}
        self._unsolicited_acks = Allowance(*_UNSOLICITED_ACKS)

    def ack(self, call: ReceivedCall) -> None:
        """Acknowledge what was delivered of a call, unless there were too many acknowledgements of such calls."""
        if call.unsolicited and not self._unsolicited_acks.take():
            return
        call.acked = call.delivered
        # A closed call wants nothing more, whatever its publisher still holds or sends.
        self._send(ACK, self._signature(call), call, 1, _EVERYTHING if call.stage is CLOSED else call.delivered)

    def ack_rerun(self, call: ReceivedCall, instance: str) -> None:
        """Acknowledge to another instance than the one that ran a closed call all that it holds of it: it has begun
        the call once more, because its request came again."""
        if not call.unsolicited or self._unsolicited_acks.take():
            self._send(ACK, signed(self._name, instance), call, 1, _EVERYTHING)

    def nack(self, call: ReceivedCall, from_seq: int, to_seq: int) -> bool:
        """Ask for missing events, unless there were too many such requests; return whether it was done."""
        if call.unsolicited and not self._unsolicited_nacks[bool(call.instance)].take():
            return False
        if not self._allowed.take():
            return False
        self.nacks += 1
        self._send(NACK, self._signature(call), call, from_seq, to_seq)
        return True

    def is_answered(self, answer: ToolStreamRequest, call: ReceivedCall) -> bool:
        """Return whether an answer is to a request that was made from here to the instance that runs the call."""
        return answer.receiver == self._signature(call)

    def _send(self, kind: str, receiver: str, call: ReceivedCall, from_seq: int, to_seq: int) -> None:
        request = ToolStreamRequest(
            utime=clock.utime(),
            receiver=receiver,
            kind=kind,
            call_id=call.call_id,
            from_seq=from_seq,
            to_seq=to_seq,
        )
        self._bus.publish(REQUESTS, encode(request))

    def _signature(self, call: ReceivedCall) -> str:
        return signed(self._name, call.instance or call.presumed_instance)
