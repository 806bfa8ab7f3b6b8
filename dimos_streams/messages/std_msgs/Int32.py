"""Generated from lcm_types/std_msgs/Int32.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class Int32(Message):
    """ A whole number of 32 bits. """

    msg_name = "std_msgs.Int32"

    __slots__ = ["data"]

    __typenames__ = ["int32_t"]

    __dimensions__ = [None]

    def __init__(self, **fields):
        self.data = 0
        """ LCM Type: int32_t """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.data))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Int32._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Int32._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Int32.__new__(Int32)
        self.data = struct.unpack(">i", buf.read(4))[0]
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Int32 in parents: return 0
        tmphash = (0x165e7cfbf548811f) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Int32._packed_fingerprint is None:
            Int32._packed_fingerprint = struct.pack(">Q", Int32._get_hash_recursive([]))
        return Int32._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Int32._get_packed_fingerprint())[0]
