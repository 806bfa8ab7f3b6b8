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
    """The backend that reads an instance image."""

    __pydantic_config__ = _CONFIG

    min_pixels: Annotated[int, Field(ge=1)] = 12
    """The least number of pixels of the instance image that a thing must cover to be detected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HogSettings:
    """The backend that finds standing people in the colour image."""

    __pydantic_config__ = _CONFIG

    threshold: float = -0.3
    """The least margin of the support vector machine at which a window counts as a person."""
    upscale: Annotated[float, Field(gt=0.0, le=8.0)] = 2.0
    """The factor by which images are enlarged first: the windows are 128 pixels high."""
    border: Annotated[int, Field(ge=0, le=512)] = 32
    """The number of pixels added around the enlarged image, for people at its edge."""
    min_height: NotNegative = 1.5
    """The least height of people, in metres; where there is depth, lower boxes are not taken for people."""
    max_height: NotNegative = 1.9
    """The greatest height of people, in metres; where there is depth, higher boxes are not taken for people."""
    chest: Bounds = (0.8, 1.4)
    """The range, in metres above the floor, within which the middle of an upper body must be."""
    overlap: Share = 0.4
    """The overlap (IoU) above which only the better one of two boxes is kept."""

    def __post_init__(self) -> None:
        if self.min_height > self.max_height:
            raise ValueError(f"min_height, {self.min_height:g}, is more than max_height, {self.max_height:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmSettings:
    """The backend that asks a vision model: where it is, and how it counts pixels."""

    __pydantic_config__ = _CONFIG

    base_url: Annotated[str, AfterValidator(checked_http_url)] = "http://127.0.0.1:8000/v1"
    """The server's API root, as the OpenAI clients take it."""
    model: str = ""
    """The model as the server calls it."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable with the key; without a value no key is sent."""
    timeout_s: Annotated[float, Field(gt=0.0)] = 10.0
    """Maximum time, in seconds, for the whole answer."""
    coordinates: Literal["pixels", "thousandths"] = "thousandths"
    """Whether the model is asked for pixels of the image, or thousandths of its sides."""
    quality: Annotated[int, Field(ge=1, le=100)] = 80
    """The quality of the JPEG that is sent, 1 to 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxSettings:
    """The backend that runs a YOLO network from an ONNX file."""

    __pydantic_config__ = _CONFIG

    model: str = ""
    """The path of the file."""
    classes: tuple[str, ...] = ()
    """The names of its classes, in order; empty takes those in the file."""
    only: tuple[str, ...] = ()
    """The classes that are detected; empty for all."""
    threshold: Share = 0.25
    """The least score of a detection."""
    overlap: Share = 0.45
    """The overlap (IoU) above which only the better one of two boxes of a class is kept."""
    clothes: bool = True
    """Whether people are labelled by the colours of their clothes."""
    layout: Literal["auto", "columns", "rows", "final"] = "auto"
    """The layout of its answers; `auto` infers it from their shape."""
    size: Annotated[int, Field(ge=32, le=4096)] = 640
    """The width and height, in pixels, of the picture that it takes, if the file does not say."""
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    """The number of processor threads that it may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSettings:
    """Settings for how long a thing keeps its identity."""

    __pydantic_config__ = _CONFIG

    memory_s: NotNegative = 2.0
    """The time, in seconds, for which a thing keeps its identity while it is not seen."""
    confirm_hits: Annotated[int, Field(ge=1)] = 1
    """The number of frames in which a thing must have been seen before it gets an identity."""
    max_speed: NotNegative = 2.0
    """The greatest speed, in m/s, that a thing is believed to have."""
    label_weight: NotNegative = 1.0
    """The weight of a contradicting label: with 1 a track never takes one, less suits detectors that misname colours
    now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSettings:
    """The camera's place in base_link, used until tf gives it: metres, and radians downwards."""

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

    backend: Annotated[str, AfterValidator(_is_backend)] = "segmentation"
    """The detector: `segmentation`, `hog`, `onnx`, `vlm`, or `package.module:Class` for one of your own."""
    options: dict[str, Any] = Field({})
    """The arguments with which a detector of your own is constructed."""
    min_score: Annotated[Share, Live] = 0.0
    """The score below which detections are left out."""
    period_s: Annotated[NotNegative, Live] = 0.0
    """The least time, in seconds, between two frames that are looked at, for backends that cost money."""
    slow_after_s: float = Field(2.0, gt=0.0)
    """The longest time, in seconds, that a picture may take before the module's health reports it as slow."""
    segmentation: SegmentationSettings = SegmentationSettings()
    hog: HogSettings = HogSettings()
    onnx: OnnxSettings = OnnxSettings()
    vlm: VlmSettings = VlmSettings()
    tracking: TrackerSettings | None = None
    """The settings of tracking; None takes those that suit the backend."""
    mount: MountSettings = MountSettings()
    base_frame: str = "base_link"
    """The robot's frame, in which things are placed."""
