"""Generated from lcm_types/std_msgs/Header.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Time

class Header(Message):
    """ When and in which frame the data of a message was taken. """

    msg_name = "std_msgs.Header"

    __slots__ = ["seq", "stamp", "frame_id"]

    __typenames__ = ["int32_t", "dimos_streams.messages.std_msgs.Time", "string"]

    __dimensions__ = [None, None, None]

    def __init__(self, **fields):
        self.seq = 0
        """
        Consecutive number, 0 where the sender does not count.
        LCM Type: int32_t
        """

        self.stamp = fields.pop("stamp") if "stamp" in fields else dimos_streams.messages.std_msgs.Time()
        """
        When the data was taken, not when it was sent.
        LCM Type: dimos_streams.messages.std_msgs.Time
        """

        self.frame_id = ""
        """
        The frame that the data is expressed in.
        LCM Type: string
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.seq))
        assert self.stamp._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Time._get_packed_fingerprint()
        self.stamp._encode_one(buf)
        __frame_id_encoded = self.frame_id.encode('utf-8')
        buf.write(struct.pack('>I', len(__frame_id_encoded)+1))
        buf.write(__frame_id_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Header._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Header._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Header.__new__(Header)
        self.seq = struct.unpack(">i", buf.read(4))[0]
        self.stamp = dimos_streams.messages.std_msgs.Time._decode_one(buf)
        __frame_id_len = struct.unpack('>I', buf.read(4))[0]
        self.frame_id = buf.read(__frame_id_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Header in parents: return 0
        newparents = parents + [Header]
        tmphash = (0xdbb33f5b4c19b8ea+ dimos_streams.messages.std_msgs.Time._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Header._packed_fingerprint is None:
            Header._packed_fingerprint = struct.pack(">Q", Header._get_hash_recursive([]))
        return Header._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Header._get_packed_fingerprint())[0]
