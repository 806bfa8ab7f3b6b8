"""What is painted on a page's canvases, by its colours."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

CAMERA = ".panel.camera canvas"
MAP = ".panel.map canvas"
_READ = """({ selector, colour, tolerance, rows }) => {
    const canvas = document.querySelector(selector);
    if (!canvas?.width) return null;
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    const [red, green, blue] = colour;
    const [first, last] = rows ?? [0, height - 1];
    let [count, xs, ys, left, right, top, bottom] = [0, 0, 0, width, 0, height, 0];
    for (let y = Math.max(0, first); y <= Math.min(last, height - 1); y += 1) {
        for (let x = 0, at = y * width * 4; x < width; x += 1, at += 4) {
            const isOther = Math.abs(data[at] - red) > tolerance || Math.abs(data[at + 1] - green) > tolerance
                || Math.abs(data[at + 2] - blue) > tolerance;
            if (isOther || data[at + 3] < 255) continue;
            count += 1;
            xs += x;
            ys += y;
            if (x < left) left = x;
            if (x > right) right = x;
            if (y < top) top = y;
            bottom = y;
        }
    }
    return { count, x: xs / count, y: ys / count, left, right, top, bottom };
}"""


@dataclass(frozen=True)
class Colour:
    """Red, green and blue, and by how much each may differ."""

    red: int
    green: int
    blue: int
    tolerance: int = 12


@dataclass(frozen=True)
class Blot:
    """All pixels of a colour: how many, the middle of them, and their bounds."""

    count: int
    x: float
    y: float
    left: int
    right: int
    top: int
    bottom: int


SHIRT = Colour(190, 35, 40, 55)
"""A red one, in all kinds of light."""
FOLLOWED = Colour(255, 197, 61)
"""The box around who is followed, and the ring on the map."""
ROBOT = Colour(29, 95, 214)
"""The first robot on the map, where the page is light."""
FREE = Colour(255, 255, 255, 4)
"""Floor on which nothing stands, where the page is light."""
WALL = Colour(43, 52, 66, 20)


def blot(page: Page, canvas: str, colour: Colour, rows: tuple[int, int] | None = None) -> Blot | None:
    """What a canvas has of a colour, in all rows or some; None if there is nothing of it, or no canvas."""
    rgb = [colour.red, colour.green, colour.blue]
    asked = {"selector": canvas, "colour": rgb, "tolerance": colour.tolerance, "rows": rows}
    found = page.evaluate(_READ, asked)
    return Blot(**found) if found and found["count"] else None
