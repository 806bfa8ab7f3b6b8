"""A scene as MJCF text for the physics, and what the sensors need to know of it: sizes, groups of geoms."""

from dimos_streams.robot.simulation.body import PARTS, BodyAppearance, Colour, Limb, limbs
from dimos_streams.robot.simulation.furniture import Furniture, Solid
from dimos_streams.robot.simulation.scene import Room, Scene

BASE_RADIUS = 0.22
PERSON_RADIUS = 0.15
LIDAR_HEIGHT = 0.25
CAMERA_HEIGHT = 1.1
CAMERA_FORWARD = 0.06

# Geom groups, so that a ray can leave out what it should not see.
GROUP_SHELL = 0
GROUP_FURNITURE = 1
GROUP_PEOPLE = 2
GROUP_BASE = 3
GROUP_HULL = 4

# Collision masks. Geoms that meet nothing have a bit of their own: with none, mj_multiRay misses them in a
# body that has others.
TANGIBLE = 1
INTANGIBLE = 2

TIMESTEP_S = 0.005


def mjcf(scene: Scene) -> str:
    """MJCF text of a scene with the base in it; each limb of a person is a mocap body."""
    cast = "\n".join(_person_xml(person.name, person.appearance) for person in scene.people)
    furniture = "\n".join(map(_furniture_xml, (*scene.furniture, *scene.decoration)))
    return f"""
<mujoco model="room">
  <compiler angle="radian"/>
  <option timestep="{TIMESTEP_S}" integrator="implicitfast" cone="elliptic"/>
  <visual><global offwidth="1280" offheight="960"/></visual>
  <worldbody>
    <light name="sun" directional="true" dir="0.45 -0.4 -0.8" diffuse="0.7 0.7 0.7"/>
{_shell_xml(scene.room)}
{furniture}
{_base_xml()}
{cast}
  </worldbody>
  <actuator>
    <velocity name="drive_x" joint="base_x" kv="400" forcerange="-150 150"/>
    <velocity name="drive_y" joint="base_y" kv="400" forcerange="-150 150"/>
    <velocity name="drive_yaw" joint="base_yaw" kv="60" forcerange="-40 40"/>
  </actuator>
</mujoco>
"""


def _shell_xml(room: Room) -> str:
    x, y, z, t = room.length / 2, room.width / 2, room.height / 2, 0.1
    wall = f'type="box" rgba="0.87 0.85 0.80 1" group="{GROUP_SHELL}"'
    return f"""
    <geom name="floor" type="box" size="{x} {y} {t}" pos="0 0 {-t}" rgba="0.72 0.56 0.40 1" group="{GROUP_SHELL}"/>
    <geom name="ceiling" type="box" size="{x} {y} {t}" pos="0 0 {2 * z + t}" rgba="0.95 0.95 0.93 1"
          group="{GROUP_SHELL}"/>
    <geom name="wall_east" size="{t} {y} {z}" pos="{x + t} 0 {z}" {wall}/>
    <geom name="wall_west" size="{t} {y} {z}" pos="{-x - t} 0 {z}" {wall}/>
    <geom name="wall_north" size="{x} {t} {z}" pos="0 {y + t} {z}" {wall}/>
    <geom name="wall_south" size="{x} {t} {z}" pos="0 {-y - t} {z}" {wall}/>"""


def _base_xml() -> str:
    skirt = "0.16 0.18 0.22 1"
    touch = f'priority="1" friction="0.05 0.005 0.0001" group="{GROUP_BASE}"'
    top = CAMERA_HEIGHT
    return f"""
    <body name="base">
      <joint name="base_x" type="slide" axis="1 0 0"/>
      <joint name="base_y" type="slide" axis="0 1 0"/>
      <joint name="base_yaw" type="hinge" axis="0 0 1"/>
      <geom name="base_body" type="cylinder" size="{BASE_RADIUS} 0.14" pos="0 0 0.17" mass="18"
            rgba="{skirt}" {touch}/>
      <geom name="base_mast" type="cylinder" size="0.04 {(top - 0.25) / 2}" pos="-0.02 0 {(top + 0.35) / 2}"
            mass="1.5" rgba="0.7 0.72 0.75 1" {touch}/>
      <geom name="base_head" type="box" size="0.05 0.09 0.04" pos="0 0 {top}" mass="0.5"
            rgba="0.92 0.5 0.16 1" {touch}/>
      <camera name="head" pos="{CAMERA_FORWARD} 0 {top}" xyaxes="0 -1 0 0 0 1" fovy="62"/>
    </body>"""


def _furniture_xml(item: Furniture) -> str:
    geoms = "\n".join(_solid_xml(part) for part in item.parts)
    return f"""    <frame pos="{item.x} {item.y} 0" euler="0 0 {item.yaw}">
{geoms}
    </frame>"""


def _solid_xml(part: Solid) -> str:
    half = [extent / 2 for extent in part.size]
    size = f"{half[0]} {half[2]}" if part.shape == "cylinder" else f"{half[0]} {half[1]} {half[2]}"
    mask = TANGIBLE if part.solid else INTANGIBLE
    return (
        f'      <geom type="{part.shape}" size="{size}" pos="{part.at[0]} {part.at[1]} {part.at[2]}" '
        f'rgba="{_rgba(part.colour)}" contype="{mask}" conaffinity="{mask}" group="{GROUP_FURNITURE}"/>'
    )


# What the base runs into where a person stands: swinging limbs would kick it. No sensor sees it.
_HULL_XML = (
    f'      <geom type="cylinder" size="{PERSON_RADIUS} 0.4" pos="0 0 -0.45" rgba="0 0 0 0" group="{GROUP_HULL}"/>'
)


def _person_xml(name: str, appearance: BodyAppearance) -> str:
    bodies = []
    pieces = limbs(appearance)
    for part in PARTS:
        geoms = "\n".join(_limb_xml(limb) for limb in pieces[part])
        if part == "trunk":
            geoms += "\n" + _HULL_XML
        bodies.append(f'    <body name="{name}/{part}" mocap="true">\n{geoms}\n    </body>')
    return "\n".join(bodies)


def _limb_xml(limb: Limb) -> str:
    values = " ".join(f"{value:.4f}" for value in limb.size)
    place = "fromto" if limb.shape == "capsule" else "pos"
    where = " ".join(f"{value:.4f}" for value in limb.at)
    return (
        f'      <geom type="{limb.shape}" size="{values}" {place}="{where}" rgba="{_rgba(limb.colour)}" '
        f'contype="{INTANGIBLE}" conaffinity="{INTANGIBLE}" group="{GROUP_PEOPLE}"/>'
    )


def _rgba(colour: Colour) -> str:
    return " ".join(f"{channel / 255:.4f}" for channel in colour) + " 1"
