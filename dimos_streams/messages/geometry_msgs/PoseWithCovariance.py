"""Generated from lcm_types/geometry_msgs/PoseWithCovariance.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Pose

class PoseWithCovariance(Message):
    """ A pose and how sure it is. """

    msg_name = "geometry_msgs.PoseWithCovariance"

    __slots__ = ["pose", "covariance"]

    __typenames__ = ["dimos_streams.messages.geometry_msgs.Pose", "double"]

    __dimensions__ = [None, [36]]

    def __init__(self, **fields):
        self.pose = fields.pop("pose") if "pose" in fields else dimos_streams.messages.geometry_msgs.Pose()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Pose """
        self.covariance = fields.pop("covariance") if "covariance" in fields else [ 0.0 for dim0 in range(36) ]
        """
        Row-major 6x6 over x, y, z (m) and the rotations about X, Y, Z (rad).
        LCM Type: double[36]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.pose._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Pose._get_packed_fingerprint()
        self.pose._encode_one(buf)
        buf.write(struct.pack('>36d', *self.covariance[:36]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != PoseWithCovariance._get_packed_fingerprint():
            raise ValueError("Decode error")
        return PoseWithCovariance._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = PoseWithCovariance.__new__(PoseWithCovariance)
        self.pose = dimos_streams.messages.geometry_msgs.Pose._decode_one(buf)
        self.covariance = struct.unpack('>36d', buf.read(288))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if PoseWithCovariance in parents: return 0
        newparents = parents + [PoseWithCovariance]
        tmphash = (0x42dbdfaa69371237+ dimos_streams.messages.geometry_msgs.Pose._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if PoseWithCovariance._packed_fingerprint is None:
            PoseWithCovariance._packed_fingerprint = struct.pack(">Q", PoseWithCovariance._get_hash_recursive([]))
        return PoseWithCovariance._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", PoseWithCovariance._get_packed_fingerprint())[0]
