"""Generated from lcm_types/dimos_streams/SkillCancel.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class SkillCancel(Message):
    """ Asks for the end of a call. """

    msg_name = "dimos_streams.SkillCancel"

    __slots__ = ["utime", "call_id", "reason", "outcome"]

    __typenames__ = ["int64_t", "string", "string", "string"]

    __dimensions__ = [None, None, None, None]

    def __init__(self, **fields):
        self.utime = 0
        """
        When it was sent, µs since the Unix epoch.
        LCM Type: int64_t
        """

        self.call_id = ""
        """ LCM Type: string """
        self.reason = ""
        """
        For people and models.
        LCM Type: string
        """

        self.outcome = ""
        """
        With which outcome the sender has closed the call already; empty if it has not.
        LCM Type: string
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">q", self.utime))
        __call_id_encoded = self.call_id.encode('utf-8')
        buf.write(struct.pack('>I', len(__call_id_encoded)+1))
        buf.write(__call_id_encoded)
        buf.write(b"\0")
        __reason_encoded = self.reason.encode('utf-8')
        buf.write(struct.pack('>I', len(__reason_encoded)+1))
        buf.write(__reason_encoded)
        buf.write(b"\0")
        __outcome_encoded = self.outcome.encode('utf-8')
        buf.write(struct.pack('>I', len(__outcome_encoded)+1))
        buf.write(__outcome_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != SkillCancel._get_packed_fingerprint():
            raise ValueError("Decode error")
        return SkillCancel._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = SkillCancel.__new__(SkillCancel)
        self.utime = struct.unpack(">q", buf.read(8))[0]
        __call_id_len = struct.unpack('>I', buf.read(4))[0]
        self.call_id = buf.read(__call_id_len)[:-1].decode('utf-8')
        __reason_len = struct.unpack('>I', buf.read(4))[0]
        self.reason = buf.read(__reason_len)[:-1].decode('utf-8')
        __outcome_len = struct.unpack('>I', buf.read(4))[0]
        self.outcome = buf.read(__outcome_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if SkillCancel in parents: return 0
        tmphash = (0xda571ce24c7a6dc9) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if SkillCancel._packed_fingerprint is None:
            SkillCancel._packed_fingerprint = struct.pack(">Q", SkillCancel._get_hash_recursive([]))
        return SkillCancel._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", SkillCancel._get_packed_fingerprint())[0]
