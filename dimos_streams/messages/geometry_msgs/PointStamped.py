"""Generated from lcm_types/geometry_msgs/PointStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Header

import dimos_streams.messages.geometry_msgs.Point

class PointStamped(Message):
    """ A point with its time and frame. """

    msg_name = "geometry_msgs.PointStamped"

    __slots__ = ["header", "point"]

    __typenames__ = ["dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.geometry_msgs.Point"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.point = fields.pop("point") if "point" in fields else dimos_streams.messages.geometry_msgs.Point()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Point """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        assert self.point._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Point._get_packed_fingerprint()
        self.point._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != PointStamped._get_packed_fingerprint():
            raise ValueError("Decode error")
        return PointStamped._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = PointStamped.__new__(PointStamped)
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.point = dimos_streams.messages.geometry_msgs.Point._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if PointStamped in parents: return 0
        newparents = parents + [PointStamped]
        tmphash = (0xf012413a2c8028c2+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Point._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if PointStamped._packed_fingerprint is None:
            PointStamped._packed_fingerprint = struct.pack(">Q", PointStamped._get_hash_recursive([]))
        return PointStamped._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", PointStamped._get_packed_fingerprint())[0]
