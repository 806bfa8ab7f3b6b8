"""Generated from lcm_types/vision_msgs/Detection2DArray.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.vision_msgs.Detection2D

import dimos_streams.messages.std_msgs.Header

class Detection2DArray(Message):
    """ All objects found in one picture. """

    msg_name = "vision_msgs.Detection2DArray"

    __slots__ = ["detections_length", "header", "detections"]

    __typenames__ = ["int32_t", "dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.vision_msgs.Detection2D"]

    __dimensions__ = [None, None, ["detections_length"]]

    def __init__(self, **fields):
        self.detections_length = 0
        """
        Entries in detections.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """
        The picture's.
        LCM Type: dimos_streams.messages.std_msgs.Header
        """

        self.detections = []
        """ LCM Type: dimos_streams.messages.vision_msgs.Detection2D[detections_length] """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.detections_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        for i0 in range(self.detections_length):
            assert self.detections[i0]._get_packed_fingerprint() == dimos_streams.messages.vision_msgs.Detection2D._get_packed_fingerprint()
            self.detections[i0]._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Detection2DArray._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Detection2DArray._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Detection2DArray.__new__(Detection2DArray)
        self.detections_length = struct.unpack(">i", buf.read(4))[0]
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.detections = []
        for i0 in range(self.detections_length):
            self.detections.append(dimos_streams.messages.vision_msgs.Detection2D._decode_one(buf))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Detection2DArray in parents: return 0
        newparents = parents + [Detection2DArray]
        tmphash = (0x85b4a076ba01be3c+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.vision_msgs.Detection2D._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Detection2DArray._packed_fingerprint is None:
            Detection2DArray._packed_fingerprint = struct.pack(">Q", Detection2DArray._get_hash_recursive([]))
        return Detection2DArray._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Detection2DArray._get_packed_fingerprint())[0]
