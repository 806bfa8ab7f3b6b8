"""The command that watches a run as a console does: monitor."""

from __future__ import annotations

from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import while_read


def monitor(
    agent: options.AgentName = "",
    *,
    bridge: BridgeChoice,
    as_json: options.JsonLines = False,
) -> None:
    """Show what the monitor reports: what agents do, calls, approvals, health. Until Ctrl-C.

    It ends with 1 when its connection does, also where the bridge is restarted and the run goes on.

    With `--json` each message is a line, as `WS /monitor` sends it. An agent knows that somebody watches it.
    """
    from dimos_streams.cli.bridge_client.connection import find_bridge
    from dimos_streams.cli.consoles.monitor_console import watch
    from dimos_streams.cli.system.async_runner import run_async

    run_async(while_read(watch(find_bridge(bridge), agent, as_json=as_json)))
