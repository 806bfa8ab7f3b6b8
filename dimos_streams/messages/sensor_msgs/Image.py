"""Generated from lcm_types/sensor_msgs/Image.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Header

class Image(Message):
    """ One picture. """

    msg_name = "sensor_msgs.Image"

    __slots__ = ["data_length", "header", "height", "width", "encoding", "is_bigendian", "step", "data"]

    __typenames__ = ["int32_t", "dimos_streams.messages.std_msgs.Header", "int32_t", "int32_t", "string", "byte", "int32_t", "byte"]

    __dimensions__ = [None, None, None, None, None, None, None, ["data_length"]]

    def __init__(self, **fields):
        self.data_length = 0
        """
        Bytes in data.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """
        Time of exposure; an optical frame (x right, y down, z forward).
        LCM Type: dimos_streams.messages.std_msgs.Header
        """

        self.height = 0
        """
        Pixels.
        LCM Type: int32_t
        """

        self.width = 0
        """
        Pixels.
        LCM Type: int32_t
        """

        self.encoding = ""
        """
        "jpeg", "rgb8", "bgr8", "rgba8", "bgra8", "mono8", "mono16" or "16UC1" (depth in millimetres, 0 = nothing measured).
        LCM Type: string
        """

        self.is_bigendian = 0
        """
        1 if 16-bit pixels are big-endian.
        LCM Type: byte
        """

        self.step = 0
        """
        Bytes per row; 0 when compressed.
        LCM Type: int32_t
        """

        self.data = b""
        """
        The rows from top to bottom, or the JPEG file.
        LCM Type: byte[data_length]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.data_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        buf.write(struct.pack(">ii", self.height, self.width))
        __encoding_encoded = self.encoding.encode('utf-8')
        buf.write(struct.pack('>I', len(__encoding_encoded)+1))
        buf.write(__encoding_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">Bi", self.is_bigendian, self.step))
        buf.write(bytearray(self.data[:self.data_length]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Image._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Image._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Image.__new__(Image)
        self.data_length = struct.unpack(">i", buf.read(4))[0]
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.height, self.width = struct.unpack(">ii", buf.read(8))
        __encoding_len = struct.unpack('>I', buf.read(4))[0]
        self.encoding = buf.read(__encoding_len)[:-1].decode('utf-8')
        self.is_bigendian, self.step = struct.unpack(">Bi", buf.read(5))
        self.data = buf.read(self.data_length)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Image in parents: return 0
        newparents = parents + [Image]
        tmphash = (0x79d36c21d3c16094+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Image._packed_fingerprint is None:
            Image._packed_fingerprint = struct.pack(">Q", Image._get_hash_recursive([]))
        return Image._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Image._get_packed_fingerprint())[0]
