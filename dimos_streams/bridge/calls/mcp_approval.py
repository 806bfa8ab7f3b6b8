"""The treatment of MCP clients' calls that need an approval."""

from __future__ import annotations

from typing import Literal, TypeAlias

McpApproval: TypeAlias = Literal["refuse", "client"]
"""The treatment of MCP clients' calls of skills with ``approval="ask"``: refused, or left to the client's user."""
