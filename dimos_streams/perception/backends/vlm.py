"""Detections by any vision model behind an OpenAI-compatible server."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dimos_streams import clock
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import well_formed_json
from dimos_streams.common.secrets import redacted, without_user
from dimos_streams.errors import UserError
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.std_msgs import Header
from dimos_streams.perception.config import VlmSettings
from dimos_streams.perception.detector import Detection, DetectorError, Frame
from dimos_streams.perception.geometry import Box, box_point


class _Strict(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class _Found(_Strict):
    description: str
    label: str = ""
    score: float = Field(ge=0.0, le=1.0)
    box: Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=4, max_length=4)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        left, top, right, bottom = self.box
        if not (left < right and top < bottom):
            raise ValueError(f"box {self.box!r} is not [left, top, right, bottom]")
        return self


class _Reply(_Strict):
    detections: list[_Found]


class _Message(_Strict):
    content: str


class _Choice(_Strict):
    message: _Message


class _Completion(_Strict):
    choices: Annotated[list[_Choice], Field(min_length=1)]


class VlmDetector:
    """Asks a vision model where the wanted descriptions are. `detect` blocks for as long as the model takes.

    Raises UserError without a model's name, and in virtual time, which its server does not keep."""

    def __init__(self, settings: VlmSettings) -> None:
        if clock.is_virtual():
            raise UserError("the detector backend 'vlm' asks a server, which keeps no virtual time: set another one")
        if not settings.model:
            raise UserError("the detector backend 'vlm' needs the name of a model: set vlm.model")
        from dimos_streams.perception.backends.chat_client import ChatClient

        self._settings = settings
        self._client = ChatClient(settings.base_url, settings.api_key_env, settings.timeout_s)

    def detect(self, frame: Frame, wanted: Sequence[str]) -> list[Detection]:
        """The detections that the model sees of `wanted`; nothing wanted costs no request.

        Labels are the descriptions themselves, the model's own words follow in `further_labels`. Raises
        DetectorError when the server fails, stays silent or answers something else than boxes, ValueError for
        a frame without a colour image."""
        if frame.rgb is None:
            raise ValueError("a vision model needs a frame with a colour image")
        if not wanted:
            return []
        reply = parse_reply(self._ask(frame.rgb, wanted))
        asked = (found for found in reply.detections if found.description in wanted)
        detections = [self._detection(frame, found) for found in asked]
        return [detection for detection in detections if detection.box.area > 0.0]

    def close(self) -> None:
        """Hangs up, also on a request that another thread waits for; that one then raises DetectorError."""
        self._client.close()

    def _ask(self, rgb: NDArray[np.uint8], wanted: Sequence[str]) -> str:
        """The words of the model's answer."""
        body = self._client.complete(self._request(rgb, wanted))
        try:
            completion = _Completion.model_validate_json(well_formed_json(body))
            return redacted(completion.choices[0].message.content)
        except ValidationError as error:
            where = without_user(self._settings.base_url)
            raise DetectorError(f"{where!r} answered no completion: {first_problem(error, 'body')}") from error

    def _request(self, rgb: NDArray[np.uint8], wanted: Sequence[str]) -> dict[str, Any]:
        height, width = rgb.shape[:2]
        jpeg = bytes(image_from_array(rgb, "jpeg", Header(), self._settings.quality).data)
        url = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
        content = [
            {"type": "text", "text": prompt(wanted, width, height, self._settings.coordinates)},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        return {
            "model": self._settings.model,
            "messages": [{"role": "user", "content": content}],
        }

    def _detection(self, frame: Frame, found: _Found) -> Detection:
        camera = frame.camera
        box = Box(*found.box)
        if self._settings.coordinates == "thousandths":
            box = box.scaled(camera.width / 1000, camera.height / 1000)
        box = box.clipped(camera.width, camera.height)
        point = None if frame.depth is None else box_point(camera, frame.depth, box)
        further = ((redacted(found.label), found.score),) if found.label and found.label != found.description else ()
        return Detection(box=box, label=found.description, score=found.score, point=point, further_labels=further)


def prompt(wanted: Sequence[str], width: int, height: int, coordinates: str) -> str:
    """The text that the model gets besides the image."""
    scale = (
        f"in pixels of this image, which is {width} wide and {height} high"
        if coordinates == "pixels"
        else "in thousandths of the image's width and height (0 to 1000)"
    )
    return (
        f"Find in the image everything that fits one of these descriptions: {json.dumps(list(wanted))}.\n"
        'Answer with JSON only: {"detections": [{"description": …, "label": …, "score": …, "box": '
        "[left, top, right, bottom]}]}.\n"
        '"description" is one of the given ones, word for word; "label" says in a few words what you see '
        f'there; "score" is how sure you are, 0 to 1; "box" is {scale}. Leave out what you do not see: '
        '{"detections": []} if nothing fits.'
    )


def parse_reply(text: str) -> _Reply:
    """The detections in a model's answer, which may stand in a code fence.

    Raises DetectorError, with the beginning of the text, if they are not what was asked for."""
    fenced = re.search(r"```[a-zA-Z]*\s*(.*?)```", text, re.DOTALL)
    try:
        return _Reply.model_validate_json(well_formed_json(fenced[1] if fenced else text))
    except ValidationError as error:
        raise DetectorError(f"the model answered {text[:200]!r}: {first_problem(error, 'body')}") from error
