"""Generated from lcm_types/dimos_streams/ToolStreamRequest.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class ToolStreamRequest(Message):
    """ A reader's request to the one who publishes tool streams. """

    msg_name = "dimos_streams.ToolStreamRequest"

    __slots__ = ["utime", "receiver", "kind", "call_id", "from_seq", "to_seq"]

    __typenames__ = ["int64_t", "string", "string", "string", "int32_t", "int32_t"]

    __dimensions__ = [None, None, None, None, None, None]

    def __init__(self, **fields):
        self.utime = 0
        """
        When it was sent, µs since the Unix epoch.
        LCM Type: int64_t
        """

        self.receiver = ""
        """
        Who asks.
        LCM Type: string
        """

        self.kind = ""
        """
        "repair" (send from_seq .. to_seq again), "ack" (all up to to_seq came) or "describe" (send status now);
        answers: "gone" (from_seq .. to_seq can't be sent any more), "pending" (the call waits for what it needs to begin).
        LCM Type: string
        """

        self.call_id = ""
        """
        Empty for describe.
        LCM Type: string
        """

        self.from_seq = 0
        """
        First number meant, inclusive.
        LCM Type: int32_t
        """

        self.to_seq = 0
        """
        Last number meant, inclusive.
        LCM Type: int32_t
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">q", self.utime))
        __receiver_encoded = self.receiver.encode('utf-8')
        buf.write(struct.pack('>I', len(__receiver_encoded)+1))
        buf.write(__receiver_encoded)
        buf.write(b"\0")
        __kind_encoded = self.kind.encode('utf-8')
        buf.write(struct.pack('>I', len(__kind_encoded)+1))
        buf.write(__kind_encoded)
        buf.write(b"\0")
        __call_id_encoded = self.call_id.encode('utf-8')
        buf.write(struct.pack('>I', len(__call_id_encoded)+1))
        buf.write(__call_id_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">ii", self.from_seq, self.to_seq))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != ToolStreamRequest._get_packed_fingerprint():
            raise ValueError("Decode error")
        return ToolStreamRequest._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = ToolStreamRequest.__new__(ToolStreamRequest)
        self.utime = struct.unpack(">q", buf.read(8))[0]
        __receiver_len = struct.unpack('>I', buf.read(4))[0]
        self.receiver = buf.read(__receiver_len)[:-1].decode('utf-8')
        __kind_len = struct.unpack('>I', buf.read(4))[0]
        self.kind = buf.read(__kind_len)[:-1].decode('utf-8')
        __call_id_len = struct.unpack('>I', buf.read(4))[0]
        self.call_id = buf.read(__call_id_len)[:-1].decode('utf-8')
        self.from_seq, self.to_seq = struct.unpack(">ii", buf.read(8))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if ToolStreamRequest in parents: return 0
        tmphash = (0xaa54198d5e374a70) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if ToolStreamRequest._packed_fingerprint is None:
            ToolStreamRequest._packed_fingerprint = struct.pack(">Q", ToolStreamRequest._get_hash_recursive([]))
        return ToolStreamRequest._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", ToolStreamRequest._get_packed_fingerprint())[0]
