"""Generated from lcm_types/vision_msgs/ObjectHypothesis.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class ObjectHypothesis(Message):
    """ What an object may be. """

    msg_name = "vision_msgs.ObjectHypothesis"

    __slots__ = ["class_id", "score"]

    __typenames__ = ["string", "double"]

    __dimensions__ = [None, None]

    def __init__(self, **fields):
        self.class_id = ""
        """
        A label.
        LCM Type: string
        """

        self.score = 0.0
        """
        0 .. 1
        LCM Type: double
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        __class_id_encoded = self.class_id.encode('utf-8')
        buf.write(struct.pack('>I', len(__class_id_encoded)+1))
        buf.write(__class_id_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">d", self.score))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != ObjectHypothesis._get_packed_fingerprint():
            raise ValueError("Decode error")
        return ObjectHypothesis._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = ObjectHypothesis.__new__(ObjectHypothesis)
        __class_id_len = struct.unpack('>I', buf.read(4))[0]
        self.class_id = buf.read(__class_id_len)[:-1].decode('utf-8')
        self.score = struct.unpack(">d", buf.read(8))[0]
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if ObjectHypothesis in parents: return 0
        tmphash = (0x38c9acd543138b22) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if ObjectHypothesis._packed_fingerprint is None:
            ObjectHypothesis._packed_fingerprint = struct.pack(">Q", ObjectHypothesis._get_hash_recursive([]))
        return ObjectHypothesis._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", ObjectHypothesis._get_packed_fingerprint())[0]
