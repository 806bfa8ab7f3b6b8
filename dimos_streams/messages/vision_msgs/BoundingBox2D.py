"""Generated from lcm_types/vision_msgs/BoundingBox2D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.vision_msgs.Pose2D

class BoundingBox2D(Message):
    """ A box around its centre. """

    msg_name = "vision_msgs.BoundingBox2D"

    __slots__ = ["center", "size_x", "size_y"]

    __typenames__ = ["dimos_streams.messages.vision_msgs.Pose2D", "double", "double"]

    __dimensions__ = [None, None, None]

    def __init__(self, **fields):
        self.center = fields.pop("center") if "center" in fields else dimos_streams.messages.vision_msgs.Pose2D()
        """
        Pixels.
        LCM Type: dimos_streams.messages.vision_msgs.Pose2D
        """

        self.size_x = 0.0
        """
        Width before rotation, pixels.
        LCM Type: double
        """

        self.size_y = 0.0
        """
        Height before rotation, pixels.
        LCM Type: double
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.center._get_packed_fingerprint() == dimos_streams.messages.vision_msgs.Pose2D._get_packed_fingerprint()
        self.center._encode_one(buf)
        buf.write(struct.pack(">dd", self.size_x, self.size_y))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != BoundingBox2D._get_packed_fingerprint():
            raise ValueError("Decode error")
        return BoundingBox2D._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = BoundingBox2D.__new__(BoundingBox2D)
        self.center = dimos_streams.messages.vision_msgs.Pose2D._decode_one(buf)
        self.size_x, self.size_y = struct.unpack(">dd", buf.read(16))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if BoundingBox2D in parents: return 0
        newparents = parents + [BoundingBox2D]
        tmphash = (0xe2274ad6240f1c77+ dimos_streams.messages.vision_msgs.Pose2D._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if BoundingBox2D._packed_fingerprint is None:
            BoundingBox2D._packed_fingerprint = struct.pack(">Q", BoundingBox2D._get_hash_recursive([]))
        return BoundingBox2D._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", BoundingBox2D._get_packed_fingerprint())[0]
