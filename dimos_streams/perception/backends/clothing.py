"""Names the colours of clothes in an image, and people by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dimos_streams.perception.geometry import Box, pixels_of

_CHROMATIC = (
    (15.0, "red"),
    (42.0, "orange"),
    (70.0, "yellow"),
    (165.0, "green"),
    (195.0, "cyan"),
    (255.0, "blue"),
    (290.0, "purple"),
    (345.0, "pink"),
    (360.0, "red"),
)
_HUE_BOUNDS = np.array([bound for bound, _ in _CHROMATIC])
_SHIRT = (0.3, 0.22, 0.7, 0.42)
_TROUSERS = (0.3, 0.55, 0.7, 0.75)
_SURE = 0.4


def colour_name(pixels: NDArray[np.uint8]) -> tuple[str, float]:
    """The prevailing colour of (n, 3) RGB pixels and the part of them that has it, 0..1.

    ("", 0.0) for no pixels."""
    if not len(pixels):
        return "", 0.0
    names, counts = np.unique(_names(pixels.astype(np.float64) / 255.0), return_counts=True)
    best = int(counts.argmax())
    return str(names[best]), float(counts[best] / len(pixels))


def dressed(rgb: NDArray[np.uint8], box: Box) -> str:
    """A person in a box of the image, by the colours of the clothes: "person in a red shirt and blue trousers"."""
    shirt, trousers = (_colour(rgb, box.part(*part)) for part in (_SHIRT, _TROUSERS))
    article = "an" if shirt[:1] in {"a", "e", "i", "o", "u"} else "a"
    worn = [f"{article} {shirt} shirt"] * bool(shirt) + [f"{trousers} trousers"] * bool(trousers)
    return f"person in {' and '.join(worn)}" if worn else "person"


def _colour(rgb: NDArray[np.uint8], box: Box) -> str:
    """The colour that most of a part of the image has, "" when it has many."""
    rows, columns = pixels_of(box, rgb.shape[:2], rgb.shape[1], rgb.shape[0])
    name, part = colour_name(rgb[rows, columns].reshape(-1, 3))
    return name if part >= _SURE else ""


def _names(rgb: NDArray[np.float64]) -> NDArray[np.str_]:
    value, low = rgb.max(axis=1), rgb.min(axis=1)
    chroma = value - low
    saturation = chroma / np.maximum(value, 1e-9)
    hue = _hue(rgb, value, np.maximum(chroma, 1e-9))
    named = np.array([name for _, name in _CHROMATIC])[np.searchsorted(_HUE_BOUNDS, hue, side="right")]
    named = np.where((named == "orange") & (value < 0.5), "brown", named)
    plain = np.where(value < 0.25, "black", np.where(value > 0.8, "white", "grey"))
    return np.where((value < 0.12) | (saturation < 0.25), plain, named)


def _hue(rgb: NDArray[np.float64], value: NDArray[np.float64], chroma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees, 0 = red, 120 = green, 240 = blue."""
    red, green, blue = rgb.T
    sector = np.where(
        value == red,
        (green - blue) / chroma % 6.0,
        np.where(value == green, (blue - red) / chroma + 2.0, (red - green) / chroma + 4.0),
    )
    hue: NDArray[np.float64] = np.minimum(60.0 * sector, 359.999)
    return hue
