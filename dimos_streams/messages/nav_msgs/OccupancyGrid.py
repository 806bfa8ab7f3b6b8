"""Generated from lcm_types/nav_msgs/OccupancyGrid.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Header

import dimos_streams.messages.nav_msgs.MapMetaData

class OccupancyGrid(Message):
    """ A map of cells. """

    msg_name = "nav_msgs.OccupancyGrid"

    __slots__ = ["data_length", "header", "info", "data"]

    __typenames__ = ["int32_t", "dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.nav_msgs.MapMetaData", "int8_t"]

    __dimensions__ = [None, None, None, ["data_length"]]

    def __init__(self, **fields):
        self.data_length = 0
        """
        Cells in data.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.info = fields.pop("info") if "info" in fields else dimos_streams.messages.nav_msgs.MapMetaData()
        """ LCM Type: dimos_streams.messages.nav_msgs.MapMetaData """
        self.data = []
        """
        Row-major from (0, 0), x runs first: 0 free .. 100 occupied, -1 unknown.
        LCM Type: int8_t[data_length]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.data_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        assert self.info._get_packed_fingerprint() == dimos_streams.messages.nav_msgs.MapMetaData._get_packed_fingerprint()
        self.info._encode_one(buf)
        buf.write(struct.pack('>%db' % self.data_length, *self.data[:self.data_length]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != OccupancyGrid._get_packed_fingerprint():
            raise ValueError("Decode error")
        return OccupancyGrid._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = OccupancyGrid.__new__(OccupancyGrid)
        self.data_length = struct.unpack(">i", buf.read(4))[0]
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.info = dimos_streams.messages.nav_msgs.MapMetaData._decode_one(buf)
        self.data = struct.unpack('>%db' % self.data_length, buf.read(self.data_length))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if OccupancyGrid in parents: return 0
        newparents = parents + [OccupancyGrid]
        tmphash = (0x9e67f3f149308d87+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.nav_msgs.MapMetaData._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if OccupancyGrid._packed_fingerprint is None:
            OccupancyGrid._packed_fingerprint = struct.pack(">Q", OccupancyGrid._get_hash_recursive([]))
        return OccupancyGrid._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", OccupancyGrid._get_packed_fingerprint())[0]
