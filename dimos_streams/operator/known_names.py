"""The names by which operators' tools call, and those of the agents' skills that they call.

The skills are those of ``agent/operator_skills.py``, all with ``audience="operator"``; of a namespaced
agent they are called ``robot1_pause`` and so on. Where a successor of the agent would not know of an order, its
result has ``unkept``, the reason. What can't be done fails with a ``SkillError`` that says why.
"""

from __future__ import annotations

from typing import Final

REPORT: Final = "report"
SAY: Final = "say"
APPROVALS: Final = "approvals"
DECISION: Final = "an operator's decision"
"""The words with which notes of a conversation name an operator's decision that it waits for."""
ANSWER: Final = "what is said to it next, as by `dimos-streams say`, is the answer"
"""The end of the note of a conversation that has a question of the agent."""
SUBMIT_PLAN: Final = "submit_plan"
"""The agents' own tool that hands in a plan: an approval of that name is about one."""
BEHIND_PAUSE: Final = "waiting behind the pause"
"""The beginning of the note of a conversation that what was said waits for the end of a pause."""
MONITOR: Final = "monitor"
"""Caller of the monitor's ``report`` calls, which tools do not show among calls."""
OPERATOR, CLI, HTTP = "operator", "cli", "http"
"""The callers of what the monitor's clients order, of the command line's calls, and of requests that name nobody."""
OWN_CALLERS = frozenset({MONITOR, OPERATOR, CLI, HTTP})
CANCEL_CALL: Final = "cancel_call"
"""The own tool by which MCP clients and agents end calls."""
MCP_TOOLS = frozenset({"skill_updates", "get_call", "list_calls", CANCEL_CALL})
"""The bridge's own tools for MCP clients, for whom a skill of such a public name is no tool."""
AGENT_TOOLS = frozenset(
    {"list_calls", CANCEL_CALL, "read_result", "elicit", "create_plan", "add_plan_steps", SUBMIT_PLAN, "check_plan"}
)
"""The own tools of every agent, for whose model a skill of such a public name is no tool."""
