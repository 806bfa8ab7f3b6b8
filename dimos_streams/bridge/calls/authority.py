"""Decides who may call what, for every way in which a call may begin, by who stands at the beginning of its chain.

Operators and programs, over HTTP, the monitor or within the process, speak for themselves. A call that a running
skill asks for is a call of whoever began the first call of the chain, as the ledger knows it; what the skill says of
that does not count. Skills for operators are out of reach for what a model may have thought of: for agents, for MCP
clients, and for every call that a skill asks for, whoever began the chain. What an agent's skills ask for passes the
agent's gates besides (``reviews.py``). No operator is asked on behalf of an MCP client: what needs an approval is
refused to it, unless the approvals of clients count.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dimos_streams.bridge.calls.mcp_approval import McpApproval
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.bridge.calls.state.remembered_calls import Calls, chain
from dimos_streams.common.names import NAME_RULE, is_name, taken_for
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import has_secret
from dimos_streams.errors import CallRejectedError
from dimos_streams.operator.known_names import OWN_CALLERS
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.audience import is_bridge, refusal
from dimos_streams.tool_stream.family import MAX_DEPTH, ancestors_of
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from dimos_streams.tool_stream.review import review_skill

MCP = "mcp/"
"""The prefix of MCP clients' caller names."""
_SHOWN = 80
"""Maximum length of a caller in an error, in characters."""
UNKNOWN = "unknown"
"""The caller of a call that no known call asks for; such a call is refused."""


def by_model(call: CallState) -> bool:
    """Return whether a model may have thought of a call: an agent's, an MCP client's, or one that these led to."""
    return call.by_agent or call.caller.startswith(MCP)


