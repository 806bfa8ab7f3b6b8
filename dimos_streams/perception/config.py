"""Settings of the detector module, its backends and its tracker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from dimos_streams.common.importing import is_reference
from dimos_streams.common.schemas.bounds import Bounds
from dimos_streams.common.schemas.http_url import checked_http_url
from dimos_streams.errors import suggest
from dimos_streams.live_settings import Live
from dimos_streams.module import ModuleConfig

NAMES = ("segmentation", "hog", "onnx", "vlm")
"""The names of our own backends."""

Share = Annotated[float, Field(ge=0.0, le=1.0)]
NotNegative = Annotated[float, Field(ge=0.0)]

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationSettings:
    """The backend that reads an instance image.

    Attributes:
        min_pixels: how many pixels of the instance image must show of a thing.
    """

    __pydantic_config__ = _CONFIG

    min_pixels: Annotated[int, Field(ge=1)] = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class HogSettings:
    """The backend that finds standing people in the colour image.

    Attributes:
        threshold: the support vector machine's margin from which a window counts.
        upscale: the windows are 128 pixels high, so small images are enlarged first.
        border: pixels added around the enlarged image, for people at its edge.
        min_height: metres; with depth, boxes of other heights are no people.
        max_height: metres.
        chest: metres above the floor, lowest and highest, between which the middle of an upper body is.
        overlap: of two boxes that overlap by more (IoU), the better one stays.
    """

    __pydantic_config__ = _CONFIG

    threshold: float = -0.3
    upscale: Annotated[float, Field(gt=0.0, le=8.0)] = 2.0
    border: Annotated[int, Field(ge=0, le=512)] = 32
    min_height: NotNegative = 1.5
    max_height: NotNegative = 1.9
    chest: Bounds = (0.8, 1.4)
    overlap: Share = 0.4

    def __post_init__(self) -> None:
        if self.min_height > self.max_height:
            raise ValueError(f"min_height, {self.min_height:g}, is more than max_height, {self.max_height:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmSettings:
    """The backend that asks a vision model: where it is, and how it counts pixels.

    Attributes:
        base_url: the server's API root, as the OpenAI clients take it.
        model: as the server calls it.
        api_key_env: environment variable with the key; without a value no key is sent.
        timeout_s: for the whole answer.
        coordinates: whether the model is asked for pixels of the image, or thousandths of its sides.
        quality: of the JPEG that is sent, 1..100.
    """

    __pydantic_config__ = _CONFIG

    base_url: Annotated[str, AfterValidator(checked_http_url)] = "http://127.0.0.1:8000/v1"
    model: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    timeout_s: Annotated[float, Field(gt=0.0)] = 10.0
    coordinates: Literal["pixels", "thousandths"] = "thousandths"
    quality: Annotated[int, Field(ge=1, le=100)] = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxSettings:
    """The backend that runs a YOLO network from an ONNX file.

    Attributes:
        model: path of the file.
        classes: what its classes are called, in order; empty takes the names that the file tells.
        only: the classes that count; empty is all.
        threshold: least score.
        overlap: of two boxes of a class that overlap by more (IoU), the better one stays.
        clothes: whether people are told by the colours of what they wear.
        layout: of its answers; `auto` tells it by their shape.
        size: sides of the picture it takes, where the file does not tell.
        threads: of the processor that it may use.
    """

    __pydantic_config__ = _CONFIG

    model: str = ""
    classes: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    threshold: Share = 0.25
    overlap: Share = 0.45
    clothes: bool = True
    layout: Literal["auto", "columns", "rows", "final"] = "auto"
    size: Annotated[int, Field(ge=32, le=4096)] = 640
    threads: Annotated[int, Field(ge=1, le=64)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSettings:
    """Settings for how far identities stretch.

    Attributes:
        memory_s: an identity outlives that long unseen, not longer.
        confirm_hits: frames in which a thing must have been seen before it gets an identity.
        max_speed: metres per second that a thing is believed to move.
        label_weight: what it costs to change clothes; with 1 a track never takes a contradicting label, less
            suits detectors that misname colours now and then.
    """

    __pydantic_config__ = _CONFIG

    memory_s: NotNegative = 2.0
    confirm_hits: Annotated[int, Field(ge=1)] = 1
    max_speed: NotNegative = 2.0
    label_weight: NotNegative = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSettings:
    """The camera's place in base_link while tf doesn't say: metres, and radians downwards."""

    __pydantic_config__ = _CONFIG

    x: float = 0.06
    """Metres ahead."""
    y: float = 0.0
    """Metres to the left."""
    z: float = 1.1
    """Metres above the floor."""
    pitch: float = 0.0
    """Radians; positive looks down."""


def _is_backend(name: str) -> str:
    if name not in NAMES and not is_reference(name):
        known = ", ".join(NAMES)
        raise ValueError(f"no backend {name!r}{suggest(name, NAMES)} (use {known}, or 'package.module:Class')")
    return name


class DetectorConfig(ModuleConfig):
    """Settings for the backend that looks at the images."""

    backend: Annotated[str, AfterValidator(_is_backend)] = Field(
        "segmentation", description="segmentation, hog, onnx, vlm, or package.module:Class of a Detector"
    )
    options: dict[str, Any] = Field({}, description="what a Detector of one's own is made with")
    min_score: Annotated[Share, Live] = Field(0.0, description="detections below are left out")
    period_s: Annotated[NotNegative, Live] = Field(
        0.0, description="least time between two frames that are looked at, for backends that cost money"
    )
    slow_after_s: float = Field(2.0, gt=0.0, description="a picture that takes longer is told of in the health")
    segmentation: SegmentationSettings = SegmentationSettings()
    hog: HogSettings = HogSettings()
    onnx: OnnxSettings = OnnxSettings()
    vlm: VlmSettings = VlmSettings()
    tracking: TrackerSettings | None = Field(None, description="None takes what suits the backend")
    mount: MountSettings = MountSettings()
    base_frame: str = Field("base_link", description="the robot's frame, in which things are placed")
