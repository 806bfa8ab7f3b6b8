"""The ways to detect: what each of them looks at, how far identities stretch, and how it is made.

A backend is one of ours, by name, or a class of somebody else's, by ``"package.module:Class"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dimos_streams.common.importing import how_to_get
from dimos_streams.common.process.disk import at_home
from dimos_streams.errors import UserError
from dimos_streams.module import ConfigFault
from dimos_streams.perception.config import DetectorConfig, TrackerSettings

if TYPE_CHECKING:
    from dimos_streams.perception.detector import Detector


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One way to detect."""

    inputs: tuple[str, ...]
    """The inputs that must be wired; the first is the picture that is looked at."""
    tracking: TrackerSettings
    """The tracking that suits it, unless settings say otherwise."""
    make: Callable[[DetectorConfig], Detector]
    """What makes the detector. Raises UserError when a package, a file or a setting is missing."""
    blocks: bool = True
    """Whether a frame takes so long that it is looked at in a thread."""
    package: str = ""
    """The package that it needs besides ours."""


def backend_of(config: DetectorConfig) -> Backend:
    """The configured backend. Raises UserError for a class that there is not, or that is no detector."""
    if config.backend in BACKENDS:
        return BACKENDS[config.backend]
    from dimos_streams.perception.backends.own_class import inputs_of, load_class

    inputs = inputs_of(load_class(config.backend), config.backend)
    return Backend(inputs=inputs, tracking=TrackerSettings(confirm_hits=2, label_weight=0.6), make=_own_class)


def faults_of(config: DetectorConfig) -> Iterator[ConfigFault]:
    """Yield the faults of settings that are valid each by itself."""
    try:
        backend = backend_of(config)
    except UserError as error:
        yield ConfigFault(("backend",), str(error))
        return
    if backend.package and find_spec(backend.package) is None:
        yield ConfigFault(("backend",), f"backend {config.backend!r}: {how_to_get(backend.package)}")
    if config.backend == "vlm" and not config.vlm.model:
        yield ConfigFault(("vlm", "model"), "the backend 'vlm' needs the name of a model: set vlm.model")
    if config.backend == "onnx" and not at_home(config.onnx.model).is_file():
        given = repr(config.onnx.model) if config.onnx.model else "none"
        text = f"the backend 'onnx' needs the path of a model's file as onnx.model, and there is no file {given}"
        yield ConfigFault(("onnx", "model"), text)
    if config.backend not in BACKENDS:
        from dimos_streams.perception.backends.own_class import fault_of_options

        fault = fault_of_options(config.backend, config.options)
        if fault:
            yield ConfigFault(("options",), fault)
    elif config.options:
        text = (
            f"options are for a detector class of your own; settings of {config.backend!r} are in `{config.backend}`"
        )
        yield ConfigFault(("options",), text)


def _segmentation(config: DetectorConfig) -> Detector:
    from dimos_streams.perception.backends.segmentation import SegmentationDetector

    return SegmentationDetector(config.segmentation.min_pixels)


def _hog(config: DetectorConfig) -> Detector:
    from dimos_streams.perception.backends.hog import HogDetector

    return HogDetector(config.hog)


def _vlm(config: DetectorConfig) -> Detector:
    from dimos_streams.perception.backends.vlm import VlmDetector

    return VlmDetector(config.vlm)


def _onnx(config: DetectorConfig) -> Detector:
    from dimos_streams.perception.backends.onnx import OnnxDetector

    return OnnxDetector(config.onnx)


def _own_class(config: DetectorConfig) -> Detector:
    from dimos_streams.perception.backends.own_class import OwnDetector

    return OwnDetector(config.backend, config.options)


BACKENDS = {
    "segmentation": Backend(
        inputs=("instances", "instance_labels"), tracking=TrackerSettings(), make=_segmentation, blocks=False
    ),
    "hog": Backend(
        inputs=("color_image",),
        tracking=TrackerSettings(confirm_hits=3, label_weight=0.4),
        make=_hog,
        package="cv2",
    ),
    "onnx": Backend(
        inputs=("color_image",),
        tracking=TrackerSettings(confirm_hits=2, label_weight=0.4),
        make=_onnx,
        package="onnxruntime",
    ),
    "vlm": Backend(
        inputs=("color_image", "wanted_descriptions"),
        tracking=TrackerSettings(memory_s=5.0, label_weight=0.6),
        make=_vlm,
    ),
}
