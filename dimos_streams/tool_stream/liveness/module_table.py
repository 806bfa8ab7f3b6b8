"""The entries of all modules, within bounds: one that shouts does not use up what others need."""

from __future__ import annotations

import logging
from collections import OrderedDict

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.module import MAX_STATE
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.instance_report import InstanceReport
from dimos_streams.tool_stream.liveness.instances import UNHEARD_S
from dimos_streams.tool_stream.liveness.module_entry import ModuleEntry
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.liveness.skill_fragments import SkillFragment
from dimos_streams.tool_stream.protocol.channels import STATUS
from dimos_streams.tool_stream.protocol.json_fields import json_object

MAX_MODULES = 1000
MAX_NEW = 256
"""Maximum number of names among these that nobody has spoken for long (``instances.ESTABLISHED_S``): anybody can make
them up."""
MAX_BYTES = 1024 * 1024
"""Maximum size, in bytes, of the schemas and states of all modules together, as JSON; in memory they are ten times as
large."""
MAX_NEW_BYTES = MAX_BYTES // 2
"""Maximum part of it for names that nobody has spoken for long."""

_log = LimitedLog(logging.getLogger(__name__))


class ModuleTable:
    """The modules by name. If there is no room, those that are gone are forgotten, the longest silent first."""

    def __init__(self) -> None:
        self.entries: OrderedDict[str, ModuleEntry] = OrderedDict()
        """The entries by name; the module silent for longest comes first."""
        self._new: OrderedDict[str, None] = OrderedDict()
        """Names that nobody has spoken for long, in the same order."""
        self.malformed = 0
        """Number of invalid states."""
        self.ignored = 0
        """Number of reports for which there was no room."""
        self.bytes = self.new_bytes = 0
        """The size, in bytes, of all entries together, and of those among them that are new."""

    def heard(self, name: str, entry: ModuleEntry) -> None:
        """Take note that a module was heard now."""
        entry.heard = clock.monotonic()
        self.entries.move_to_end(name)
        if entry.instances.established is not None:
            self._leave_new(name)
        elif name in self._new:
            self._new.move_to_end(name)
        else:
            self._new[name] = None
            self.new_bytes += entry.bytes

    def make_room(self) -> bool:
        """Forget the module silent for longest if there are too many and it is gone; return whether there is room."""
        if len(self._new) >= MAX_NEW:
            return self._forget_if_gone(next(iter(self._new)))
        return len(self.entries) < MAX_MODULES or self._forget_one()

    def _forget_one(self) -> bool:
        """Forget a module that is gone, and return whether there is one: names that nobody has spoken for long come
        before any others, and of these the one not heard for longest."""
        others = (name for name in self.entries if name not in self._new)
        worst = (next(iter(self._new), None), next(others, None))
        return any(name is not None and self._forget_if_gone(name) for name in worst)

    def _forget_if_gone(self, name: str) -> bool:
        entry = self.entries[name]
        # Where so many are heard, some that live are not.
        gone_s = ALIVE_S if entry.instances.established is None else UNHEARD_S
        if clock.monotonic() - entry.heard <= gone_s:
            return False
        self._leave_new(name)
        self.bytes -= self.entries.pop(name).bytes
        return True

    def _leave_new(self, name: str) -> None:
        if name in self._new:
            del self._new[name]
            self.new_bytes -= self.entries[name].bytes

    def _grow(self, name: str, by: int) -> None:
        """Note that what is kept of a module has grown by a number of bytes, or shrunk if that is negative."""
        self.bytes += by
        if name in self._new:
            self.new_bytes += by

    def turn_to_active(self, name: str, entry: ModuleEntry) -> None:
        """See ``ModuleEntry.turn_to_active``."""
        if grown := entry.turn_to_active():
            self._grow(name, grown)
        if self.bytes > MAX_BYTES and not self._has_room(name, 0):
            before = entry.bytes
            entry.current.forget_skills()
            self._grow(name, entry.bytes - before)

    def take_fragment(self, report: InstanceReport, status: ModuleStatus, part: SkillFragment) -> None:
        """Keep a part until all have come; while one is missing, heartbeats without any ask for them again."""
        size, before = len(status.skills_json), report.bytes
        if self._has_room(status.module, size):
            skills = report.partial.add(status.skills_version, part, size)
            if skills is not None:
                report.take_skills(status.skills_version, skills, report.partial.bytes)
        else:
            self._refuse(report, status, size * part.parts)
        self._grow(status.module, report.bytes - before)

    def take_skills(self, report: InstanceReport, status: ModuleStatus, skills: tuple[SkillInfo, ...]) -> None:
        """Take all skills that an instance offers."""
        if report.skills_text == hash(status.skills_json):
            report.skills_version = status.skills_version
            return
        size, before = len(status.skills_json), report.bytes
        if self._has_room(status.module, size - report.skills_bytes - report.partial.bytes):
            report.take_skills(status.skills_version, skills, size)
            report.skills_text = hash(status.skills_json)
        else:
            self._refuse(report, status, size)
        self._grow(status.module, report.bytes - before)

    def has_room_again(self, name: str, report: InstanceReport) -> bool:
        """Return whether there is room now for a description that found none."""
        return report.refused > 0 and self._make_room_for(name, report.refused)

    def _refuse(self, report: InstanceReport, status: ModuleStatus, size: int) -> None:
        _log.warning("modules have more than %d bytes of skills; %r has none", MAX_BYTES, status.module)
        report.take_skills(status.skills_version, (), 0)
        report.refused = size

    def _has_room(self, name: str, more: int) -> bool:
        """Return whether there is room for ``more`` bytes of a module; count it if not."""
        has_room = self._make_room_for(name, more)
        self.ignored += not has_room
        return has_room

    def _make_room_for(self, name: str, more: int) -> bool:
        """Return whether there is room for more of a module. If need be, modules that are gone are forgotten."""
        while name in self._new and self.new_bytes + more > MAX_NEW_BYTES:
            if not self._forget_if_gone(next(iter(self._new))):
                return False
        while self.bytes + more > MAX_BYTES:
            if not self._forget_one():
                return False
        return True

    def take_state(self, report: InstanceReport, status: ModuleStatus) -> None:
        """Take an instance's state. What can't be read says nothing; the rest of a heartbeat counts all the same."""
        text = status.state_json
        if report.state_text == hash(text):
            return
        report.state_text = hash(text)
        self._grow(status.module, -len(report.state_json))
        report.state_json = ""
        try:
            if len(text) > MAX_STATE:
                raise MessageError(STATUS, ModuleStatus.msg_name, f"a state of more than {MAX_STATE} bytes")
            json_object(text, STATUS, ModuleStatus.msg_name)
            if self._has_room(status.module, len(text)):
                report.state_json = text
                self._grow(status.module, len(text))
            else:
                report.state_text = hash("")  # a later heartbeat that says the same may find room
        except MessageError as error:
            self.malformed += 1
            _log.warning("skipped the state of module %r: %s", status.module, error)
