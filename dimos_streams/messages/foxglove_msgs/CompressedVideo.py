"""Generated from lcm_types/foxglove_msgs/CompressedVideo.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.builtin_interfaces.Time

class CompressedVideo(Message):
    """ One packet of an encoded video, which needs those before it. """

    msg_name = "foxglove_msgs.CompressedVideo"

    __slots__ = ["data_length", "timestamp", "frame_id", "data", "format"]

    __typenames__ = ["int32_t", "dimos_streams.messages.builtin_interfaces.Time", "string", "byte", "string"]

    __dimensions__ = [None, None, None, ["data_length"], None]

    def __init__(self, **fields):
        self.data_length = 0
        """
        Bytes in data.
        LCM Type: int32_t
        """

        self.timestamp = fields.pop("timestamp") if "timestamp" in fields else dimos_streams.messages.builtin_interfaces.Time()
        """ LCM Type: dimos_streams.messages.builtin_interfaces.Time """
        self.frame_id = ""
        """ LCM Type: string """
        self.data = b""
        """
        Annex B for h264 and h265.
        LCM Type: byte[data_length]
        """

        self.format = ""
        """
        h264, h265, av1, vp8 or vp9.
        LCM Type: string
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.data_length))
        assert self.timestamp._get_packed_fingerprint() == dimos_streams.messages.builtin_interfaces.Time._get_packed_fingerprint()
        self.timestamp._encode_one(buf)
        __frame_id_encoded = self.frame_id.encode('utf-8')
        buf.write(struct.pack('>I', len(__frame_id_encoded)+1))
        buf.write(__frame_id_encoded)
        buf.write(b"\0")
        buf.write(bytearray(self.data[:self.data_length]))
        __format_encoded = self.format.encode('utf-8')
        buf.write(struct.pack('>I', len(__format_encoded)+1))
        buf.write(__format_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != CompressedVideo._get_packed_fingerprint():
            raise ValueError("Decode error")
        return CompressedVideo._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = CompressedVideo.__new__(CompressedVideo)
        self.data_length = struct.unpack(">i", buf.read(4))[0]
        self.timestamp = dimos_streams.messages.builtin_interfaces.Time._decode_one(buf)
        __frame_id_len = struct.unpack('>I', buf.read(4))[0]
        self.frame_id = buf.read(__frame_id_len)[:-1].decode('utf-8')
        self.data = buf.read(self.data_length)
        __format_len = struct.unpack('>I', buf.read(4))[0]
        self.format = buf.read(__format_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if CompressedVideo in parents: return 0
        newparents = parents + [CompressedVideo]
        tmphash = (0x448d6658328c5ebc+ dimos_streams.messages.builtin_interfaces.Time._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if CompressedVideo._packed_fingerprint is None:
            CompressedVideo._packed_fingerprint = struct.pack(">Q", CompressedVideo._get_hash_recursive([]))
        return CompressedVideo._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", CompressedVideo._get_packed_fingerprint())[0]
