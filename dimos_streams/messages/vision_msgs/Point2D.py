"""Generated from lcm_types/vision_msgs/Point2D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class Point2D(Message):
    """ A place in a picture, pixels: x right, y down. """

    msg_name = "vision_msgs.Point2D"

    __slots__ = ["x", "y"]

    __typenames__ = ["double", "double"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.x = 0.0
        """ LCM Type: double """
        self.y = 0.0
        """ LCM Type: double """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">dd", self.x, self.y))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Point2D._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Point2D._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Point2D.__new__(Point2D)
        self.x, self.y = struct.unpack(">dd", buf.read(16))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Point2D in parents: return 0
        tmphash = (0xd259512e30b44885) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Point2D._packed_fingerprint is None:
            Point2D._packed_fingerprint = struct.pack(">Q", Point2D._get_hash_recursive([]))
        return Point2D._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Point2D._get_packed_fingerprint())[0]
