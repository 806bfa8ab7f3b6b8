"""Generated from lcm_types/std_msgs/Int64.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class Int64(Message):
    """ A whole number of 64 bits. """

    msg_name = "std_msgs.Int64"

    __slots__ = ["data"]

    __typenames__ = ["int64_t"]

    __dimensions__ = [None]

    def __init__(self, **fields):
        self.data = 0
        """ LCM Type: int64_t """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">q", self.data))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Int64._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Int64._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Int64.__new__(Int64)
        self.data = struct.unpack(">q", buf.read(8))[0]
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Int64 in parents: return 0
        tmphash = (0x165e7cfef748811f) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Int64._packed_fingerprint is None:
            Int64._packed_fingerprint = struct.pack(">Q", Int64._get_hash_recursive([]))
        return Int64._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Int64._get_packed_fingerprint())[0]
