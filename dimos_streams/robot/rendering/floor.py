"""The floor as a picture: planks, a rug, and the shadows of the furniture, drawn once per scene."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dimos_streams.robot.simulation.furniture import Furniture, Solid
from dimos_streams.robot.simulation.scene import Room, Rug, Scene

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]

TEXEL = 0.025
PLANK_WIDTH = 0.2
PLANK_LENGTH = 1.6


def grid(room: Room) -> tuple[Floats, Floats]:
    """World coordinates of the middles of all texels, as (rows, columns) arrays."""
    x = np.arange(-room.length / 2 + TEXEL / 2, room.length / 2, TEXEL)
    y = np.arange(-room.width / 2 + TEXEL / 2, room.width / 2, TEXEL)
    across, along = np.meshgrid(x.astype(np.float32), y.astype(np.float32))
    return across, along


def floor_texture(scene: Scene) -> Floats:
    """Colours 0..1 of the floor, shape (rows along y, columns along x, 3), shadows included."""
    x, y = grid(scene.room)
    colour = _planks(x, y)
    for rug in scene.rugs:
        _lay_rug(colour, x, y, rug)
    shade = np.ones_like(x)
    for item in scene.furniture:
        for part in item.parts:
            if part.solid:
                _cast_shadow(shade, x, y, item, part)
    return colour * shade[..., None]


def nearest_texels(texture: Floats, room: Room, x: Floats, y: Floats) -> Integers:
    """Indices of the texels of the room's floor that are nearest to these places, row by row."""
    rows, columns = texture.shape[:2]
    column = np.clip(((x + room.length / 2) / TEXEL).astype(np.int32), 0, columns - 1)
    row = np.clip(((y + room.width / 2) / TEXEL).astype(np.int32), 0, rows - 1)
    nearest: Integers = row * columns + column
    return nearest


def _planks(x: Floats, y: Floats) -> Floats:
    """Wooden planks along x, each with a tone of its own."""
    row = np.floor(y / PLANK_WIDTH)
    shift = (row * 0.37 % 1.0) * PLANK_LENGTH
    plank = np.floor((x + shift) / PLANK_LENGTH)
    tone = np.sin(row * 12.9898 + plank * 78.233) * 43758.547
    tone = 0.88 + 0.2 * (tone - np.floor(tone))
    seam = (y / PLANK_WIDTH - row < 0.08) | ((x + shift) / PLANK_LENGTH - plank < 0.016)
    tone = np.where(seam, tone * 0.78, tone)
    wood = np.array([0.70, 0.55, 0.40], dtype=np.float32)
    planks: Floats = (tone[..., None] * wood).astype(np.float32)
    return planks


def _lay_rug(colour: Floats, x: Floats, y: Floats, rug: Rug) -> None:
    inside = np.maximum(np.abs(x - rug.x) / rug.half_length, np.abs(y - rug.y) / rug.half_width)
    colour[inside < 1.0] = (0.58, 0.30, 0.27)
    colour[(inside < 0.93) & (inside > 0.86)] = (0.86, 0.78, 0.64)


def _cast_shadow(shade: Floats, x: Floats, y: Floats, item: Furniture, part: Solid) -> None:
    """Darken the floor softly under and behind a part, as a wide lamp above the room would."""
    cos, sin = math.cos(item.yaw), math.sin(item.yaw)
    bottom = part.at[2] - part.size[2] / 2
    top = part.at[2] + part.size[2] / 2
    lean = 0.12 * top
    cx = item.x + cos * part.at[0] - sin * part.at[1] + lean
    cy = item.y + sin * part.at[0] + cos * part.at[1] - lean
    softness = 0.08 + 0.25 * bottom + 0.1 * top
    # Further away there is no shadow, and a floor has many more texels than that.
    reach = math.hypot(part.size[0], part.size[1]) / 2 + softness
    near = np.ix_(np.abs(y[:, 0] - cy) <= reach, np.abs(x[0] - cx) <= reach)
    x, y = x[near], y[near]
    u = np.abs(cos * (x - cx) + sin * (y - cy)) - part.size[0] / 2
    v = np.abs(cos * (y - cy) - sin * (x - cx)) - part.size[1] / 2
    outside = np.hypot(np.maximum(u, 0), np.maximum(v, 0)) + np.minimum(np.maximum(u, v), 0)
    cover = np.clip(0.5 - outside / (2 * softness), 0.0, 1.0)
    shade[near] *= 1.0 - (0.42 / (1.0 + 0.5 * bottom)) * cover
