"""Generated from lcm_types/sensor_msgs/RegionOfInterest.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class RegionOfInterest(Message):
    """ A part of a picture, pixels. All zeros is the whole picture. """

    msg_name = "sensor_msgs.RegionOfInterest"

    __slots__ = ["x_offset", "y_offset", "height", "width", "do_rectify"]

    __typenames__ = ["int32_t", "int32_t", "int32_t", "int32_t", "boolean"]

    __dimensions__ = [None, None, None, None, None]

    def __init__(self, **fields):
        self.x_offset = 0
        """
        Leftmost column.
        LCM Type: int32_t
        """

        self.y_offset = 0
        """
        Topmost row.
        LCM Type: int32_t
        """

        self.height = 0
        """ LCM Type: int32_t """
        self.width = 0
        """ LCM Type: int32_t """
        self.do_rectify = False
        """
        Whether the region is to be rectified.
        LCM Type: boolean
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">iiiib", self.x_offset, self.y_offset, self.height, self.width, self.do_rectify))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != RegionOfInterest._get_packed_fingerprint():
            raise ValueError("Decode error")
        return RegionOfInterest._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = RegionOfInterest.__new__(RegionOfInterest)
        self.x_offset, self.y_offset, self.height, self.width = struct.unpack(">iiii", buf.read(16))
        self.do_rectify = bool(struct.unpack('b', buf.read(1))[0])
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if RegionOfInterest in parents: return 0
        tmphash = (0x398a869d05983f0e) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if RegionOfInterest._packed_fingerprint is None:
            RegionOfInterest._packed_fingerprint = struct.pack(">Q", RegionOfInterest._get_hash_recursive([]))
        return RegionOfInterest._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", RegionOfInterest._get_packed_fingerprint())[0]
