"""A warning that a detector sends detections without labels, which no description matches."""

from __future__ import annotations

from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module
from dimos_streams.streams import In


class _WarnedChannels(set[str]):
    """The channels of which this process has warned."""


def watch_labels(module: Module, detections: In[Detection2DArray]) -> None:
    """Say it once in each process, and in the module's health while it is so. Call it when the module starts.

    Some senders fill in ``results`` and leave ``results_length`` at 0: the labels get lost on their way.
    """
    services = module.context.services
    warned = services.get(_WarnedChannels)
    if warned is None:
        services.offer(_WarnedChannels, warned := _WarnedChannels())

    def look(message: Detection2DArray) -> None:
        if not message.detections:
            return
        text = f"detections on {detections.channel} have no labels (results_length is 0): no description matches them"
        if any(detection.results for detection in message.detections):
            if module.health == text:
                module.health = "ok"
            return
        if module.health == "ok":
            module.health = text
        if detections.channel not in warned:
            warned.add(detections.channel)
            module.log.warning("%s", text)

    detections.on_message(look)
