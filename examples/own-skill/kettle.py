"""A kettle whose skill says how far it is."""

import asyncio
from typing import Annotated

from pydantic import Field

from dimos_streams.errors import SkillError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill


class KettleConfig(ModuleConfig):
    watts: Annotated[float, Field(gt=0)] = 20_000.0  # a canteen's
    tap_c: float = 20.0


class Kettle(Module):
    """Heats water, and knows how warm it is."""

    config: KettleConfig

    @skill(resources={"kettle"})
    async def boil(self, call: Call, litres: Annotated[float, Field(gt=0)] = 1.0, until_c: float = 100.0) -> str:
        """Boil water.

        Args:
            litres: How much; the kettle holds 1.7.
            until_c: How warm it is to be, in degrees Celsius.
        """
        if litres > 1.7:
            raise SkillError(f"{litres:g} litres don't fit: the kettle holds 1.7")
        await call.update(f"Heating {litres:g} litres to {until_c:g} °C")  # answers the caller; the skill goes on
        warm_c = self.config.tap_c
        try:
            while warm_c < until_c:
                await asyncio.sleep(1.0)
                warm_c += self.config.watts / (4186.0 * litres)
                call.progress(f"{warm_c:.0f} °C")
            return f"The water has {warm_c:.0f} °C"
        finally:
            self.log.info("switched off at %.0f °C", warm_c)  # also when the call is cancelled
