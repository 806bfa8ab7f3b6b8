"""Generated from lcm_types/nav_msgs/MapMetaData.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Time

import dimos_streams.messages.geometry_msgs.Pose

class MapMetaData(Message):
    """ Size and place of an occupancy grid. """

    msg_name = "nav_msgs.MapMetaData"

    __slots__ = ["map_load_time", "resolution", "width", "height", "origin"]

    __typenames__ = ["dimos_streams.messages.std_msgs.Time", "float", "int32_t", "int32_t", "dimos_streams.messages.geometry_msgs.Pose"]

    __dimensions__ = [None, None, None, None, None]

    def __init__(self, **fields):
        self.map_load_time = fields.pop("map_load_time") if "map_load_time" in fields else dimos_streams.messages.std_msgs.Time()
        """ LCM Type: dimos_streams.messages.std_msgs.Time """
        self.resolution = 0.0
        """
        Edge of a cell, m.
        LCM Type: float
        """

        self.width = 0
        """
        Cells along x.
        LCM Type: int32_t
        """

        self.height = 0
        """
        Cells along y.
        LCM Type: int32_t
        """

        self.origin = fields.pop("origin") if "origin" in fields else dimos_streams.messages.geometry_msgs.Pose()
        """
        Of the corner of cell (0, 0), in the map's frame, m.
        LCM Type: dimos_streams.messages.geometry_msgs.Pose
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.map_load_time._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Time._get_packed_fingerprint()
        self.map_load_time._encode_one(buf)
        buf.write(struct.pack(">fii", self.resolution, self.width, self.height))
        assert self.origin._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Pose._get_packed_fingerprint()
        self.origin._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != MapMetaData._get_packed_fingerprint():
            raise ValueError("Decode error")
        return MapMetaData._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = MapMetaData.__new__(MapMetaData)
        self.map_load_time = dimos_streams.messages.std_msgs.Time._decode_one(buf)
        self.resolution, self.width, self.height = struct.unpack(">fii", buf.read(12))
        self.origin = dimos_streams.messages.geometry_msgs.Pose._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if MapMetaData in parents: return 0
        newparents = parents + [MapMetaData]
        tmphash = (0x3245f3cdb468ba93+ dimos_streams.messages.std_msgs.Time._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Pose._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if MapMetaData._packed_fingerprint is None:
            MapMetaData._packed_fingerprint = struct.pack(">Q", MapMetaData._get_hash_recursive([]))
        return MapMetaData._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", MapMetaData._get_packed_fingerprint())[0]
