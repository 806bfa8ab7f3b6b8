"""Generated from lcm_types/geometry_msgs/Pose.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Quaternion

import dimos_streams.messages.geometry_msgs.Point

class Pose(Message):
    """ Position (metres) and orientation in the frame that the context names. """

    msg_name = "geometry_msgs.Pose"

    __slots__ = ["position", "orientation"]

    __typenames__ = ["dimos_streams.messages.geometry_msgs.Point", "dimos_streams.messages.geometry_msgs.Quaternion"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.position = fields.pop("position") if "position" in fields else dimos_streams.messages.geometry_msgs.Point()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Point """
        self.orientation = fields.pop("orientation") if "orientation" in fields else dimos_streams.messages.geometry_msgs.Quaternion()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Quaternion """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.position._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Point._get_packed_fingerprint()
        self.position._encode_one(buf)
        assert self.orientation._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Quaternion._get_packed_fingerprint()
        self.orientation._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Pose._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Pose._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Pose.__new__(Pose)
        self.position = dimos_streams.messages.geometry_msgs.Point._decode_one(buf)
        self.orientation = dimos_streams.messages.geometry_msgs.Quaternion._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Pose in parents: return 0
        newparents = parents + [Pose]
        tmphash = (0x2d70dd60bd541272+ dimos_streams.messages.geometry_msgs.Point._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Quaternion._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Pose._packed_fingerprint is None:
            Pose._packed_fingerprint = struct.pack(">Q", Pose._get_hash_recursive([]))
        return Pose._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Pose._get_packed_fingerprint())[0]
