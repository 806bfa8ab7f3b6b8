"""A weather station that publishes readings of a type of its own, and a watch that looks at them."""

import asyncio

from weather.weather_msgs import Reading, Wind

from dimos_streams import clock
from dimos_streams.messages.geometry_msgs import Point
from dimos_streams.messages.time import header
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In, Out


class Station(Module):
    """Measures when it is asked to."""

    readings: Out[Reading]

    @skill
    async def measure(self, call: Call, times: int = 3) -> str:
        """Measure the weather. Args: times: How often, once a second."""
        await call.update(f"Measuring {times} times")
        for _ in range(times):
            await asyncio.sleep(1.0)
            winds = [Wind(height=height, speed=self.random.uniform(0.0, 12.0)) for height in (2.0, 10.0)]
            rough = winds[-1].speed > 8.0
            self.readings.publish(
                Reading(
                    header=header("map", clock.utime()),
                    position=Point(x=3.0),
                    temperature_c=21.5,
                    weather=Reading.ROUGH if rough else Reading.FAIR,
                    winds=winds,
                )
            )
        return f"Measured {times} times"


class Watch(Module):
    """Knows the strongest wind so far."""

    readings: In[Reading] = In(queue=16)
    strongest = 0.0

    async def run(self) -> None:
        async for reading in self.readings:
            self.strongest = max([self.strongest, *(wind.speed for wind in reading.winds)])

    @skill(read_only=True)
    async def strongest_wind(self, call: Call) -> str:
        """Tell how strong the wind has been."""
        return f"{self.strongest:.1f} m/s"
