"""Events of a scene at given times: people come, go and stand still; the camera falls silent."""

from pydantic import Field, model_validator

from dimos_streams.common.schemas.frozen_model import FrozenModel


class SceneEvent(FrozenModel):
    """Something that happens `at_s` seconds after the start: exactly one of the actions."""

    at_s: float = Field(ge=0.0)
    """The time after the start, in seconds."""
    hide: str | None = None
    """The name of a person who leaves the room."""
    show: str | None = None
    """The name of a hidden person who comes back."""
    place: str | None = None
    """The name of a person who stands at `x`, `y`, `yaw_deg` from then on."""
    release: str | None = None
    """The name of a placed person who walks on."""
    freeze_camera: bool | None = None
    """True if the camera's outputs fall silent, false if they go on."""
    x: float = 0.0
    """The x coordinate for ``place``, in metres."""
    y: float = 0.0
    """The y coordinate for ``place``, in metres."""
    yaw_deg: float = 0.0
    """The direction for ``place``, in degrees, counter-clockwise from the x axis."""

    @property
    def person(self) -> str | None:
        """The person to whom it happens, or None if it happens to nobody."""
        people = (self.hide, self.show, self.place, self.release)
        return next((name for name in people if name is not None), None)

    @model_validator(mode="after")
    def _one_action(self) -> "SceneEvent":
        actions = (self.hide, self.show, self.place, self.release, self.freeze_camera)
        if sum(action is not None for action in actions) != 1:
            raise ValueError("an event has exactly one of hide, show, place, release, freeze_camera")
        return self
