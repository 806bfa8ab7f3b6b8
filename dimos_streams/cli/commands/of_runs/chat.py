"""The command for a conversation with the agent: chat."""

from __future__ import annotations

import typer

from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal import options


def chat(
    agent: options.AgentName = "",
    *,
    bridge: BridgeChoice,
) -> None:
    """Talk to the agent and watch its calls. /help lists the commands; Ctrl-D ends. With several agents, begin a
    line with the name of one, 'robot1: …', or choose one with `--agent`.

    Input may also come through a pipe, a line at a time: each is said when the one before is answered, and the chat
    ends when all that they began is over. Then it exits with 0 only if all of it completed.
    """
    from dimos_streams.cli.bridge_client.connection import find_bridge
    from dimos_streams.cli.consoles.chat_console import run_chat

    if code := run_chat(find_bridge(bridge), agent):
        raise typer.Exit(code)
