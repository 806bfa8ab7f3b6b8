"""Generated from lcm_types/geometry_msgs/Twist.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Vector3

class Twist(Message):
    """ Velocity: x forward, y left, z up; rotation counter-clockwise positive. """

    msg_name = "geometry_msgs.Twist"

    __slots__ = ["linear", "angular"]

    __typenames__ = ["dimos_streams.messages.geometry_msgs.Vector3", "dimos_streams.messages.geometry_msgs.Vector3"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.linear = fields.pop("linear") if "linear" in fields else dimos_streams.messages.geometry_msgs.Vector3()
        """
        m/s
        LCM Type: dimos_streams.messages.geometry_msgs.Vector3
        """

        self.angular = fields.pop("angular") if "angular" in fields else dimos_streams.messages.geometry_msgs.Vector3()
        """
        rad/s
        LCM Type: dimos_streams.messages.geometry_msgs.Vector3
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.linear._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Vector3._get_packed_fingerprint()
        self.linear._encode_one(buf)
        assert self.angular._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Vector3._get_packed_fingerprint()
        self.angular._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Twist._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Twist._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Twist.__new__(Twist)
        self.linear = dimos_streams.messages.geometry_msgs.Vector3._decode_one(buf)
        self.angular = dimos_streams.messages.geometry_msgs.Vector3._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Twist in parents: return 0
        newparents = parents + [Twist]
        tmphash = (0x3a4144772922add7+ dimos_streams.messages.geometry_msgs.Vector3._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Vector3._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Twist._packed_fingerprint is None:
            Twist._packed_fingerprint = struct.pack(">Q", Twist._get_hash_recursive([]))
        return Twist._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Twist._get_packed_fingerprint())[0]
