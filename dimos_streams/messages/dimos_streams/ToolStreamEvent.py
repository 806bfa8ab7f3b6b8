"""Generated from lcm_types/dimos_streams/ToolStreamEvent.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class ToolStreamEvent(Message):
    """ One event of a call's tool stream. """

    msg_name = "dimos_streams.ToolStreamEvent"

    __slots__ = ["utime", "call_id", "seq", "type", "module", "skill", "caller", "text", "data_json"]

    __typenames__ = ["int64_t", "string", "int32_t", "string", "string", "string", "string", "string", "string"]

    __dimensions__ = [None, None, None, None, None, None, None, None, None]

    def __init__(self, **fields):
        self.utime = 0
        """
        When it happened, µs since the Unix epoch.
        LCM Type: int64_t
        """

        self.call_id = ""
        """ LCM Type: string """
        self.seq = 0
        """
        1, 2, 3, ... within the call.
        LCM Type: int32_t
        """

        self.type = ""
        """
        "open", "update", "progress" or "close".
        LCM Type: string
        """

        self.module = ""
        """
        The module that runs the skill.
        LCM Type: string
        """

        self.skill = ""
        """ LCM Type: string """
        self.caller = ""
        """
        Who called: an agent, an operator, a script.
        LCM Type: string
        """

        self.text = ""
        """
        For people and models.
        LCM Type: string
        """

        self.data_json = ""
        """
        A JSON object; in a close it has the outcome and the result.
        LCM Type: string
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">q", self.utime))
        __call_id_encoded = self.call_id.encode('utf-8')
        buf.write(struct.pack('>I', len(__call_id_encoded)+1))
        buf.write(__call_id_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">i", self.seq))
        __type_encoded = self.type.encode('utf-8')
        buf.write(struct.pack('>I', len(__type_encoded)+1))
        buf.write(__type_encoded)
        buf.write(b"\0")
        __module_encoded = self.module.encode('utf-8')
        buf.write(struct.pack('>I', len(__module_encoded)+1))
        buf.write(__module_encoded)
        buf.write(b"\0")
        __skill_encoded = self.skill.encode('utf-8')
        buf.write(struct.pack('>I', len(__skill_encoded)+1))
        buf.write(__skill_encoded)
        buf.write(b"\0")
        __caller_encoded = self.caller.encode('utf-8')
        buf.write(struct.pack('>I', len(__caller_encoded)+1))
        buf.write(__caller_encoded)
        buf.write(b"\0")
        __text_encoded = self.text.encode('utf-8')
        buf.write(struct.pack('>I', len(__text_encoded)+1))
        buf.write(__text_encoded)
        buf.write(b"\0")
        __data_json_encoded = self.data_json.encode('utf-8')
        buf.write(struct.pack('>I', len(__data_json_encoded)+1))
        buf.write(__data_json_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != ToolStreamEvent._get_packed_fingerprint():
            raise ValueError("Decode error")
        return ToolStreamEvent._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = ToolStreamEvent.__new__(ToolStreamEvent)
        self.utime = struct.unpack(">q", buf.read(8))[0]
        __call_id_len = struct.unpack('>I', buf.read(4))[0]
        self.call_id = buf.read(__call_id_len)[:-1].decode('utf-8')
        self.seq = struct.unpack(">i", buf.read(4))[0]
        __type_len = struct.unpack('>I', buf.read(4))[0]
        self.type = buf.read(__type_len)[:-1].decode('utf-8')
        __module_len = struct.unpack('>I', buf.read(4))[0]
        self.module = buf.read(__module_len)[:-1].decode('utf-8')
        __skill_len = struct.unpack('>I', buf.read(4))[0]
        self.skill = buf.read(__skill_len)[:-1].decode('utf-8')
        __caller_len = struct.unpack('>I', buf.read(4))[0]
        self.caller = buf.read(__caller_len)[:-1].decode('utf-8')
        __text_len = struct.unpack('>I', buf.read(4))[0]
        self.text = buf.read(__text_len)[:-1].decode('utf-8')
        __data_json_len = struct.unpack('>I', buf.read(4))[0]
        self.data_json = buf.read(__data_json_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if ToolStreamEvent in parents: return 0
        tmphash = (0x2770bf3ff6367b93) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if ToolStreamEvent._packed_fingerprint is None:
            ToolStreamEvent._packed_fingerprint = struct.pack(">Q", ToolStreamEvent._get_hash_recursive([]))
        return ToolStreamEvent._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", ToolStreamEvent._get_packed_fingerprint())[0]
