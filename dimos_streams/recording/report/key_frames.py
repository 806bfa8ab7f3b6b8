"""Pictures of the moments that matter, with what the detector saw in them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dimos_streams.common.names import namespace_of, namespace_of_topic
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.messages.detections import box_of, title_of
from dimos_streams.messages.image import JPEG, array_from_image, image_from_array
from dimos_streams.messages.picture_files import check_claim
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.time import utime_of
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.report.markup import cut
from dimos_streams.recording.report.model import DetectionBox, KeyFrame, KeyMoment, Recorded, ReportedCall

MOST = 12
MAX_BYTES = 2_500_000
"""Maximum size of all pictures together, in bytes."""
_NEAR_US = 2_000_000
"""A picture that is farther away does not show the moment."""
_DETECTED_US = 500_000
"""The longest time after a picture until what was detected in it is known."""
_DETECTIONS = 4
"""The number of a detector's messages that are kept: a picture's comes after it, perhaps before the moment."""
_NOT_COLOUR = ("depth", "instance", "mask", "label")
_MAX_CAPTION = 160
_MAX_BOXES = 20


def is_picture(channel: str) -> bool:
    """Return whether a channel has pictures that people look at, by its names."""
    topic, type_name = split_channel(channel)
    return type_name == Image.msg_name and not any(word in topic for word in _NOT_COLOUR)


@dataclass(slots=True)
class _Shot:
    """A picture that is being taken."""

    wanted: list[tuple[int, str]]
    """The moments that it shows, with captions."""
    robot: str
    event: LogEvent | None = None
    stamp: int = 0
    boxes: tuple[DetectionBox, ...] = ()


@dataclass(slots=True)
class _Camera:
    """The newest picture and detections of a robot."""

    picture: LogEvent | None = None
    detections: deque[LogEvent] = field(default_factory=lambda: deque(maxlen=_DETECTIONS))
    shots: list[_Shot] = field(default_factory=list)
    """Shots whose detections may still come."""

    def detected(self, event: LogEvent) -> None:
        """Take a message of its detector."""
        self.detections.append(event)
        self.shots = [shot for shot in self.shots if _is_undetected(shot, event.utime)]
        for shot in self.shots:
            _detect(shot, event)


class KeyFrames:
    """Chooses moments of a recording, and reads their pictures out of it."""

    def __init__(self, recorded: Recorded) -> None:
        self.left_out = 0
        """The number of pictures beyond ``MAX_BYTES``."""
        self._recorded = recorded
        self._cameras: dict[str, _Camera] = {}
        self._waiting = [_Shot([(moment.utime, caption)], robot) for moment, robot, caption in _chosen(recorded)]
        self._shots: list[_Shot] = []

    def read(self, events: Iterable[LogEvent]) -> list[KeyFrame]:
        """The key frames, in the order of time."""
        if not self._waiting or not self._recorded.has_pictures:
            return []
        namespaces = self._recorded.namespaces
        for event in events:
            self._shoot(event.utime)
            topic, type_name = split_channel(event.channel)
            if is_picture(event.channel):
                robot = namespace_of_topic(topic, namespaces)
                self._cameras.setdefault(robot, _Camera()).picture = event
            elif type_name == Detection2DArray.msg_name:
                camera = self._cameras.get(namespace_of_topic(topic, namespaces))
                if camera is not None:
                    camera.detected(event)
        self._shoot(self._recorded.last + _NEAR_US)
        return list(self._developed())

    def _shoot(self, utime: int) -> None:
        """Take the pictures of the moments that are over."""
        while self._waiting and self._waiting[0].wanted[0][0] <= utime:
            shot = self._waiting[0]
            camera = self._cameras.get(shot.robot) or next(iter(self._cameras.values()), None)
            at = shot.wanted[0][0]
            if camera is None or camera.picture is None:
                if utime - at <= _NEAR_US:
                    return  # the first one may be about to come
            elif abs(camera.picture.utime - at) <= _NEAR_US:
                self._keep(camera, camera.picture, shot)
            self._waiting.pop(0)

    def _keep(self, camera: _Camera, picture: LogEvent, shot: _Shot) -> None:
        last = self._shots[-1] if self._shots else None
        if last is not None and last.event is picture:
            last.wanted += shot.wanted
            return
        try:
            shot.stamp = utime_of(decode(Image, picture.data, picture.channel).header)
        except MessageError:
            return  # it is counted when it is to be shown
        shot.event = picture
        self._shots.append(shot)
        for event in camera.detections:
            _detect(shot, event)
        camera.shots = [*camera.shots[-3:], shot]

    def _developed(self) -> Iterator[KeyFrame]:
        size = 0
        for shot in self._shots:
            frame = self._frame(shot)
            if frame is None:
                continue
            if size + len(frame.jpeg) > MAX_BYTES:
                self.left_out += 1
                continue
            size += len(frame.jpeg)
            yield frame

    def _frame(self, shot: _Shot) -> KeyFrame | None:
        event = shot.event
        assert event is not None, "it was taken"
        try:
            image = decode(Image, event.data, event.channel)
            if image.encoding != JPEG:
                image = image_from_array(array_from_image(image), JPEG, image.header)
            check_claim(bytes(image.data))
        except (MessageError, UserError):
            unreadable = self._recorded.unreadable
            unreadable[event.channel] = unreadable.get(event.channel, 0) + 1
            return None
        topic = split_channel(event.channel)[0]
        jpeg = bytes(image.data)
        return KeyFrame(event.utime, topic, jpeg, image.width, image.height, shot.boxes, tuple(shot.wanted))


def _is_undetected(shot: _Shot, utime: int) -> bool:
    """Return whether the detections of a picture are still to be expected."""
    return not shot.boxes and shot.event is not None and utime - shot.event.utime <= _DETECTED_US


def _detect(shot: _Shot, event: LogEvent) -> None:
    """Keep what was seen in a picture, if a message is about that one."""
    try:
        message = decode(Detection2DArray, event.data, event.channel)
    except MessageError:
        return  # it shows in the count of what can't be read
    if shot.stamp == utime_of(message.header):
        shot.boxes = tuple(_boxes(message))


def _chosen(recorded: Recorded) -> list[tuple[KeyMoment, str, str]]:
    """The moments that matter most, in the order of time, each with its robot and a caption."""
    ranked: dict[int, list[tuple[KeyMoment, str, str]]] = {}
    for call in recorded.calls:
        for moment in call.moments:
            rank = _rank(call, moment)
            if rank is not None:
                robot = namespace_of(call.module)
                ranked.setdefault(rank, []).append((moment, robot, _caption(call, moment)))
    chosen: list[tuple[KeyMoment, str, str]] = []
    for rank in sorted(ranked):
        chosen += _spread(ranked[rank], MOST - len(chosen))
    return sorted(chosen, key=lambda each: each[0].utime)


def _rank(call: ReportedCall, moment: KeyMoment) -> int | None:
    """Return the rank of a moment, 0 for those that matter most, or None if its picture would tell nothing."""
    if call.is_talk or moment.type == "gap":
        return None
    if moment.type == "close":
        return 2 if call.outcome in ("completed", "cancelled") else 0
    if moment.type == "update":
        return 1 if moment.event else 3
    return 4 if call.resources else None


def _caption(call: ReportedCall, moment: KeyMoment) -> str:
    said = f"{call.outcome}: {moment.text}" if moment.type == "close" else moment.text
    return cut(f"{call.skill}: {said}" if moment.type != "open" else said, _MAX_CAPTION)


def _spread(moments: list[tuple[KeyMoment, str, str]], room: int) -> list[tuple[KeyMoment, str, str]]:
    """Return as many moments as there is room for, evenly out of all."""
    if len(moments) <= room:
        return moments
    return [moments[index * len(moments) // room] for index in range(room)] if room > 0 else []


def _boxes(message: Detection2DArray) -> Iterator[DetectionBox]:
    for one in message.detections[:_MAX_BOXES]:
        left, top, right, bottom = box = box_of(one)
        if all(map(math.isfinite, box)) and right > left and bottom > top:
            yield DetectionBox(title_of(one), left, top, right - left, bottom - top)
