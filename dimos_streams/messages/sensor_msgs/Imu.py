"""Generated from lcm_types/sensor_msgs/Imu.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Quaternion

import dimos_streams.messages.geometry_msgs.Vector3

import dimos_streams.messages.std_msgs.Header

class Imu(Message):
    """ Inertial measurement. A covariance that begins with -1 says that the quantity is not measured. """

    msg_name = "sensor_msgs.Imu"

    __slots__ = ["header", "orientation", "orientation_covariance", "angular_velocity", "angular_velocity_covariance", "linear_acceleration", "linear_acceleration_covariance"]

    __typenames__ = ["dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.geometry_msgs.Quaternion", "double", "dimos_streams.messages.geometry_msgs.Vector3", "double", "dimos_streams.messages.geometry_msgs.Vector3", "double"]

    __dimensions__ = [None, None, [9], None, [9], None, [9]]

    def __init__(self, **fields):
        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.orientation = fields.pop("orientation") if "orientation" in fields else dimos_streams.messages.geometry_msgs.Quaternion()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Quaternion """
        self.orientation_covariance = fields.pop("orientation_covariance") if "orientation_covariance" in fields else [ 0.0 for dim0 in range(9) ]
        """
        Row-major 3x3, rad^2.
        LCM Type: double[9]
        """

        self.angular_velocity = fields.pop("angular_velocity") if "angular_velocity" in fields else dimos_streams.messages.geometry_msgs.Vector3()
        """
        rad/s
        LCM Type: dimos_streams.messages.geometry_msgs.Vector3
        """

        self.angular_velocity_covariance = fields.pop("angular_velocity_covariance") if "angular_velocity_covariance" in fields else [ 0.0 for dim0 in range(9) ]
        """
        Row-major 3x3, (rad/s)^2.
        LCM Type: double[9]
        """

        self.linear_acceleration = fields.pop("linear_acceleration") if "linear_acceleration" in fields else dimos_streams.messages.geometry_msgs.Vector3()
        """
        m/s^2
        LCM Type: dimos_streams.messages.geometry_msgs.Vector3
        """

        self.linear_acceleration_covariance = fields.pop("linear_acceleration_covariance") if "linear_acceleration_covariance" in fields else [ 0.0 for dim0 in range(9) ]
        """
        Row-major 3x3, (m/s^2)^2.
        LCM Type: double[9]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        assert self.orientation._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Quaternion._get_packed_fingerprint()
        self.orientation._encode_one(buf)
        buf.write(struct.pack('>9d', *self.orientation_covariance[:9]))
        assert self.angular_velocity._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Vector3._get_packed_fingerprint()
        self.angular_velocity._encode_one(buf)
        buf.write(struct.pack('>9d', *self.angular_velocity_covariance[:9]))
        assert self.linear_acceleration._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Vector3._get_packed_fingerprint()
        self.linear_acceleration._encode_one(buf)
        buf.write(struct.pack('>9d', *self.linear_acceleration_covariance[:9]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Imu._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Imu._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Imu.__new__(Imu)
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.orientation = dimos_streams.messages.geometry_msgs.Quaternion._decode_one(buf)
        self.orientation_covariance = struct.unpack('>9d', buf.read(72))
        self.angular_velocity = dimos_streams.messages.geometry_msgs.Vector3._decode_one(buf)
        self.angular_velocity_covariance = struct.unpack('>9d', buf.read(72))
        self.linear_acceleration = dimos_streams.messages.geometry_msgs.Vector3._decode_one(buf)
        self.linear_acceleration_covariance = struct.unpack('>9d', buf.read(72))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Imu in parents: return 0
        newparents = parents + [Imu]
        tmphash = (0x55c1e238541325f6+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Quaternion._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Vector3._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Vector3._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Imu._packed_fingerprint is None:
            Imu._packed_fingerprint = struct.pack(">Q", Imu._get_hash_recursive([]))
        return Imu._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Imu._get_packed_fingerprint())[0]
