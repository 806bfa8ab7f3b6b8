"""Generated from lcm_types/vision_msgs/Pose2D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.vision_msgs.Point2D

class Pose2D(Message):
    """ A place and a rotation in a picture. """

    msg_name = "vision_msgs.Pose2D"

    __slots__ = ["position", "theta"]

    __typenames__ = ["dimos_streams.messages.vision_msgs.Point2D", "double"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.position = fields.pop("position") if "position" in fields else dimos_streams.messages.vision_msgs.Point2D()
        """
        Pixels.
        LCM Type: dimos_streams.messages.vision_msgs.Point2D
        """

        self.theta = 0.0
        """
        rad
        LCM Type: double
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.position._get_packed_fingerprint() == dimos_streams.messages.vision_msgs.Point2D._get_packed_fingerprint()
        self.position._encode_one(buf)
        buf.write(struct.pack(">d", self.theta))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Pose2D._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Pose2D._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Pose2D.__new__(Pose2D)
        self.position = dimos_streams.messages.vision_msgs.Point2D._decode_one(buf)
        self.theta = struct.unpack(">d", buf.read(8))[0]
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Pose2D in parents: return 0
        newparents = parents + [Pose2D]
        tmphash = (0x2da59bf5b18f540+ dimos_streams.messages.vision_msgs.Point2D._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Pose2D._packed_fingerprint is None:
            Pose2D._packed_fingerprint = struct.pack(">Q", Pose2D._get_hash_recursive([]))
        return Pose2D._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Pose2D._get_packed_fingerprint())[0]
