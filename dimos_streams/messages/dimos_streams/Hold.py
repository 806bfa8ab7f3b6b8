"""Generated from lcm_types/dimos_streams/Hold.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class Hold(Message):
    """ Somebody wants the robot still, or no longer. Repeated while it lasts, at least every 0.2 s. """

    msg_name = "dimos_streams.Hold"

    __slots__ = ["utime", "source", "seq", "hold", "valid_s", "reason"]

    __typenames__ = ["int64_t", "string", "int64_t", "boolean", "double", "string"]

    __dimensions__ = [None, None, None, None, None, None]

    def __init__(self, **fields):
        self.utime = 0
        """
        When it was sent, µs since the Unix epoch.
        LCM Type: int64_t
        """

        self.source = ""
        """
        Who holds: the name of a module, of an agent for instance; 1 to 200 bytes, printable.
        LCM Type: string
        """

        self.seq = 0
        """
        Orders messages of one moment: grows with each message of this source, and begins anew when it is restarted.
        LCM Type: int64_t
        """

        self.hold = False
        """
        True to hold, false to let go.
        LCM Type: boolean
        """

        self.valid_s = 0.0
        """
        How long a hold counts from its arrival without being repeated, s; more than 0. For less than 0.5 it counts for 0.5,
        for more than 60 it counts for 60. In a release it says nothing.
        LCM Type: double
        """

        self.reason = ""
        """
        For people.
        LCM Type: string
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">q", self.utime))
        __source_encoded = self.source.encode('utf-8')
        buf.write(struct.pack('>I', len(__source_encoded)+1))
        buf.write(__source_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">qbd", self.seq, self.hold, self.valid_s))
        __reason_encoded = self.reason.encode('utf-8')
        buf.write(struct.pack('>I', len(__reason_encoded)+1))
        buf.write(__reason_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Hold._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Hold._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Hold.__new__(Hold)
        self.utime = struct.unpack(">q", buf.read(8))[0]
        __source_len = struct.unpack('>I', buf.read(4))[0]
        self.source = buf.read(__source_len)[:-1].decode('utf-8')
        self.seq = struct.unpack(">q", buf.read(8))[0]
        self.hold = bool(struct.unpack('b', buf.read(1))[0])
        self.valid_s = struct.unpack(">d", buf.read(8))[0]
        __reason_len = struct.unpack('>I', buf.read(4))[0]
        self.reason = buf.read(__reason_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Hold in parents: return 0
        tmphash = (0x71e18c2f011dc6c) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Hold._packed_fingerprint is None:
            Hold._packed_fingerprint = struct.pack(">Q", Hold._get_hash_recursive([]))
        return Hold._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Hold._get_packed_fingerprint())[0]
