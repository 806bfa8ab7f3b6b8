"""Generated from lcm_types/sensor_msgs/Joy.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

import dimos_streams.messages.std_msgs.Header

class Joy(Message):
    """ How a joystick is held. """

    msg_name = "sensor_msgs.Joy"

    __slots__ = ["axes_length", "buttons_length", "header", "axes", "buttons"]

    __typenames__ = ["int32_t", "int32_t", "dimos_streams.messages.std_msgs.Header", "float", "int32_t"]

    __dimensions__ = [None, None, None, ["axes_length"], ["buttons_length"]]

    def __init__(self, **fields):
        self.axes_length = 0
        """
        Entries in axes.
        LCM Type: int32_t
        """

        self.buttons_length = 0
        """
        Entries in buttons.
        LCM Type: int32_t
        """

        self.header = fields.pop("header") if "header" in fields else dimos_streams.messages.std_msgs.Header()
        """ LCM Type: dimos_streams.messages.std_msgs.Header """
        self.axes = []
        """
        -1 .. 1
        LCM Type: float[axes_length]
        """

        self.buttons = []
        """
        1 while pressed, else 0.
        LCM Type: int32_t[buttons_length]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">ii", self.axes_length, self.buttons_length))
        assert self.header._get_packed_fingerprint() == dimos_streams.messages.std_msgs.Header._get_packed_fingerprint()
        self.header._encode_one(buf)
        buf.write(struct.pack('>%df' % self.axes_length, *self.axes[:self.axes_length]))
        buf.write(struct.pack('>%di' % self.buttons_length, *self.buttons[:self.buttons_length]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != Joy._get_packed_fingerprint():
            raise ValueError("Decode error")
        return Joy._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = Joy.__new__(Joy)
        self.axes_length, self.buttons_length = struct.unpack(">ii", buf.read(8))
        self.header = dimos_streams.messages.std_msgs.Header._decode_one(buf)
        self.axes = struct.unpack('>%df' % self.axes_length, buf.read(self.axes_length * 4))
        self.buttons = struct.unpack('>%di' % self.buttons_length, buf.read(self.buttons_length * 4))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if Joy in parents: return 0
        newparents = parents + [Joy]
        tmphash = (0x209d2c19077a692f+ dimos_streams.messages.std_msgs.Header._get_hash_recursive(newparents)) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if Joy._packed_fingerprint is None:
            Joy._packed_fingerprint = struct.pack(">Q", Joy._get_hash_recursive([]))
        return Joy._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", Joy._get_packed_fingerprint())[0]
