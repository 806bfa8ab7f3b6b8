"""Generated from lcm_types/geometry_msgs/PoseStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Pose

import dimos_streams.messages.std_msgs.Header

class PoseStamped(Message):
    """ A pose with its time and frame. """

    msg_name = "geometry_msgs.PoseStamped"

    __slots__ = ["header", "pose"]

    __typenames__ = ["dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.geometry_msgs.Pose"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.pose = fields.pop("pose") if "pose" in fields else dimos_streams.messages.geometry_msgs.Pose()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Pose """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        assert self.pose._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Pose._get_packed_fingerprint()
        self.pose._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != PoseStamped._get_packed_fingerprint():
            raise ValueError("Decode error")
        return PoseStamped._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = PoseStamped.__new__(PoseStamped)
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.pose = dimos_streams.messages.geometry_msgs.Pose._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if PoseStamped in parents: return 0
        newparents = parents + [PoseStamped]
        tmphash = (0xe10feebec5c97663+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Pose._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if PoseStamped._packed_fingerprint is None:
            PoseStamped._packed_fingerprint = struct.pack(">Q", PoseStamped._get_hash_recursive([]))
        return PoseStamped._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", PoseStamped._get_packed_fingerprint())[0]
