"""Generated from lcm_types/sensor_msgs/JointState.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Header

class JointState(Message):
    """ Where joints are and how they move; each array is empty or as long as the names. """

    msg_name = "sensor_msgs.JointState"

    __slots__ = ["name_length", "position_length", "velocity_length", "effort_length", "header", "name", "position", "velocity", "effort"]

    __typenames__ = ["int32_t", "int32_t", "int32_t", "int32_t", "dimos_streams.messages.std_msgs.Header", "string", "double", "double", "double"]

    __dimensions__ = [None, None, None, None, None, ["name_length"], ["position_length"], ["velocity_length"], ["effort_length"]]

    def __init__(self, **fields):
        self.name_length = 0
        """
        Entries in name.
        LCM Type: int32_t
        """

        self.position_length = 0
        """
        Entries in position.
        LCM Type: int32_t
        """

        self.velocity_length = 0
        """
        Entries in velocity.
        LCM Type: int32_t
        """

        self.effort_length = 0
        """
        Entries in effort.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.name = []
        """ LCM Type: string[name_length] """
        self.position = []
        """
        rad, or m of a joint that slides.
        LCM Type: double[position_length]
        """

        self.velocity = []
        """
        rad/s or m/s
        LCM Type: double[velocity_length]
        """

        self.effort = []
        """
        Nm or N
        LCM Type: double[effort_length]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">iiii", self.name_length, self.position_length, self.velocity_length, self.effort_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        for i0 in range(self.name_length):
            __name_encoded = self.name[i0].encode('utf-8')
            buf.write(struct.pack('>I', len(__name_encoded)+1))
            buf.write(__name_encoded)
            buf.write(b"\0")
        buf.write(struct.pack('>%dd' % self.position_length, *self.position[:self.position_length]))
        buf.write(struct.pack('>%dd' % self.velocity_length, *self.velocity[:self.velocity_length]))
        buf.write(struct.pack('>%dd' % self.effort_length, *self.effort[:self.effort_length]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != JointState._get_packed_fingerprint():
            raise ValueError("Decode error")
        return JointState._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = JointState.__new__(JointState)
        self.name_length, self.position_length, self.velocity_length, self.effort_length = struct.unpack(">iiii", buf.read(16))
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.name = []
        for i0 in range(self.name_length):
            __name_len = struct.unpack('>I', buf.read(4))[0]
            self.name.append(buf.read(__name_len)[:-1].decode('utf-8'))
        self.position = struct.unpack('>%dd' % self.position_length, buf.read(self.position_length * 8))
        self.velocity = struct.unpack('>%dd' % self.velocity_length, buf.read(self.velocity_length * 8))
        self.effort = struct.unpack('>%dd' % self.effort_length, buf.read(self.effort_length * 8))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if JointState in parents: return 0
        newparents = parents + [JointState]
        tmphash = (0xb69cc30d0d7668fa+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if JointState._packed_fingerprint is None:
            JointState._packed_fingerprint = struct.pack(">Q", JointState._get_hash_recursive([]))
        return JointState._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", JointState._get_packed_fingerprint())[0]
