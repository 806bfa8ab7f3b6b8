"""The writing of heartbeats, of which most say what their module has said before, only later."""

from __future__ import annotations

from collections.abc import Sequence

from dimos_streams import clock
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.liveness.heartbeat import BEGIN, TIME, TIME_AT
from dimos_streams.tool_stream.liveness.instances import Instance

_Said = tuple[str, str, str, tuple[tuple[str, int], ...]]


class HeartbeatWriter:
    """A writer of an instance's heartbeats that encodes one anew only if it differs in more than its time from the
    one before of its module."""

    def __init__(self, own: Instance) -> None:
        self._own = own
        self._kept: dict[str, tuple[_Said, bytes, bytes]] = {}
        """What each module has said last without a description of skills, and the bytes before the time and after
        it."""

    def encoded(
        self,
        module: str,
        *,
        health: str,
        skills_version: str,
        skills_json: str,
        state_json: str,
        calls: Sequence[tuple[str, int]],
    ) -> bytes:
        """Return a heartbeat of this moment; ``calls`` have their last seqs with them. Raises ``MessageError``."""
        said = health, skills_version, state_json, tuple(calls)
        if not skills_json and (kept := self._kept.get(module)) is not None and kept[0] == said:
            return b"".join((kept[1], TIME.pack(clock.utime()), kept[2]))
        status = ModuleStatus(
            utime=clock.utime(),
            module=module,
            instance=self._own.id,
            pid=self._own.pid,
            host=self._own.host,
            started_utime=self._own.started_utime,
            health=health,
            skills_version=skills_version,
            skills_json=skills_json,
            call_ids=[call_id for call_id, _ in calls],
            last_seqs=[seq for _, seq in calls],
            state_json=state_json,
        )
        data = encode(status)
        if not skills_json:
            self._kept[module] = said, data[:TIME_AT], data[BEGIN:]
        return data