class Authority:
    """Checks calls before they begin. Use from the loop only."""

    def __init__(
        self,
        directory: ModuleDirectory,
        calls: Calls,
        agents: Iterable[str] = (),
        mcp_approval: McpApproval = "refuse",
    ) -> None:
        """``agents`` are the names of agents that may not have been heard yet."""
        self._directory = directory
        self._calls = calls
        self._agents = set(agents)
        self._mcp_approval = mcp_approval

    def restore(self) -> None:
        """Take up the names of agents from calls of an earlier life of the bridge: the agents may hang."""
        self._agents.update(call.caller for call in self._calls if call.by_agent)

    def knows(self, call: CallState) -> bool:
        """Return whether everything is known about who asks for a call."""
        asking = self._calls.get(call.parent)
        if asking is None:
            return not call.parent
        return not asking.by_agent or self._review_skill(asking.caller) is not None

    def trace(self, call: CallState) -> None:
        """Set ``caller`` and ``by_agent`` of a call that a skill asks for, from the beginning of its chain.

        Raises ``CallRejectedError`` if one of the calls that lead to it is not open or was asked to end, or if the
        chain is too deep.
        """
        asking = self._calls.get(call.parent)
        if asking is not None:
            call.caller = asking.caller
            call.by_agent = asking.by_agent or self.is_agent(asking.caller)
        self._check_asking(call, call.parent)
        self._check_family(call)

    async def resolve_skill(self, call: CallState) -> None:
        """Set the public name of the skill that is asked for; it is looked up in the asking module's namespace
        first. A bridge that has just begun to listen waits for those that may have it. That of an unknown one stays,
        which is said where the call is checked.

        What a model asks for itself has its skill's own name: its agent, or the server of its tools, has found out
        which one it means, and another one has not passed the gates.
        """
        asking = self._calls.get(call.parent)
        asked_by = asking.module if asking is not None else ""
        if by_model(call) and not call.parent:
            look_up = partial(self._directory.named, call.skill)
        else:
            look_up = partial(self._directory.known, call.skill, asked_by=asked_by)
        await self._directory.meet(lambda: look_up() is not None)
        found = look_up()
        if found is not None:
            call.skill = found[1].name

    def check_caller(self, call: CallState) -> None:
        """Check who makes a call that no skill asks for, and set ``by_agent``. Raises ``CallRejectedError``."""
        names = {"caller": call.caller, "idempotency key": call.key or ""}
        if call.caller in OWN_CALLERS or self.is_agent(call.caller):  # our words, which may be part of somebody's URL
            names = {"idempotency key": (call.key or "").removeprefix(f"{call.caller}/")}
        for what, name in names.items():
            if has_secret(name):  # redacted, it could be another one's, and give away that one's calls
                raise CallRejectedError(
                    f"the {what} has a secret of this run in it, a token or key for example, and would be in its"
                    " events: valid is any other text"
                )
        self._check_name(call.caller)
        if is_bridge(call.caller):
            raise CallRejectedError(f"{call.caller!r} is the name of a bridge itself: call by a name of your own")
        call.by_agent = self.is_agent(call.caller)
        if call.by_agent and not (call.key or "").startswith(f"{call.caller}/"):
            raise CallRejectedError(
                f"{call.caller!r} is the name of an agent, and calls in its name are its own, which pass its gates:"
                " call by a name of your own"
            )

    def _check_name(self, caller: str) -> None:
        """Raise ``CallRejectedError`` for what is no name, and for one that people would take for another one, as
        ``Agent`` or ``agent.`` for the agent ``agent``: names that mean somebody have small letters only, and no
        signs at their ends."""
        if caller and not is_name(caller):
            raise CallRejectedError(f"caller is {shortened(repr(caller), _SHOWN)}; {NAME_RULE}")
        like = taken_for(caller)
        like = MCP if f"{like}/" == MCP else like
        means_somebody = like in OWN_CALLERS or is_bridge(like) or like.startswith(MCP) or self.is_agent(like)
        if means_somebody and like != caller and not caller.startswith(MCP):
            raise CallRejectedError(f"{caller!r} looks like {like!r}, which is not you: call by a name of your own")

    def check(self, call: CallState, skill: SkillInfo) -> None:
        """Check that a call may reach a skill, and is still asked for. Raises ``CallRejectedError``."""
        if call.parent:
            self._check_asking(call, call.parent)
        why = refusal(skill.name, skill.audience, caller=call.caller, parent=call.parent)
        if why:
            raise CallRejectedError(why)
        self._check_approval(call, skill)
        if skill.audience != "operator" or not by_model(call):
            return
        if not call.by_agent:
            raise CallRejectedError(f"skill {skill.name!r} is for operators: {call.caller!r} may not call it")
        if not self._takes_back(call, skill):
            raise CallRejectedError(
                f"skill {skill.name!r} is for operators: agent {call.caller!r} may call one only to take back a call"
                " of its own, and none that the bridge remembers fits"
            )

    def _check_approval(self, call: CallState, skill: SkillInfo) -> None:
        if skill.approval == "ask" and self._mcp_approval == "refuse" and call.caller.startswith(MCP):
            raise CallRejectedError(
                f"skill {skill.name!r} needs an operator's approval, and nobody asks one for {call.caller!r}: an"
                " operator may call it, or an agent of the run; where the client itself asks its user, the bridge's"
                " setting `mcp_approval: client` lets it begin"
            )

    def reviewer(self, call: CallState) -> tuple[ModuleView, SkillInfo] | None:
        """The agent that has to review a call, with its review skill; None if the call needs no review.

        Raises ``CallRejectedError`` if the agent is gone.
        """
        if not (call.parent and call.by_agent):
            return None
        module, skill = self._directory.module(call.caller), self._review_skill(call.caller)
        if module is None or skill is None or not module.alive:
            why = "it is not known" if module is None or skill is None else module.health
            raise CallRejectedError(f"agent {call.caller!r}, for whom {call.skill!r} was to begin, is gone: {why}")
        return module, skill

    def may_replace(self, call: CallState, running: CallState) -> bool:
        """Return whether a call may end a duplicate to take its place. A model's call ends only its caller's."""
        return running.caller == call.caller or not by_model(call)

    def _check_asking(self, call: CallState, call_id: str) -> None:
        """Check that a call which asks for ``call``, or leads to it, is open and was not asked to end."""
        asking = self._calls.get(call_id)
        part = "which asks for" if call_id == call.parent else "which leads to"
        who = f"call {call_id!r}, {part} {call.skill!r},"
        if not call.parent:
            raise CallRejectedError(f"nobody asks for {call.skill!r}: the request names no call that it comes from")
        if asking is None:
            raise CallRejectedError(f"{who} is not known")
        if asking.state == CLOSED:
            raise CallRejectedError(f"{who} has ended")
        if asking.cancel is not None:
            why = f": {asking.cancel_reason}" if asking.cancel_reason else ""
            raise CallRejectedError(f"{who} was asked to end{why}")

    def _check_family(self, call: CallState) -> None:
        """Check that all further ancestors of a child call are open, and that it is not nested too deep."""
        ancestors = ancestors_of(call.call_id)
        for call_id in ancestors[1:]:
            self._check_asking(call, call_id)
        if len(ancestors) > MAX_DEPTH:
            led_here = chain(self._calls, call)
            raise CallRejectedError(
                f"skills may run each other {MAX_DEPTH} deep, and {call.skill!r} would be one more: {led_here}"
            )

    def is_agent(self, name: str) -> bool:
        """Return whether a module is an agent: it declares that by a skill for reviews. The blueprint's agents, and
        those that have called before, are agents from the beginning: one that hangs says nothing to a new bridge.

        No module that declares it becomes one by a name of operators, whose calls would be refused then.
        """
        declares = name not in OWN_CALLERS and self._review_skill(name) is not None
        return name in self._agents or declares

    def _review_skill(self, name: str) -> SkillInfo | None:
        """Return the skill for reviews of a module that was heard, or None."""
        module = self._directory.module(name)
        return None if module is None else review_skill(module.skills)

    def _takes_back(self, call: CallState, skill: SkillInfo) -> bool:
        """Return whether a call takes back one of the same caller, as agents do when operators ask for it."""
        taken_back = {info.name for _, info in self._directory.skills() if info.undo == skill.name}
        what = call.arguments.get("arguments")
        return any(
            other.caller == call.caller and other.skill in taken_back and other.arguments == what
            for other in self._calls
        )
