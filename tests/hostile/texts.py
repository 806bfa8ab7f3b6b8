"""JSON that nobody should send: deep, long, no numbers, of the wrong shape."""

from __future__ import annotations

HOSTILE_JSON = (
    "[" * 30_000,
    "[" * 150 + "]" * 150,
    '{"a":' * 9_000 + "1" + "}" * 9_000,
    '{"description": ' + "[" * 180 + "]" * 180 + "}",
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"angle_deg": 1e999}',
    '{"angle_deg": -1e308}',
    '{"angle_deg": ' + "9" * 5_000 + "}",
    '{"description": ' + "9" * 40_000 + "}",
    '{"description": "' + "a" * 45_000 + '"}',
    '{"description": "\\ud800"}',
    '{"description": "\\u0000\\u202e"}',
    '{"outcome": [], "result": {}, "arguments": 5, "resources": [[]], "parent": {}}',
    '{"outcome": "completed", "coalesced": 1e300}',
    '{"description": null, "then": {"skill": "turn", "arguments": {"angle_deg": "$label"}}}',
    "{" + ", ".join(f'"k{n}": {n}' for n in range(4_000)) + "}",
    "null",
    "5",
    '"text"',
    "{",
)
