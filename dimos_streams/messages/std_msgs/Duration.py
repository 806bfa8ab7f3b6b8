"""Generated from lcm_types/std_msgs/Duration.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class Duration(Message):
    """ A length of time. """

    msg_name = "std_msgs.Duration"

    __slots__ = ["sec", "nsec"]

    __typenames__ = ["int32_t", "int32_t"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.sec = 0
        """
        Whole seconds.
        LCM Type: int32_t
        """

        self.nsec = 0
        """
        Nanoseconds within the second, 0 .. 999999999.
        LCM Type: int32_t
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">ii", self.sec, self.nsec))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Duration._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Duration._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Duration.__new__(Duration)
        self.sec, self.nsec = struct.unpack(">ii", buf.read(8))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Duration in parents: return 0
        tmphash = (0xde1d24a3a8ecb648) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Duration._packed_fingerprint is None:
            Duration._packed_fingerprint = struct.pack(">Q", Duration._get_hash_recursive([]))
        return Duration._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Duration._get_packed_fingerprint())[0]
