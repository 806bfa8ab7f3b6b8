"""The recording that ``run --record`` was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.kinds import RECORDER
from dimos_streams.blueprint.machines import machines_of
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.wiring import external_channels, ports_of
from dimos_streams.bus import Bus
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.common.process.disk import real_path
from dimos_streams.common.process.ownership import refuse_strangers
from dimos_streams.errors import UserError, cannot_write, suggest
from dimos_streams.messages.codec import split_channel
from dimos_streams.recording.files.older import check_replaceable, replacing
from dimos_streams.recording.metadata import Metadata
from dimos_streams.recording.recorder import RecordingOptions, recording
from dimos_streams.recording.selection import Selection
from dimos_streams.tool_stream.protocol.channels import OF_CALLS

NAME = "recorder"


@dataclass(frozen=True, kw_only=True)
class RecordPlan:
    """The plan of a run's recording: its file, and what it contains."""

    path: Path
    """The file itself, whatever link leads there."""
    channels: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    split_mb: float | None = None

    @classmethod
    def of(cls, request: RunRequest) -> Self | None:
        """Return the plan that a request states, or None without ``--record``. Raises ``UserError`` for a name that
        another user has made a link of."""
        if request.record is None:
            return None
        try:
            refuse_strangers(request.record)  # of the file itself it is not to be seen how it was found
        except OSError as error:
            raise cannot_write(f"log {str(request.record)!r}", error) from error
        return cls(
            path=real_path(request.record),
            channels=tuple(request.record_channels or ()),
            without=tuple(request.record_without or ()),
            split_mb=request.record_split_mb,
        )

    @property
    def selection(self) -> Selection:
        """The channels that are recorded."""
        return Selection(self.channels, self.without)

    def check(self) -> None:
        """Raise ``UserError`` if the recording can't be made because of what is there under its name."""
        check_replaceable(self.path, splits=self.split_mb is not None)

    def replacing(self) -> AbstractContextManager[None]:
        """Return the context in which the run starts: an older recording of that name is replaced if it does."""
        return replacing(self.path)

    def attachment(self, bus: Bus, metadata: Metadata) -> AbstractAsyncContextManager[object]:
        """Return the context that records a run in this process."""
        return recording(
            bus,
            RecordingOptions(
                path=self.path,
                selection=self.selection,
                split_bytes=None if self.split_mb is None else int(self.split_mb * 1e6),
                metadata=metadata,
            ),
        )

    def add_to(self, blueprint: Blueprint, metadata: Metadata) -> Blueprint:
        """Return the blueprint, or a machine's part of one, with a recorder in a process of its own, which starts
        first and stops last."""
        if NAME in blueprint.modules:
            raise UserError(f"blueprint {blueprint.name!r} has a module {NAME!r} already; leave out --record")
        config = {
            "path": str(self.path),
            "channels": list(self.channels),
            "without": list(self.without),
            "split_mb": self.split_mb,
            "metadata": metadata.model_dump(mode="json"),
        }
        here = next(iter(machines_of(blueprint)), None)  # a part has one; all of it may run on any
        spec = ModuleSpec(name=NAME, type=RECORDER, config=config, machine=here)
        return blueprint.model_copy(update={"modules": {NAME: spec, **blueprint.modules}})


def unused_patterns(record: RecordPlan, blueprint: Blueprint) -> Iterator[str]:
    """Yield a line for each pattern, of what is to be recorded and of what is to be left out, that fits no channel of
    the run, as far as its blueprint says.

    The recording itself could tell too late, or not at all: a picture that is left out may not be made.
    """
    channels = {*OF_CALLS, *external_channels(blueprint)}
    for spec in blueprint.modules.values():
        channels.update(c for port in ports_of(spec, module_class(spec)) if port.topic for c in port.channels)
    topics = sorted(split_channel(channel)[0] for channel in channels)
    patterns = [("--record-channels", "records nothing", pattern) for pattern in record.channels]
    patterns += [("--record-without", "leaves nothing out", pattern) for pattern in record.without]
    for option, what, pattern in patterns:
        if not any(map(Selection([pattern]), channels)):
            names = sorted(channels) if "#" in pattern else topics
            near = suggest(pattern, [] if set("*?[") & set(pattern) else names)
            yield f"{option} {pattern!r} {what}: no channel of the blueprint fits it{near}"
