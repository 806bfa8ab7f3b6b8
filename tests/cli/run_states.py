"""States of a run and of its bridge, of which tests change what they are about."""

from __future__ import annotations

from dimos_streams.cli.bridge_client.answers import BroadcastCounts, ReceiverCounts
from dimos_streams.cli.bridge_client.run_status.state import AnsweringBridge, EventCounts, RunState
from dimos_streams.operator.messages.stop import StoppedRobots

BRIDGE = AnsweringBridge(
    url="http://127.0.0.1:7780",
    status="ok",
    open_calls=0,
    lost=(),
    stopped=StoppedRobots(),
    not_ending=(),
    hub=None,
    counts=EventCounts(
        offset=0,
        leases={},
        broadcast=BroadcastCounts(readers=0, lag=0, coalesced=0, cut=0),
        receiver=ReceiverCounts(delivered=0, gaps=0, malformed=0),
    ),
)
RUN = RunState(
    run_id="1764000000001-rover-1",
    blueprint="rover",
    pid=1,
    supervisor="ready",
    up_s=1.0,
    bus="memq://",
    machine=None,
    machines=(),
    run_dir="/run",
    disk="ok",
    bridge=BRIDGE,
    processes=(),
    modules=(),
)
