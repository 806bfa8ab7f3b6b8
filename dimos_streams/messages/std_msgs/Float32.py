"""Generated from lcm_types/std_msgs/Float32.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class Float32(Message):
    """ A number of single precision. """

    msg_name = "std_msgs.Float32"

    __slots__ = ["data"]

    __typenames__ = ["float"]

    __dimensions__ = [None]

    def __init__(self, **fields):
        self.data = 0.0
        """ LCM Type: float """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">f", self.data))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Float32._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Float32._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Float32.__new__(Float32)
        self.data = struct.unpack(">f", buf.read(4))[0]
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Float32 in parents: return 0
        tmphash = (0x856e135c782a36e9) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Float32._packed_fingerprint is None:
            Float32._packed_fingerprint = struct.pack(">Q", Float32._get_hash_recursive([]))
        return Float32._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Float32._get_packed_fingerprint())[0]
