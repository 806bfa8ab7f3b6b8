"""Generated from lcm_types/std_msgs/UInt16.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class UInt16(Message):
    """ Sixteen bits. LCM has no unsigned type for them: what is above 32767 appears as a negative number. """

    msg_name = "std_msgs.UInt16"

    __slots__ = ["data"]

    __typenames__ = ["int16_t"]

    __dimensions__ = [None]

    def __init__(self, **fields):
        self.data = 0
        """ LCM Type: int16_t """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">h", self.data))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != UInt16._get_packed_fingerprint():
            raise ValueError("Decode error")
        return UInt16._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = UInt16.__new__(UInt16)
        self.data = struct.unpack(">h", buf.read(2))[0]
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if UInt16 in parents: return 0
        tmphash = (0x165e7cf9f948811f) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if UInt16._packed_fingerprint is None:
            UInt16._packed_fingerprint = struct.pack(">Q", UInt16._get_hash_recursive([]))
        return UInt16._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", UInt16._get_packed_fingerprint())[0]
