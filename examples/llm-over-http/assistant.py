"""An assistant with a language model of its own: skills are its tools, what they say later are messages to it."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

BRIDGE = os.environ.get("BRIDGE_URL", "http://127.0.0.1:7780")
SCRIPT = json.loads(Path("script.json").read_text(encoding="utf-8"))


def ask(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The model's next message, from a server that speaks OpenAI's chat completions or else from the script."""
    if "MODEL_URL" not in os.environ:
        return SCRIPT.pop(0)
    body = {"model": os.environ["MODEL"], "messages": messages, "tools": tools}
    key = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    reply = requests.post(f"{os.environ['MODEL_URL']}/chat/completions", json=body, headers=key, timeout=120)
    reply.raise_for_status()
    return reply.json()["choices"][0]["message"]


def call(function: dict[str, Any]) -> dict[str, Any]:
    """Begin a call and wait for its answer, which may not be its end."""
    body = {"skill": function["name"], "arguments": json.loads(function["arguments"]), "caller": "assistant"}
    return requests.post(f"{BRIDGE}/calls?wait=answer", json=body, timeout=60).json()


def later(begun: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a call behind its answer, until it is closed; the bridge has kept those that came meanwhile."""
    with requests.get(f"{BRIDGE}/tool_streams?call={begun['call_id']}&from=1", stream=True, timeout=60) as stream:
        for line in stream.iter_lines():
            event = json.loads(line[5:]) if line.startswith(b"data:") else {"seq": 0}
            if event["seq"] > begun["last_seq"]:
                yield event
                if event["type"] == "close":
                    return


try:
    skills = [s for s in requests.get(f"{BRIDGE}/skills", timeout=5).json() if s["audience"] == "everyone"]
except requests.RequestException:
    sys.exit(f"no bridge answers at {BRIDGE}: BRIDGE_URL names another one")
fields = ("name", "description", "parameters")
tools = [{"type": "function", "function": {field: skill[field] for field in fields}} for skill in skills]
messages, going = [{"role": "user", "content": " ".join(sys.argv[1:])}], []
while (said := ask(messages, tools)).get("tool_calls") or going:
    messages.append(said)
    for asked in said.get("tool_calls") or []:
        begun = call(asked["function"])
        answer = begun.get("answer") or begun["detail"]  # what is refused has a detail instead
        messages.append({"role": "tool", "tool_call_id": asked["id"], "content": answer})
        print(f"{asked['function']['name']}: {answer}")
        going += [begun] if begun.get("state") == "open" else []
    if not said.get("tool_calls"):
        print(f"assistant: {said['content']}")
        for event in later(going.pop(0)):
            print(f"{event['skill']}: {event['type']}: {event['text']}")
            if event["type"] != "progress":
                messages.append({"role": "user", "content": f"[{event['skill']}] {event['text']}"})
print(f"assistant: {said['content']}")
