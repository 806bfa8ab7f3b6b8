"""Generated from lcm_types/trajectory_msgs/JointTrajectory.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint

import dimos_streams.messages.std_msgs.Header

class JointTrajectory(Message):
    """ How joints shall move. """

    msg_name = "trajectory_msgs.JointTrajectory"

    __slots__ = ["joint_names_length", "points_length", "header", "joint_names", "points"]

    __typenames__ = ["int32_t", "int32_t", "dimos_streams.messages.std_msgs.Header", "string", "dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint"]

    __dimensions__ = [None, None, None, ["joint_names_length"], ["points_length"]]

    def __init__(self, **fields):
        self.joint_names_length = 0
        """
        Entries in joint_names.
        LCM Type: int32_t
        """

        self.points_length = 0
        """
        Entries in points.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.joint_names = []
        """
        In the order of the points' values.
        LCM Type: string[joint_names_length]
        """

        self.points = []
        """ LCM Type: dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint[points_length] """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">ii", self.joint_names_length, self.points_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        for i0 in range(self.joint_names_length):
            __joint_names_encoded = self.joint_names[i0].encode('utf-8')
            buf.write(struct.pack('>I', len(__joint_names_encoded)+1))
            buf.write(__joint_names_encoded)
            buf.write(b"\0")
        for i0 in range(self.points_length):
            assert self.points[i0]._get_packed_fingerprint() == dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint._get_packed_fingerprint()
            self.points[i0]._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != JointTrajectory._get_packed_fingerprint():
            raise ValueError("Decode error")
        return JointTrajectory._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = JointTrajectory.__new__(JointTrajectory)
        self.joint_names_length, self.points_length = struct.unpack(">ii", buf.read(8))
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.joint_names = []
        for i0 in range(self.joint_names_length):
            __joint_names_len = struct.unpack('>I', buf.read(4))[0]
            self.joint_names.append(buf.read(__joint_names_len)[:-1].decode('utf-8'))
        self.points = []
        for i0 in range(self.points_length):
            self.points.append(dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint._decode_one(buf))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if JointTrajectory in parents: return 0
        newparents = parents + [JointTrajectory]
        tmphash = (0xf09db31afe774086+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.trajectory_msgs.JointTrajectoryPoint._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if JointTrajectory._packed_fingerprint is None:
            JointTrajectory._packed_fingerprint = struct.pack(">Q", JointTrajectory._get_hash_recursive([]))
        return JointTrajectory._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", JointTrajectory._get_packed_fingerprint())[0]
