"""What the files for containers say: instructions of the Dockerfile, services of compose, commands of ours."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
COMPOSE = ROOT / "docker" / "compose.yaml"
README = ROOT / "docker" / "README.md"
_PROGRAM = "dimos-streams"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, with their arguments on one line."""
    text = "\n".join(line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#"))
    lines = [line for line in text.replace("\\\n", "").splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, _, rest in (line.partition(" ") for line in lines)]


def services() -> dict[str, dict[str, Any]]:
    """The services of ``compose.yaml``, with anchors resolved; variables are as they stand there."""
    with COMPOSE.open() as file:
        loaded: dict[str, dict[str, Any]] = YAML(typ="safe").load(file)["services"]
    return loaded


def own_services() -> dict[str, dict[str, Any]]:
    """Those of them that run our image."""
    return {name: service for name, service in services().items() if _PROGRAM in service["image"]}


def commands() -> dict[str, list[str]]:
    """The arguments of all commands of dimos-streams in these files, by the place where each stands."""
    found = [*_of_dockerfile(), *_of_compose(), *_of_readme()]
    assert len({place for place, _ in found}) == len(found)
    return {place: arguments for place, arguments in found if arguments}


def _of_dockerfile() -> Iterator[tuple[str, list[str]]]:
    for name, rest in instructions():
        if name == "CMD":
            yield "Dockerfile CMD", json.loads(rest)
        elif name == "HEALTHCHECK" and rest != "NONE":
            yield "Dockerfile HEALTHCHECK", _after_program(json.loads(rest.partition("CMD ")[2]))


def _of_compose() -> Iterator[tuple[str, list[str]]]:
    for name, service in own_services().items():
        if "entrypoint" in service:  # a shell's
            words = shlex.split(service["command"][0])
            for number, start in enumerate(index for index, word in enumerate(words) if word == _PROGRAM):
                yield f"compose.yaml {name} {number}", _up_to_operator(words[start + 1 :])
        elif "command" in service:
            yield f"compose.yaml {name}", list(map(str, service["command"]))
        test = service.get("healthcheck", {}).get("test", ())
        if _PROGRAM in test:
            yield f"compose.yaml {name}.healthcheck", _after_program(test)


def _of_readme() -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(shell_lines(), 1):
        words = shlex.split(line, comments=True)
        if "--rm" in words and "cli" in words:
            yield f"README.md command {number}", words[words.index("cli") + 1 :]
        elif _PROGRAM in words and "build" not in words:
            yield f"README.md command {number}", _after_program(words)


def shell_lines() -> list[str]:
    """The lines of all shell blocks of the README."""
    text = "".join(_BLOCK.findall(README.read_text())).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip()]


def _after_program(words: Sequence[str]) -> list[str]:
    """What follows on the program, or on the image of its name, which has it as its entry point."""
    return list(words[words.index(_PROGRAM) + 1 :])


def _up_to_operator(words: Sequence[str]) -> list[str]:
    return list(takewhile(lambda word: word not in ("&&", "||", ";"), words))


def variables(service: Mapping[str, Any]) -> Mapping[str, Any]:
    """The environment of a service."""
    environment = service.get("environment", {})
    assert isinstance(environment, Mapping)
    return environment
