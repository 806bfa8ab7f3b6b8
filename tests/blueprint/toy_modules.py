"""Modules that the tests of blueprints put together."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dimos_streams.messages.geometry_msgs import PoseStamped, Twist
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import OdometryFromPoses
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import skill
from dimos_streams.streams import In, Out


class LensConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    zoom: float = 1.0
    filter: str = ""


class CameraConfig(ModuleConfig):
    rate_hz: float = Field(10.0, gt=0.0, le=60.0)
    encoding: Literal["jpeg", "rgb8"] = "jpeg"
    lens: LensConfig = LensConfig()


class Camera(Module):
    config: CameraConfig
    color_image: Out[Image]


class ForgetfulConfig(ModuleConfig):
    name: str = 5  # type: ignore[assignment]
    rate_hz: float = Field(0.0, gt=0.0)


class Forgetful(Module):
    """Its author has never started it without a config."""

    config: ForgetfulConfig


class WhisperConfig(ModuleConfig):
    word: Annotated[str, BeforeValidator(str.lower)] = "psst"


class Whisper(Module):
    """Its author's check of a setting expects a text."""

    config: WhisperConfig


class WalkConfig(ModuleConfig):
    distance_m: float = Field(1.5, gt=0.0)
    label: str = "someone"
    slow_m: float = 0.5
    fast_m: float = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> WalkConfig:
        if self.slow_m > self.fast_m:
            raise ValueError("slow_m must not be above fast_m")
        return self


class Walk(Module):
    """Needs pictures, can do without a scan."""

    config: WalkConfig
    color_image: In[Image]
    scan: In[LaserScan] = In(required=False)
    cmd_vel: Out[Twist]

    @skill(resources={"base"})
    async def walk(self, label: str) -> str:
        """Walk to somebody."""
        return f"walked to {label}"


class Wheels(Module):
    config: ModuleConfig
    cmd_vel: In[Twist]


class Sharing(Module):
    config: ModuleConfig
    shared_outputs: ClassVar[frozenset[str]] = frozenset({"cmd_vel"})
    cmd_vel: Out[Twist]


class ScanAsPictures(Module):
    config: ModuleConfig
    color_image: Out[LaserScan]


class NeedsPackages(Module):
    config: ModuleConfig
    packages: ClassVar[tuple[str, ...]] = ("json", "no_such_package")


class KeylessConfig(ModuleConfig):
    key: str
    tries: int = 1


class Keyless(Module):
    config: KeylessConfig


class BadSkill(Module):
    config: ModuleConfig

    @skill
    async def untyped(self, what) -> None:  # type: ignore[no-untyped-def]
        """Has a parameter of unknown type."""


class NotAModule:
    pass


class StrollConfig(WalkConfig):
    pauses: int = 0


class Stroll(Walk):
    config: StrollConfig


class Stop(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    wait_s: float = 0.0


class RouteConfig(ModuleConfig):
    points: tuple[tuple[float, float], ...] = ()
    stops: tuple[Stop, ...] = ()
    places: dict[str, Stop] = Field({})


class Route(Module):
    config: RouteConfig


class Plodder(Module):
    """Wants odometry, and nothing else."""

    odom: In[Odometry]


class Easygoer(Module):
    """Takes poses for odometry."""

    odom: In[Odometry] = In(also=OdometryFromPoses)


class Surveyor(Module):
    """Sends poses."""

    odom: Out[PoseStamped]
