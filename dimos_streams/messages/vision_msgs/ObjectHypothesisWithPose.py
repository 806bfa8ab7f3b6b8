"""Generated from lcm_types/vision_msgs/ObjectHypothesisWithPose.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.PoseWithCovariance

import dimos_streams.messages.vision_msgs.ObjectHypothesis

class ObjectHypothesisWithPose(Message):
    """ What an object may be, and where. """

    msg_name = "vision_msgs.ObjectHypothesisWithPose"

    __slots__ = ["hypothesis", "pose"]

    __typenames__ = ["dimos_streams.messages.vision_msgs.ObjectHypothesis", "dimos_streams.messages.geometry_msgs.PoseWithCovariance"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.hypothesis = fields.pop("hypothesis") if "hypothesis" in fields else dimos_streams.messages.vision_msgs.ObjectHypothesis()
        """ LCM Type: dimos_streams.messages.vision_msgs.ObjectHypothesis """
        self.pose = fields.pop("pose") if "pose" in fields else dimos_streams.messages.geometry_msgs.PoseWithCovariance()
        """
        Metres; NaN where unknown.
        LCM Type: dimos_streams.messages.geometry_msgs.PoseWithCovariance
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.hypothesis._get_packed_fingerprint() == dimos_streams.messages.vision_msgs.ObjectHypothesis._get_packed_fingerprint()
        self.hypothesis._encode_one(buf)
        assert self.pose._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.PoseWithCovariance._get_packed_fingerprint()
        self.pose._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != ObjectHypothesisWithPose._get_packed_fingerprint():
            raise ValueError("Decode error")
        return ObjectHypothesisWithPose._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = ObjectHypothesisWithPose.__new__(ObjectHypothesisWithPose)
        self.hypothesis = dimos_streams.messages.vision_msgs.ObjectHypothesis._decode_one(buf)
        self.pose = dimos_streams.messages.geometry_msgs.PoseWithCovariance._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if ObjectHypothesisWithPose in parents: return 0
        newparents = parents + [ObjectHypothesisWithPose]
        tmphash = (0x65e1d44b451e8a8b+ dimos_streams.messages.vision_msgs.ObjectHypothesis._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.PoseWithCovariance._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if ObjectHypothesisWithPose._packed_fingerprint is None:
            ObjectHypothesisWithPose._packed_fingerprint = struct.pack(">Q", ObjectHypothesisWithPose._get_hash_recursive([]))
        return ObjectHypothesisWithPose._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", ObjectHypothesisWithPose._get_packed_fingerprint())[0]
