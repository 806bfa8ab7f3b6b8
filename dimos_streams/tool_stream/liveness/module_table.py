"""What is kept of each module, within bounds: who shouts does not use up what others need."""

from __future__ import annotations

import logging

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.module import MAX_STATE
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.event import STATUS, json_object
from dimos_streams.tool_stream.liveness.module_entry import ModuleEntry
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.liveness.skill_parts import PartialSkills, SkillPart

MAX_MODULES = 1000
MAX_BYTES = 1024 * 1024
"""The size of the schemas and states of all modules together, as JSON; in memory they are ten times as large."""

_log = LimitedLog(logging.getLogger(__name__))


class ModuleTable:
    """The modules by name. Where there is no room, those that are gone are forgotten, the longest silent first."""

    def __init__(self) -> None:
        self.entries: dict[str, ModuleEntry] = {}
        self.malformed = 0
        """States that are none."""
        self.ignored = 0
        """What there was no room for."""
        self._bytes = 0
        """The size of all entries together."""

    def make_room(self) -> bool:
        """Forget the module that has been silent for longest, if there are too many and it is gone."""
        if len(self.entries) < MAX_MODULES:
            return True
        name = min(self.entries, key=lambda name: self.entries[name].heard)
        return self._forget_if_gone(name)

    def _forget_if_gone(self, name: str) -> bool:
        if clock.monotonic() - self.entries[name].heard <= ALIVE_S:
            return False
        self._bytes -= self.entries.pop(name).bytes
        return True

    def take_part(self, entry: ModuleEntry, status: ModuleStatus, part: SkillPart) -> None:
        """Keep a part until all have come; while one is missing, heartbeats without any ask for them again."""
        size, before = len(status.skills_json), entry.bytes
        if self._has_room(entry, size + before):
            skills = entry.partial.add(status.skills_version, part, size)
            size = entry.partial.bytes
        else:
            _log.warning("modules have more than %d bytes of skills; %r has none", MAX_BYTES, status.module)
            size, skills = 0, ()
        if skills is not None:
            entry.skills_version, entry.skills, entry.skills_text = status.skills_version, skills, 0
            entry.skills_bytes, entry.partial = size, PartialSkills()
        self._bytes += entry.bytes - before

    def take_skills(self, entry: ModuleEntry, status: ModuleStatus, skills: tuple[SkillInfo, ...]) -> None:
        entry.skills_version = status.skills_version
        if entry.skills_text == hash(status.skills_json):
            return
        size = len(status.skills_json)
        if not self._has_room(entry, size + len(entry.state_json)):
            _log.warning("modules have more than %d bytes of skills; %r has none", MAX_BYTES, status.module)
            size, skills = 0, ()
        self._bytes += size - entry.skills_bytes - entry.partial.bytes
        entry.partial = PartialSkills()
        entry.skills, entry.skills_text, entry.skills_bytes = skills, hash(status.skills_json), size

    def _has_room(self, entry: ModuleEntry, size: int) -> bool:
        """Whether a module may say so much more. If need be, those that are gone are forgotten."""
        excess = self._bytes - entry.bytes + size - MAX_BYTES
        if excess > 0:
            for name in sorted(self.entries, key=lambda name: self.entries[name].heard):
                bytes = self.entries[name].bytes
                if excess > 0 and self._forget_if_gone(name):
                    excess -= bytes
        self.ignored += excess > 0
        return excess <= 0

    def take_state(self, entry: ModuleEntry, status: ModuleStatus) -> None:
        """Take a module's state. What can't be read says nothing; the rest of the heartbeat counts all the same."""
        text = status.state_json
        if entry.state_text == hash(text):
            return
        entry.state_text = hash(text)
        self._bytes -= len(entry.state_json)
        entry.state_json = ""
        try:
            if len(text) > MAX_STATE:
                raise MessageError(STATUS, ModuleStatus.msg_name, f"a state of more than {MAX_STATE} bytes")
            json_object(text, STATUS, ModuleStatus.msg_name)
            if self._has_room(entry, len(text) + entry.skills_bytes + entry.partial.bytes):
                entry.state_json = text
                self._bytes += len(text)
        except MessageError as error:
            self.malformed += 1
            _log.warning("skipped the state of module %r: %s", status.module, error)
