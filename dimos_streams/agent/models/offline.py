"""A model without a language model: it understands a few commands, and is the same every time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

from dimos_streams.agent.models.base import (
    AssistantMessage,
    Finish,
    Message,
    ModelDelta,
    ModelRequest,
    TextDelta,
    ToolCallDelta,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from dimos_streams.agent.models.commands import COMMANDS, Ambiguous, Misunderstood, Step, parse, resolve, robots_of
from dimos_streams.tool_stream.event import Outcome, ToolEvent

_CLIP = 300


class OfflineModel:
    """Turns an operator's commands into calls, one per answer, and says in a line what became of them.

    Each answer is a function of the request alone. A step that failed ends the rest of its command, but for cleaning
    up. Events get a short comment.
    """

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        heard, results = _turn(request.messages)
        offered = [tool.name for tool in request.tools]
        plan, remarks = _plan(heard, offered)
        steps = _remaining(plan, results)
        if steps:
            step, number = steps[0], len(results) + 1
            yield ToolCallDelta(index=0, id=f"call_{number}", name=step.skill, arguments=json.dumps(step.arguments))
            yield Usage()
            yield Finish("tool_calls")
            return
        comments = [_comment(message.event) for message in heard if message.event is not None]
        answers = [
            f"{result.name}: {_clip(result.text.splitlines()[0] if result.text else '')}" for result in results
        ]
        lines = [*comments, *answers, *remarks]
        if lines:
            yield TextDelta("\n".join(lines))
        yield Usage()
        yield Finish("stop")

    async def close(self) -> None:
        """See ``Model``."""


def _turn(messages: Sequence[Message]) -> tuple[list[UserMessage], list[ToolResultMessage]]:
    """What was said since the last final answer, and the results that this turn's calls have had."""
    heard: list[UserMessage] = []
    results: list[ToolResultMessage] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            heard.insert(0, message)
        elif heard or (isinstance(message, AssistantMessage) and not message.tool_calls):
            break
        elif isinstance(message, ToolResultMessage):
            results.insert(0, message)
    return heard, results


def _plan(heard: Sequence[UserMessage], offered: Sequence[str]) -> tuple[list[Step], list[str]]:
    """The steps to take, their skills by offered names, and what is to be said besides."""
    steps: list[Step] = []
    remarks: list[str] = []
    robots = robots_of(offered)
    for message in heard:
        if message.event is not None:
            continue
        for item in parse(message.text, robots):
            if isinstance(item, Misunderstood):
                remarks.append(_help(item.words, offered))
                continue
            try:
                found = _offered_steps(item, offered)
            except Ambiguous as error:
                remarks.append(str(error))
                continue
            steps += found
            if not found and not item.cleanup:
                remarks.append(f"No skill {item.skill!r} is offered at the moment.")
    if not steps and not remarks and any(message.event is None for message in heard):
        remarks.append("There is nothing to stop.")
    return steps, remarks


def _offered_steps(step: Step, offered: Sequence[str]) -> list[Step]:
    """The step with its skill's full name; cleaning up is the agent's own tool, for all robots."""
    if step.cleanup:
        return [step] if step.skill in offered else []
    name = resolve(step.skill, step.robot, offered)
    if name is None:
        return []
    arguments = dict(step.arguments)
    then = arguments.get("then")
    if then:
        arguments["then"] = {**then, "skill": name.removesuffix(step.skill) + then["skill"]}
    return [Step(name, arguments, step.robot, step.cleanup)]


def _remaining(plan: Sequence[Step], results: Sequence[ToolResultMessage]) -> list[Step]:
    """The steps still to take. After one that failed only cleaning up is left."""
    steps = list(plan)
    for number, (step, result) in enumerate(zip(plan, results, strict=False)):
        if result.is_error and not step.cleanup:
            steps[number + 1 :] = [later for later in plan[number + 1 :] if later.cleanup]
            break
    return steps[len(results) :]


def _comment(event: ToolEvent) -> str:
    if event.outcome is None:
        return f"{event.skill}: {_clip(event.text)}"
    if event.outcome is Outcome.COMPLETED:
        return f"{event.skill} is done: {_clip(event.text)}"
    return f"{event.skill} has ended ({event.outcome.value.replace('_', ' ')}): {_clip(event.text)}"


def _help(words: str, offered: Sequence[str]) -> str:
    examples = [example for skill, example in COMMANDS if any(n == skill or n.endswith(f"_{skill}") for n in offered)]
    can = "; ".join(examples) if examples else "nothing at the moment: no skill that I know is offered"
    asked = words.lower() in ("", "help", "what can you do")
    return f"I understand: {can}." if asked else f"I don't understand {words!r}. I understand: {can}."


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CLIP else f"{line[: _CLIP - 1]}…"
