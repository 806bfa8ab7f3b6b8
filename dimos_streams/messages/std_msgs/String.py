"""Generated from lcm_types/std_msgs/String.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class String(Message):
    """ Text, UTF-8. """

    msg_name = "std_msgs.String"

    __slots__ = ["data"]

    __typenames__ = ["string"]

    __dimensions__ = [None]

    def __init__(self, **fields):
        self.data = ""
        """ LCM Type: string """

        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        __data_encoded = self.data.encode('utf-8')
        buf.write(struct.pack('>I', len(__data_encoded)+1))
        buf.write(__data_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != String._get_packed_fingerprint():
            raise ValueError("Decode error")
        return String._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = String.__new__(String)
        __data_len = struct.unpack('>I', buf.read(4))[0]
        self.data = buf.read(__data_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if String in parents: return 0
        tmphash = (0x90df9b84cdceaf0a) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if String._packed_fingerprint is None:
            String._packed_fingerprint = struct.pack(">Q", String._get_hash_recursive([]))
        return String._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", String._get_packed_fingerprint())[0]
