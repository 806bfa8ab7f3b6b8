"""Generated from lcm_types/geometry_msgs/TwistWithCovariance.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Twist

class TwistWithCovariance(Message):
    """ A velocity and how sure it is. """

    msg_name = "geometry_msgs.TwistWithCovariance"

    __slots__ = ["twist", "covariance"]

    __typenames__ = ["dimos_streams.messages.geometry_msgs.Twist", "double"]

    __dimensions__ = [None, [36]]

    def __init__(self, **fields):
        self.twist = fields.pop("twist") if "twist" in fields else dimos_streams.messages.geometry_msgs.Twist()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Twist """
        self.covariance = fields.pop("covariance") if "covariance" in fields else [ 0.0 for dim0 in range(36) ]
        """
        Row-major 6x6 over linear x, y, z (m/s) and angular x, y, z (rad/s).
        LCM Type: double[36]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.twist._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Twist._get_packed_fingerprint()
        self.twist._encode_one(buf)
        buf.write(struct.pack('>36d', *self.covariance[:36]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != TwistWithCovariance._get_packed_fingerprint():
            raise ValueError("Decode error")
        return TwistWithCovariance._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = TwistWithCovariance.__new__(TwistWithCovariance)
        self.twist = dimos_streams.messages.geometry_msgs.Twist._decode_one(buf)
        self.covariance = struct.unpack('>36d', buf.read(288))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if TwistWithCovariance in parents: return 0
        newparents = parents + [TwistWithCovariance]
        tmphash = (0xaba0a9d55e98da5d+ dimos_streams.messages.geometry_msgs.Twist._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if TwistWithCovariance._packed_fingerprint is None:
            TwistWithCovariance._packed_fingerprint = struct.pack(">Q", TwistWithCovariance._get_hash_recursive([]))
        return TwistWithCovariance._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", TwistWithCovariance._get_packed_fingerprint())[0]
