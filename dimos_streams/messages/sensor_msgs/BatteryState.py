"""Generated from lcm_types/sensor_msgs/BatteryState.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Header

class BatteryState(Message):
    """ What a battery says of itself; NaN where it does not know. """

    msg_name = "sensor_msgs.BatteryState"

    __slots__ = ["cell_voltage_length", "cell_temperature_length", "header", "voltage", "temperature", "current", "charge", "capacity", "design_capacity", "percentage", "power_supply_status", "power_supply_health", "power_supply_technology", "present", "cell_voltage", "cell_temperature", "location", "serial_number"]

    __typenames__ = ["int32_t", "int32_t", "dimos_streams.messages.std_msgs.Header", "float", "float", "float", "float", "float", "float", "float", "byte", "byte", "byte", "boolean", "float", "float", "string", "string"]

    __dimensions__ = [None, None, None, None, None, None, None, None, None, None, None, None, None, None, ["cell_voltage_length"], ["cell_temperature_length"], None, None]

    def __init__(self, **fields):
        self.cell_voltage_length = 0
        """
        Values in cell_voltage; 0 if the device gives none.
        LCM Type: int32_t
        """

        self.cell_temperature_length = 0
        """
        Values in cell_temperature; 0 if the device gives none.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.voltage = 0.0
        """
        V
        LCM Type: float
        """

        self.temperature = 0.0
        """
        Degrees Celsius.
        LCM Type: float
        """

        self.current = 0.0
        """
        A, negative while it discharges.
        LCM Type: float
        """

        self.charge = 0.0
        """
        Ah left.
        LCM Type: float
        """

        self.capacity = 0.0
        """
        Ah when it was last full.
        LCM Type: float
        """

        self.design_capacity = 0.0
        """
        Ah by design.
        LCM Type: float
        """

        self.percentage = 0.0
        """
        0 (empty) to 1 (full).
        LCM Type: float
        """

        self.power_supply_status = 0
        """
        0 unknown, 1 charging, 2 discharging, 3 not charging, 4 full.
        LCM Type: byte
        """

        self.power_supply_health = 0
        """
        0 unknown, 1 good, 2 overheats, 3 dead, 4 overvoltage, 5 unspecified failure, 6 cold, 7 watchdog, 8 safety timer.
        LCM Type: byte
        """

        self.power_supply_technology = 0
        """
        0 unknown, 1 NiMH, 2 Li-ion, 3 LiPo, 4 LiFe, 5 NiCd, 6 LiMn.
        LCM Type: byte
        """

        self.present = False
        """ LCM Type: boolean """
        self.cell_voltage = []
        """
        V
        LCM Type: float[cell_voltage_length]
        """

        self.cell_temperature = []
        """
        Degrees Celsius.
        LCM Type: float[cell_temperature_length]
        """

        self.location = ""
        """ LCM Type: string """
        self.serial_number = ""
        """ LCM Type: string """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">ii", self.cell_voltage_length, self.cell_temperature_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        buf.write(struct.pack(">fffffffBBBb", self.voltage, self.temperature, self.current, self.charge, self.capacity, self.design_capacity, self.percentage, self.power_supply_status, self.power_supply_health, self.power_supply_technology, self.present))
        buf.write(struct.pack('>%df' % self.cell_voltage_length, *self.cell_voltage[:self.cell_voltage_length]))
        buf.write(struct.pack('>%df' % self.cell_temperature_length, *self.cell_temperature[:self.cell_temperature_length]))
        __location_encoded = self.location.encode('utf-8')
        buf.write(struct.pack('>I', len(__location_encoded)+1))
        buf.write(__location_encoded)
        buf.write(b"\0")
        __serial_number_encoded = self.serial_number.encode('utf-8')
        buf.write(struct.pack('>I', len(__serial_number_encoded)+1))
        buf.write(__serial_number_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != BatteryState._get_packed_fingerprint():
            raise ValueError("Decode error")
        return BatteryState._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = BatteryState.__new__(BatteryState)
        self.cell_voltage_length, self.cell_temperature_length = struct.unpack(">ii", buf.read(8))
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.voltage, self.temperature, self.current, self.charge, self.capacity, self.design_capacity, self.percentage, self.power_supply_status, self.power_supply_health, self.power_supply_technology = struct.unpack(">fffffffBBB", buf.read(31))
        self.present = bool(struct.unpack('b', buf.read(1))[0])
        self.cell_voltage = struct.unpack('>%df' % self.cell_voltage_length, buf.read(self.cell_voltage_length * 4))
        self.cell_temperature = struct.unpack('>%df' % self.cell_temperature_length, buf.read(self.cell_temperature_length * 4))
        __location_len = struct.unpack('>I', buf.read(4))[0]
        self.location = buf.read(__location_len)[:-1].decode('utf-8')
        __serial_number_len = struct.unpack('>I', buf.read(4))[0]
        self.serial_number = buf.read(__serial_number_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if BatteryState in parents: return 0
        newparents = parents + [BatteryState]
        tmphash = (0x8f419fb94c3b774d+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if BatteryState._packed_fingerprint is None:
            BatteryState._packed_fingerprint = struct.pack(">Q", BatteryState._get_hash_recursive([]))
        return BatteryState._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", BatteryState._get_packed_fingerprint())[0]
