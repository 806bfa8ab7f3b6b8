"""A model without a language model: it understands a few commands, and is the same every time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias

from dimos_streams.agent.models.offline_grammar import (
    COMMANDS,
    AmbiguousRobotError,
    CommandStep,
    Misunderstood,
    parse,
    resolve,
    robots_of,
)
from dimos_streams.agent.models.protocol import (
    CALL_FAILED,
    NOT_UNDERSTOOD,
    STALE,
    AssistantMessage,
    Finish,
    Message,
    ModelDelta,
    ModelRequest,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    UserMessage,
)
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.tool_stream.event import Outcome, ToolEvent

_CLIP = 300
_OTHERWISE = (
    "Any other skill, your own too, is called with `dimos-streams call`, or in a mission by a script"
    " (agent.model=scripted:FILE) or a language model (agent.model=openai:MODEL)."
)
_AS_MEANT = (Outcome.COMPLETED, Outcome.CANCELLED)


class OfflineModel:
    """Turns an operator's commands into calls, one per answer, and says in a line what became of them.

    Each answer is a function of the request alone. A step that failed ends the rest of its command, except cleaning
    up. Events get a short comment, except those of missions that were ended.
    """

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        heard, done = _turn(request.messages)
        heard = [message for message in heard if not message.is_past]
        offered = [tool.name for tool in request.tools]
        plan, remarks, misunderstood = _plan(heard, offered)
        steps = _remaining(plan, done)
        if steps:
            step, number = steps[0], len(done) + 1
            yield ToolCallDelta(index=0, id=f"call_{number}", name=step.skill, arguments=json.dumps(step.arguments))
            yield TokenUsage()
            yield Finish("tool_calls")
            return
        comments = [_comment(message.event) for message in heard if message.event is not None]
        answers = [
            f"{result.name}: {_clip(result.text.splitlines()[0] if result.text else '')}" for _, result in done
        ]
        lines = [*comments, *answers, *remarks]
        if lines:
            yield TextDelta("\n".join(lines))
        yield TokenUsage()
        yield _finish(heard, done, misunderstood)

    async def close(self) -> None:
        """See ``Model``."""


_Done: TypeAlias = tuple[ToolCall, ToolResultMessage]


def _turn(messages: Sequence[Message]) -> tuple[list[UserMessage], list[_Done]]:
    """Return the input since the last final answer, and this turn's calls with their results."""
    heard: list[UserMessage] = []
    results: dict[str, ToolResultMessage] = {}
    done: list[_Done] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            heard.insert(0, message)
        elif heard or (isinstance(message, AssistantMessage) and not message.tool_calls):
            break
        elif isinstance(message, ToolResultMessage):
            results[message.tool_call_id] = message
        elif isinstance(message, AssistantMessage):
            answered = [(call, results.pop(call.id)) for call in message.tool_calls if call.id in results]
            done[:0] = [(call, result) for call, result in answered if result.text != STALE]
    return heard, done


def _finish(heard: Sequence[UserMessage], done: Sequence[_Done], misunderstood: Sequence[str]) -> Finish:
    """Return the end of the answer. Input is a command here, so it is known what became of it."""
    if misunderstood:
        return Finish(NOT_UNDERSTOOD, tuple(misunderstood))
    events = (message.event for message in heard)
    failed = any(event is not None and event.outcome not in (None, *_AS_MEANT) for event in events)
    return Finish(CALL_FAILED if failed or any(result.is_error for _, result in done) else "stop")


def _plan(heard: Sequence[UserMessage], offered: Sequence[str]) -> tuple[list[CommandStep], list[str], list[str]]:
    """Return the steps to take, with their skills by offered names, the remarks to make besides, and the inputs that
    were not understood in all of their parts."""
    misunderstood: dict[str, None] = {}
    steps: list[CommandStep] = []
    remarks: list[str] = []
    robots = robots_of(offered)
    for message in heard:
        if message.event is not None:
            continue
        for item in parse(message.text, robots):
            if isinstance(item, Misunderstood):
                remarks.append(_help(item.input, offered))
                if not _asks_for_help(item.input):
                    misunderstood[message.text] = None
                continue
            try:
                found = _offered_steps(item, offered)
            except AmbiguousRobotError as error:
                remarks.append(str(error))
                misunderstood[message.text] = None
                continue
            steps += found
            if not found and not item.cleanup:
                remarks.append(f"No skill {item.skill!r} is offered at the moment.")
                misunderstood[message.text] = None
    if not steps and not remarks and any(message.event is None for message in heard):
        remarks.append("There is nothing to stop.")
    return steps, remarks, list(misunderstood)


def _offered_steps(step: CommandStep, offered: Sequence[str]) -> list[CommandStep]:
    """Return the step with its skill's full name, or nothing if it is not offered; cleaning up is the agent's own
    tool, for all robots."""
    if step.cleanup:
        return [step] if step.skill in offered else []
    name = resolve(step.skill, step.robot, offered)
    if name is None:
        return []
    arguments = dict(step.arguments)
    then = arguments.get("then")
    if then:
        arguments["then"] = {**then, "skill": name.removesuffix(step.skill) + then["skill"]}
    return [CommandStep(name, arguments, step.robot, step.cleanup)]


def _remaining(plan: Sequence[CommandStep], done: Sequence[_Done]) -> list[CommandStep]:
    """The steps still to take. After one that failed only cleaning up is left. Calls of input that was withdrawn
    meanwhile belong to no step."""
    steps, left = list(plan), iter(done)
    while steps:
        result = next((result for call, result in left if _is(steps[0], call)), None)
        if result is None:
            break
        step = steps.pop(0)
        if result.is_error and not step.cleanup:
            steps = [later for later in steps if later.cleanup]
    return steps


def _is(step: CommandStep, call: ToolCall) -> bool:
    return call.name == step.skill and call.arguments == json.dumps(step.arguments)


def _comment(event: ToolEvent) -> str:
    if event.outcome is None:
        return f"{event.skill}: {_clip(event.text)}"
    if event.outcome is Outcome.COMPLETED:
        return f"{event.skill} is done: {_clip(event.text)}"
    return f"{event.skill} has ended ({event.outcome.value.replace('_', ' ')}): {_clip(event.text)}"


def _help(input: str, offered: Sequence[str]) -> str:
    examples = [example for skill, example in COMMANDS if any(n == skill or n.endswith(f"_{skill}") for n in offered)]
    can = "; ".join(examples) if examples else "nothing at the moment: no skill that I know is offered"
    puzzled = "" if _asks_for_help(input) else f"I don't understand {input!r}. "
    return f"{puzzled}I understand: {can}. {_OTHERWISE}"


def _asks_for_help(input: str) -> bool:
    return input.lower() in ("", "help", "what can you do")


def _clip(text: str) -> str:
    return shortened(" ".join(text.split()), _CLIP, "…")
