"""Estimates tokens where a server reports none: four characters are a token, and a picture is a thousand of them.

That is about right for English on most tokenizers, too little for other scripts; it is there to end what would have
no end otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    ModelRequest,
    SystemMessage,
    TokenUsage,
    ToolSchema,
    characters,
)

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_PICTURE = 1000


def estimated_usage(request: ModelRequest, received: int) -> TokenUsage:
    """The estimated usage of a request; ``received`` is the number of characters of its answer that have come,
    reasoning and arguments included."""
    sent = sum(map(characters, request.messages)) + _tools(request.tools)
    shown = (m.images for m in request.messages if not isinstance(m, SystemMessage | AssistantMessage))
    pictures = sum(map(len, shown))
    tokens = pictures * TOKENS_PER_PICTURE + _tokens(sent)
    return TokenUsage(tokens, _tokens(received), estimated=True)


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _tools(tools: Iterable[ToolSchema]) -> int:
    return sum(len(tool.name) + len(tool.description) + len(json.dumps(dict(tool.parameters))) for tool in tools)
