"""Generated from lcm_types/vision_msgs/BoundingBox3D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Vector3

import dimos_streams.messages.geometry_msgs.Pose

class BoundingBox3D(Message):
    """ A box in space. """

    msg_name = "vision_msgs.BoundingBox3D"

    __slots__ = ["center", "size"]

    __typenames__ = ["dimos_streams.messages.geometry_msgs.Pose", "dimos_streams.messages.geometry_msgs.Vector3"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.center = fields.pop("center") if "center" in fields else dimos_streams.messages.geometry_msgs.Pose()
        """
        Its middle, and how it is turned.
        LCM Type: dimos_streams.messages.geometry_msgs.Pose
        """

        self.size = fields.pop("size") if "size" in fields else dimos_streams.messages.geometry_msgs.Vector3()
        """
        Metres along its own axes.
        LCM Type: dimos_streams.messages.geometry_msgs.Vector3
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.center._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Pose._get_packed_fingerprint()
        self.center._encode_one(buf)
        assert self.size._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Vector3._get_packed_fingerprint()
        self.size._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != BoundingBox3D._get_packed_fingerprint():
            raise ValueError("Decode error")
        return BoundingBox3D._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = BoundingBox3D.__new__(BoundingBox3D)
        self.center = dimos_streams.messages.geometry_msgs.Pose._decode_one(buf)
        self.size = dimos_streams.messages.geometry_msgs.Vector3._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if BoundingBox3D in parents: return 0
        newparents = parents + [BoundingBox3D]
        tmphash = (0xe10feec5cba89663+ dimos_streams.messages.geometry_msgs.Pose._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Vector3._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if BoundingBox3D._packed_fingerprint is None:
            BoundingBox3D._packed_fingerprint = struct.pack(">Q", BoundingBox3D._get_hash_recursive([]))
        return BoundingBox3D._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", BoundingBox3D._get_packed_fingerprint())[0]
