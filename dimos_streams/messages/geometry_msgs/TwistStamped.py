"""Generated from lcm_types/geometry_msgs/TwistStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Twist

import dimos_streams.messages.std_msgs.Header

class TwistStamped(Message):
    """ A velocity with its time and frame. """

    msg_name = "geometry_msgs.TwistStamped"

    __slots__ = ["header", "twist"]

    __typenames__ = ["dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.geometry_msgs.Twist"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.twist = fields.pop("twist") if "twist" in fields else dimos_streams.messages.geometry_msgs.Twist()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Twist """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        assert self.twist._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Twist._get_packed_fingerprint()
        self.twist._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != TwistStamped._get_packed_fingerprint():
            raise ValueError("Decode error")
        return TwistStamped._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = TwistStamped.__new__(TwistStamped)
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.twist = dimos_streams.messages.geometry_msgs.Twist._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if TwistStamped in parents: return 0
        newparents = parents + [TwistStamped]
        tmphash = (0xf01245422c7b28c2+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Twist._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if TwistStamped._packed_fingerprint is None:
            TwistStamped._packed_fingerprint = struct.pack(">Q", TwistStamped._get_hash_recursive([]))
        return TwistStamped._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", TwistStamped._get_packed_fingerprint())[0]
