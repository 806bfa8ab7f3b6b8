"""Generated from lcm_types/dimos_streams/SkillCall.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class SkillCall(Message):
    """ Asks a module to run a skill. """

    msg_name = "dimos_streams.SkillCall"

    __slots__ = ["utime", "call_id", "module", "skill", "caller", "parent", "arguments_json", "on_loss"]

    __typenames__ = ["int64_t", "string", "string", "string", "string", "string", "string", "string"]

    __dimensions__ = [None, None, None, None, None, None, None, None]

    def __init__(self, **fields):
        self.utime = 0
        """
        When it was sent, µs since the Unix epoch.
        LCM Type: int64_t
        """

        self.call_id = ""
        """
        Chosen by the sender, unique.
        LCM Type: string
        """

        self.module = ""
        """
        The module that is to run it.
        LCM Type: string
        """

        self.skill = ""
        """ LCM Type: string """
        self.caller = ""
        """
        Who calls: an agent, an operator, a script.
        LCM Type: string
        """

        self.parent = ""
        """
        The call_id on whose behalf, or empty.
        LCM Type: string
        """

        self.arguments_json = ""
        """
        A JSON object.
        LCM Type: string
        """

        self.on_loss = ""
        """
        What becomes of it if nobody acknowledges it any more: "stop" or "continue". Empty: whoever calls does not say
        that somebody will.
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
        __parent_encoded = self.parent.encode('utf-8')
        buf.write(struct.pack('>I', len(__parent_encoded)+1))
        buf.write(__parent_encoded)
        buf.write(b"\0")
        __arguments_json_encoded = self.arguments_json.encode('utf-8')
        buf.write(struct.pack('>I', len(__arguments_json_encoded)+1))
        buf.write(__arguments_json_encoded)
        buf.write(b"\0")
        __on_loss_encoded = self.on_loss.encode('utf-8')
        buf.write(struct.pack('>I', len(__on_loss_encoded)+1))
        buf.write(__on_loss_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != SkillCall._get_packed_fingerprint():
            raise ValueError("Decode error")
        return SkillCall._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = SkillCall.__new__(SkillCall)
        self.utime = struct.unpack(">q", buf.read(8))[0]
        __call_id_len = struct.unpack('>I', buf.read(4))[0]
        self.call_id = buf.read(__call_id_len)[:-1].decode('utf-8')
        __module_len = struct.unpack('>I', buf.read(4))[0]
        self.module = buf.read(__module_len)[:-1].decode('utf-8')
        __skill_len = struct.unpack('>I', buf.read(4))[0]
        self.skill = buf.read(__skill_len)[:-1].decode('utf-8')
        __caller_len = struct.unpack('>I', buf.read(4))[0]
        self.caller = buf.read(__caller_len)[:-1].decode('utf-8')
        __parent_len = struct.unpack('>I', buf.read(4))[0]
        self.parent = buf.read(__parent_len)[:-1].decode('utf-8')
        __arguments_json_len = struct.unpack('>I', buf.read(4))[0]
        self.arguments_json = buf.read(__arguments_json_len)[:-1].decode('utf-8')
        __on_loss_len = struct.unpack('>I', buf.read(4))[0]
        self.on_loss = buf.read(__on_loss_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if SkillCall in parents: return 0
        tmphash = (0xda36bf9b2dc340e3) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if SkillCall._packed_fingerprint is None:
            SkillCall._packed_fingerprint = struct.pack(">Q", SkillCall._get_hash_recursive([]))
        return SkillCall._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", SkillCall._get_packed_fingerprint())[0]
