"""Generated from lcm_types/nav_msgs/Path.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.PoseStamped

import dimos_streams.messages.std_msgs.Header

class Path(Message):
    """ A way to go, in order. """

    msg_name = "nav_msgs.Path"

    __slots__ = ["poses_length", "header", "poses"]

    __typenames__ = ["int32_t", "dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.geometry_msgs.PoseStamped"]

    __dimensions__ = [None, None, ["poses_length"]]

    def __init__(self, **fields):
        self.poses_length = 0
        """
        Entries in poses.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.poses = []
        """ LCM Type: dimos_streams.messages.geometry_msgs.PoseStamped[poses_length] """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.poses_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        for i0 in range(self.poses_length):
            assert self.poses[i0]._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.PoseStamped._get_packed_fingerprint()
            self.poses[i0]._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Path._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Path._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Path.__new__(Path)
        self.poses_length = struct.unpack(">i", buf.read(4))[0]
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.poses = []
        for i0 in range(self.poses_length):
            self.poses.append(dimos_streams.messages.geometry_msgs.PoseStamped._decode_one(buf))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Path in parents: return 0
        newparents = parents + [Path]
        tmphash = (0xc779b6acc503055a+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.PoseStamped._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Path._packed_fingerprint is None:
            Path._packed_fingerprint = struct.pack(">Q", Path._get_hash_recursive([]))
        return Path._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Path._get_packed_fingerprint())[0]
