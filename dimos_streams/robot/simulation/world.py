"""The simulated room: physics of the base, people, and time. No bus, no module, no clock of its own.

`mujoco` and `numpy` are imported by `load()`. The same config, seed and commands give the same states.
"""

import hashlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dimos_streams import errors
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.simulation import mjcf
from dimos_streams.robot.simulation.body import PARTS, TRUNK
from dimos_streams.robot.simulation.people import BODY_RADIUS, Obstacle, Stance, Walker
from dimos_streams.robot.simulation.scene import STOCK_SCENE, Scene
from dimos_streams.robot.velocity import STILL, Velocity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TICK_S = 0.025
FAR_BELOW = -50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldConfig:
    """The settings of the room and of the base. The limits are those of the motors, not the gate's."""

    scene: Scene = STOCK_SCENE
    seed: int = 0
    max_speed: float = 1.5
    max_turn: float = 2.5
    acceleration: float = 2.0
    braking: float = 6.0
    """The deceleration, m/s²: brakes do more than motors."""
    turn_acceleration: float = 6.0


class World:
    """The room with its robot and its people. Use: `load()`, then `step()` as often as you like."""

    def __init__(self, config: WorldConfig | None = None) -> None:
        self.config = config or WorldConfig()
        self.scene = self.config.scene
        self.walkers: dict[str, Walker] = {
            person.name: Walker(person, random.Random(f"{self.config.seed}/{person.name}"))
            for person in self.scene.people
        }
        self._ticks = 0
        self._debt = 0.0
        self._target = STILL

    def load(self) -> "World":
        """Compile the scene.

        Raises:
            UserError: MuJoCo is not installed.
        """
        try:
            import mujoco
        except ImportError as error:
            raise errors.UserError(
                f"the simulator needs MuJoCo ({error}); install it with: pip install 'dimos-streams[sim]'"
            ) from error
        self._step_physics = mujoco.mj_step
        self._forward = mujoco.mj_forward
        self._substeps = round(TICK_S / mjcf.TIMESTEP_S)
        self.model: Any = mujoco.MjModel.from_xml_string(mjcf.mjcf(self.scene))
        self.data: Any = mujoco.MjData(self.model)
        self.base_body: int = self.model.body("base").id
        self.instance_of_geom = self._instance_ids()
        self._mocap: dict[tuple[str, ...], list[int]] = {
            parts: [int(self.model.body(f"{name}/{part}").mocapid[0]) for name in self.walkers for part in parts]
            for parts in (PARTS, TRUNK)
        }
        start = self.scene.start
        self.place_robot(start.x, start.y, start.yaw)
        return self

    @property
    def time(self) -> float:
        """Simulated seconds since the start: a whole number of ticks."""
        return self._ticks * TICK_S

    def step(self, dt: float, command: Velocity = STILL, *, seen: bool = True) -> None:
        """Go on for dt seconds under this command. What is less than a tick is kept for the next step.

        If nobody will have ``seen`` it, of people only the trunks are placed: those are what the base runs into.
        """
        self._debt += dt
        while self._debt > TICK_S - 1e-9:
            self._debt -= TICK_S
            self._tick(command, PARTS if seen else TRUNK)

    def pose(self) -> PlanarPose:
        """Return the base's pose."""
        x, y, yaw = self.data.qpos[:3].tolist()
        return PlanarPose(x, y, math.remainder(yaw, math.tau))

    def twist(self) -> Velocity:
        """Return the base's velocity, in its own frame."""
        vx, vy, wz = self.data.qvel[:3].tolist()
        cos, sin = self._heading()
        return Velocity(cos * vx + sin * vy, cos * vy - sin * vx, wz)

    def people(self) -> dict[str, Stance]:
        """Return the stances of everyone who can be seen, by name."""
        return {name: walker.stance for name, walker in self.walkers.items() if not walker.hidden}

    def labels(self) -> dict[int, str]:
        """The descriptions of people by their ids in an instance image."""
        return {i: walker.person.description for i, walker in enumerate(self.walkers.values(), start=1)}

    def hide(self, name: str) -> None:
        """Take a person out of the room."""
        self._walker(name).hidden = True
        self._refresh()

    def show(self, name: str) -> None:
        """Put a hidden person back, where they would be by now had they stood still."""
        self._walker(name).hidden = False
        self._refresh()

    def place_person(self, name: str, x: float, y: float, yaw: float = 0.0) -> None:
        """Let a person stand there until `release_person`."""
        self._walker(name).hold_at(x, y, yaw)
        self._refresh()

    def release_person(self, name: str) -> None:
        """Let a placed person go on with what they did."""
        self._walker(name).resume()
        self._refresh()

    def place_robot(self, x: float, y: float, yaw: float = 0.0) -> None:
        """Put the base there, at rest."""
        self.data.qpos[:3] = x, y, yaw
        self.data.qvel[:3] = 0.0
        self._target = STILL
        self._refresh()

    def digest(self) -> str:
        """A hash of the state: equal for equal histories."""
        state = hashlib.sha256(self.data.qpos.tobytes() + self.data.qvel.tobytes())
        state.update(self.data.mocap_pos.tobytes() + self.data.mocap_quat.tobytes())
        state.update(str(self._ticks).encode())
        return state.hexdigest()

    def _tick(self, command: Velocity, parts: tuple[str, ...]) -> None:
        self._target = self._towards(command)
        self._move_people()
        self._place_people(parts)
        for _ in range(self._substeps):
            cos, sin = self._heading()
            self.data.ctrl[:3] = (
                cos * self._target.vx - sin * self._target.vy,
                sin * self._target.vx + cos * self._target.vy,
                self._target.wz,
            )
            self._step_physics(self.model, self.data)
        self._ticks += 1

    def _towards(self, command: Velocity) -> Velocity:
        """The next target of the motors: as near to the command as speed and acceleration allow."""
        limits = self.config
        scale = min(1.0, limits.max_speed / max(1e-9, math.hypot(command.vx, command.vy)))
        dx, dy = command.vx * scale - self._target.vx, command.vy * scale - self._target.vy
        slower = math.hypot(command.vx, command.vy) < math.hypot(self._target.vx, self._target.vy)
        ramp = limits.braking if slower else limits.acceleration
        share = min(1.0, ramp * TICK_S / max(1e-9, math.hypot(dx, dy)))
        turn = max(-limits.max_turn, min(limits.max_turn, command.wz))
        change = limits.turn_acceleration * TICK_S
        return Velocity(
            self._target.vx + share * dx,
            self._target.vy + share * dy,
            self._target.wz + max(-change, min(change, turn - self._target.wz)),
        )

    def _heading(self) -> tuple[float, float]:
        yaw = float(self.data.qpos[2])
        return math.cos(yaw), math.sin(yaw)

    def _move_people(self) -> None:
        base = self.pose()
        robot = Obstacle(base.x, base.y, mjcf.BASE_RADIUS)
        for walker in self.walkers.values():
            if not walker.hidden:
                walker.step(TICK_S, [robot, *self._others(walker)])

    def _others(self, walker: Walker) -> Sequence[Obstacle]:
        return [
            Obstacle(other.stance.x, other.stance.y, BODY_RADIUS)
            for other in self.walkers.values()
            if other is not walker and not other.hidden
        ]

    def _refresh(self) -> None:
        self._place_people(PARTS)
        self._forward(self.model, self.data)

    def _place_people(self, parts: tuple[str, ...]) -> None:
        places: list[tuple[float, float, float]] = []
        turns: list[tuple[float, float, float, float]] = []
        for walker in self.walkers.values():
            stance = walker.stance
            limbs = walker.limbs() if parts is PARTS else {"trunk": walker.trunk()}
            cos, sin = math.cos(stance.yaw), math.sin(stance.yaw)
            half_cos, half_sin = math.cos(stance.yaw / 2), math.sin(stance.yaw / 2)
            sunk = FAR_BELOW if walker.hidden else 0.0
            for limb in map(limbs.__getitem__, parts):
                c, s = math.cos(limb.pitch / 2), math.sin(limb.pitch / 2)
                x, y = stance.x + cos * limb.x - sin * limb.y, stance.y + sin * limb.x + cos * limb.y
                places.append((x, y, limb.z + sunk))
                turns.append((half_cos * c, -half_sin * s, half_cos * s, half_sin * c))
        if places:
            self.data.mocap_pos[self._mocap[parts]] = places
            self.data.mocap_quat[self._mocap[parts]] = turns

    def _instance_ids(self) -> "NDArray[np.uint8]":
        """Return for each geom the id of the person it belongs to, counted from 1, or 0 if it belongs to nobody; one
        more entry is for 'hit nothing'."""
        import numpy as np

        ids = np.zeros(self.model.ngeom + 1, dtype=np.uint8)
        for instance, name in enumerate(self.walkers, start=1):
            for part in PARTS:
                body = self.model.body(f"{name}/{part}")
                ids[body.geomadr[0] : body.geomadr[0] + body.geomnum[0]] = instance
        return ids

    def _walker(self, name: str) -> Walker:
        if name not in self.walkers:
            known = list(self.walkers)
            hint = errors.suggest(name, known)
            raise errors.UserError(f"no person {name!r} in the room, there are {known}{hint}")
        return self.walkers[name]
