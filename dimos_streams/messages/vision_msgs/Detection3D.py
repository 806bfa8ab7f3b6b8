"""Generated from lcm_types/vision_msgs/Detection3D.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose

import dimos_streams.messages.std_msgs.Header

import dimos_streams.messages.vision_msgs.BoundingBox3D

class Detection3D(Message):
    """ One object found in space. """

    msg_name = "vision_msgs.Detection3D"

    __slots__ = ["results_length", "header", "results", "bbox", "id"]

    __typenames__ = ["int32_t", "dimos_streams.messages.std_msgs.Header", "dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose", "dimos_streams.messages.vision_msgs.BoundingBox3D", "string"]

    __dimensions__ = [None, None, ["results_length"], None, None]

    def __init__(self, **fields):
        self.results_length = 0
        """
        Entries in results.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """
        Time and frame of the box.
        LCM Type: dimos_streams.messages.std_msgs.Header
        """

        self.results = []
        """
        What it may be.
        LCM Type: dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose[results_length]
        """

        self.bbox = fields.pop("bbox") if "bbox" in fields else dimos_streams.messages.vision_msgs.BoundingBox3D()
        """ LCM Type: dimos_streams.messages.vision_msgs.BoundingBox3D """
        self.id = ""
        """
        The same for the same object over time; empty if not tracked.
        LCM Type: string
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">i", self.results_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        for i0 in range(self.results_length):
            assert self.results[i0]._get_packed_fingerprint() == dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose._get_packed_fingerprint()
            self.results[i0]._encode_one(buf)
        assert self.bbox._get_packed_fingerprint() == dimos_streams.messages.vision_msgs.BoundingBox3D._get_packed_fingerprint()
        self.bbox._encode_one(buf)
        __id_encoded = self.id.encode('utf-8')
        buf.write(struct.pack('>I', len(__id_encoded)+1))
        buf.write(__id_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Detection3D._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Detection3D._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Detection3D.__new__(Detection3D)
        self.results_length = struct.unpack(">i", buf.read(4))[0]
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.results = []
        for i0 in range(self.results_length):
            self.results.append(dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose._decode_one(buf))
        self.bbox = dimos_streams.messages.vision_msgs.BoundingBox3D._decode_one(buf)
        __id_len = struct.unpack('>I', buf.read(4))[0]
        self.id = buf.read(__id_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Detection3D in parents: return 0
        newparents = parents + [Detection3D]
        tmphash = (0x7c62020c10a78d22+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose._get_hash_recursive(newparents)+ dimos_streams.messages.vision_msgs.BoundingBox3D._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Detection3D._packed_fingerprint is None:
            Detection3D._packed_fingerprint = struct.pack(">Q", Detection3D._get_hash_recursive([]))
        return Detection3D._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Detection3D._get_packed_fingerprint())[0]
