"""Generated from lcm_types/std_msgs/Int8.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class Int8(Message):
    """ A whole number from -128 to 127. """

    msg_name = "std_msgs.Int8"

    __slots__ = ["data"]

    __typenames__ = ["int8_t"]

    __dimensions__ = [None]

    def __init__(self, **fields):
        self.data = 0
        """ LCM Type: int8_t """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">b", self.data))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Int8._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Int8._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Int8.__new__(Int8)
        self.data = struct.unpack(">b", buf.read(1))[0]
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Int8 in parents: return 0
        tmphash = (0x90e9a182fedda20a) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Int8._packed_fingerprint is None:
            Int8._packed_fingerprint = struct.pack(">Q", Int8._get_hash_recursive([]))
        return Int8._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Int8._get_packed_fingerprint())[0]
