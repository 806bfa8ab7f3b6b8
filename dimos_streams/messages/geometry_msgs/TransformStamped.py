"""Generated from lcm_types/geometry_msgs/TransformStamped.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.geometry_msgs.Transform

import dimos_streams.messages.std_msgs.Header

class TransformStamped(Message):
    """ Where child_frame_id stands in header.frame_id, and when. """

    msg_name = "geometry_msgs.TransformStamped"

    __slots__ = ["header", "child_frame_id", "transform"]

    __typenames__ = ["dimos_streams.messages.std_msgs.Header", "string", "dimos_streams.messages.geometry_msgs.Transform"]

    __dimensions__ = [None, None, None]

    def __init__(self, **fields):
        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """
        frame_id is the parent.
        LCM Type: dimos_streams.messages.std_msgs.Header
        """

        self.child_frame_id = ""
        """ LCM Type: string """
        self.transform = fields.pop("transform") if "transform" in fields else dimos_streams.messages.geometry_msgs.Transform()
        """ LCM Type: dimos_streams.messages.geometry_msgs.Transform """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        __child_frame_id_encoded = self.child_frame_id.encode('utf-8')
        buf.write(struct.pack('>I', len(__child_frame_id_encoded)+1))
        buf.write(__child_frame_id_encoded)
        buf.write(b"\0")
        assert self.transform._get_packed_fingerprint() == dimos_streams.messages.geometry_msgs.Transform._get_packed_fingerprint()
        self.transform._encode_one(buf)

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != TransformStamped._get_packed_fingerprint():
            raise ValueError("Decode error")
        return TransformStamped._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = TransformStamped.__new__(TransformStamped)
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        __child_frame_id_len = struct.unpack('>I', buf.read(4))[0]
        self.child_frame_id = buf.read(__child_frame_id_len)[:-1].decode('utf-8')
        self.transform = dimos_streams.messages.geometry_msgs.Transform._decode_one(buf)
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if TransformStamped in parents: return 0
        newparents = parents + [TransformStamped]
        tmphash = (0xf694f4a6d8779002+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)+ dimos_streams.messages.geometry_msgs.Transform._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if TransformStamped._packed_fingerprint is None:
            TransformStamped._packed_fingerprint = struct.pack(">Q", TransformStamped._get_hash_recursive([]))
        return TransformStamped._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", TransformStamped._get_packed_fingerprint())[0]
