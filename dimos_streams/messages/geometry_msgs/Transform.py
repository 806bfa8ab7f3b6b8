"""Generated from lcm_types/geometry_msgs/Transform.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Vector3

import dimos_streams.messages.geometry_msgs.Quaternion

class Transform(Message):
    """ Takes coordinates in the child frame to the parent frame. """

    msg_name = "geometry_msgs.Transform"

    __slots__ = ["translation", "rotation"]

    __typenames__ = ["dimos_streams.messages.geometry_msgs.Vector3", "dimos_streams.messages.geometry_msgs.Quaternion"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.translation = fields.pop("translation") if "translation" in fields else dimos_streams.messages.geometry_msgs.Vector3()
        """
        Metres.
        LCM Type: dimos_streams.messages.geometry_msgs.Vector3
        """

        self.rotation = fields.pop("rotation") if "rotation" in fields else dimos_streams.messages.geometry_msgs.Quaternion()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Quaternion """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.translation._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Vector3._get_packed_fingerprint()
        self.translation._encode_one(buf)
        assert self.rotation._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Quaternion._get_packed_fingerprint()
        self.rotation._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Transform._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Transform._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Transform.__new__(Transform)
        self.translation = dimos_streams.messages.geometry_msgs.Vector3._decode_one(buf)
        self.rotation = dimos_streams.messages.geometry_msgs.Quaternion._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Transform in parents: return 0
        newparents = parents + [Transform]
        tmphash = (0x1275bd1ccbdaf47f+ dimos_streams.messages.geometry_msgs.Vector3._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Quaternion._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Transform._packed_fingerprint is None:
            Transform._packed_fingerprint = struct.pack(">Q", Transform._get_hash_recursive([]))
        return Transform._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Transform._get_packed_fingerprint())[0]
