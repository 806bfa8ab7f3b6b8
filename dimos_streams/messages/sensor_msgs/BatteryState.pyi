"""Generated from lcm_types/sensor_msgs/BatteryState.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.std_msgs.Header import Header

class BatteryState(Message):
    """What a battery says of itself; NaN where it does not know."""

    cell_voltage_length: int
    cell_temperature_length: int
    header: Header
    voltage: float
    temperature: float
    current: float
    charge: float
    capacity: float
    design_capacity: float
    percentage: float
    power_supply_status: int
    power_supply_health: int
    power_supply_technology: int
    present: bool
    cell_voltage: FloatArray
    cell_temperature: FloatArray
    location: str
    serial_number: str

    def __init__(
        self,
        *,
        header: Header = ...,
        voltage: float = 0.0,
        temperature: float = 0.0,
        current: float = 0.0,
        charge: float = 0.0,
        capacity: float = 0.0,
        design_capacity: float = 0.0,
        percentage: float = 0.0,
        power_supply_status: int = 0,
        power_supply_health: int = 0,
        power_supply_technology: int = 0,
        present: bool = False,
        cell_voltage: FloatArray = ...,
        cell_temperature: FloatArray = ...,
        location: str = "",
        serial_number: str = "",
    ) -> None: ...
