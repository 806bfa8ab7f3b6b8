"""The settings that an operator had changed before a module's life began in a log, as its heartbeats say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.recording.format import LogEvent
from dimos_streams.tool_stream.hosting.settings_change import SET, kept_assignments
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.wire.unpacking import unpack_event

Assignments = Mapping[str, str]
"""Values of settings as the texts that give them."""


def initial_settings(events: Iterable[LogEvent], modules: Collection[str]) -> dict[str, Assignments]:
    """Return what was set in each of the modules when the log begins, as in a part that was cut out of a longer one.

    Only a heartbeat before the first change in the log counts: later ones have what is set again at its moment. Nor
    does one that describes skills: in a part it may be from before the part, and from before a change.
    """
    found: dict[str, Assignments] = {}
    wanted = set(modules)
    for event in events:
        if not wanted:
            break
        try:
            if event.channel == STATUS:
                status = decode(ModuleStatus, event.data, STATUS)
                if status.module in wanted and not status.skills_json:
                    found[status.module] = kept_assignments(status.state_json)
                    wanted.discard(status.module)
            elif event.channel == EVENTS and (said := unpack_event(event.data)).skill == SET:
                wanted.discard(said.module)
        except MessageError:  # damaged; whoever reads it skips it
            continue
    return found
