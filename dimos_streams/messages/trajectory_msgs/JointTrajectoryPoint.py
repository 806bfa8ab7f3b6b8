"""Generated from lcm_types/trajectory_msgs/JointTrajectoryPoint.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Duration

class JointTrajectoryPoint(Message):
    """ Where joints shall be at a time; each array is empty or as long as the trajectory's names. """

    msg_name = "trajectory_msgs.JointTrajectoryPoint"

    __slots__ = ["positions_length", "velocities_length", "accelerations_length", "effort_length", "positions", "velocities", "accelerations", "effort", "time_from_start"]

    __typenames__ = ["int32_t", "int32_t", "int32_t", "int32_t", "double", "double", "double", "double", "dimos_streams.messages.std_msgs.Duration"]

    __dimensions__ = [None, None, None, None, ["positions_length"], ["velocities_length"], ["accelerations_length"], ["effort_length"], None]

    def __init__(self, **fields):
        self.positions_length = 0
        """
        Entries in positions.
        LCM Type: int32_t
        """

        self.velocities_length = 0
        """
        Entries in velocities.
        LCM Type: int32_t
        """

        self.accelerations_length = 0
        """
        Entries in accelerations.
        LCM Type: int32_t
        """

        self.effort_length = 0
        """
        Entries in effort.
        LCM Type: int32_t
        """

        self.positions = []
        """
        rad, or m of a joint that slides.
        LCM Type: double[positions_length]
        """

        self.velocities = []
        """
        rad/s or m/s
        LCM Type: double[velocities_length]
        """

        self.accelerations = []
        """
        rad/s² or m/s²
        LCM Type: double[accelerations_length]
        """

        self.effort = []
        """
        Nm or N
        LCM Type: double[effort_length]
        """

        self.time_from_start = fields.pop("time_from_start") if "time_from_start" in fields else dimos_streams.messages.std_msgs.Duration()
        """
        Since the trajectory's beginning.
        LCM Type: dimos_streams.messages.std_msgs.Duration
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">iiii", self.positions_length, self.velocities_length, self.accelerations_length, self.effort_length))
        buf.write(struct.pack('>%dd' % self.positions_length, *self.positions[:self.positions_length]))
        buf.write(struct.pack('>%dd' % self.velocities_length, *self.velocities[:self.velocities_length]))
        buf.write(struct.pack('>%dd' % self.accelerations_length, *self.accelerations[:self.accelerations_length]))
        buf.write(struct.pack('>%dd' % self.effort_length, *self.effort[:self.effort_length]))
        assert self.time_from_start._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Duration._get_packed_fingerprint()
        self.time_from_start._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != JointTrajectoryPoint._get_packed_fingerprint():
            raise ValueError("Decode error")
        return JointTrajectoryPoint._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = JointTrajectoryPoint.__new__(JointTrajectoryPoint)
        self.positions_length, self.velocities_length, self.accelerations_length, self.effort_length = struct.unpack(">iiii", buf.read(16))
        self.positions = struct.unpack('>%dd' % self.positions_length, buf.read(self.positions_length * 8))
        self.velocities = struct.unpack('>%dd' % self.velocities_length, buf.read(self.velocities_length * 8))
        self.accelerations = struct.unpack('>%dd' % self.accelerations_length, buf.read(self.accelerations_length * 8))
        self.effort = struct.unpack('>%dd' % self.effort_length, buf.read(self.effort_length * 8))
        self.time_from_start = dimos_streams.messages.std_msgs.Duration._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if JointTrajectoryPoint in parents: return 0
        newparents = parents + [JointTrajectoryPoint]
        tmphash = (0x5f17dcae9da98292+ dimos_streams.messages.std_msgs.Duration._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if JointTrajectoryPoint._packed_fingerprint is None:
            JointTrajectoryPoint._packed_fingerprint = struct.pack(">Q", JointTrajectoryPoint._get_hash_recursive([]))
        return JointTrajectoryPoint._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", JointTrajectoryPoint._get_packed_fingerprint())[0]
