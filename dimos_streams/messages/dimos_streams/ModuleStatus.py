"""Generated from lcm_types/dimos_streams/ModuleStatus.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class ModuleStatus(Message):
    """ Heartbeat of a module. The lists have one entry per live call. """

    msg_name = "dimos_streams.ModuleStatus"

    __slots__ = ["utime", "module", "instance", "pid", "host", "started_utime", "health", "skills_version", "skills_json", "n_calls", "call_ids", "last_seqs", "state_json"]

    __typenames__ = ["int64_t", "string", "string", "int32_t", "string", "int64_t", "string", "string", "string", "int32_t", "string", "int32_t", "string"]

    __dimensions__ = [None, None, None, None, None, None, None, None, None, None, ["n_calls"], ["n_calls"], None]

    def __init__(self, **fields):
        self.utime = 0
        """
        When it was sent, µs since the Unix epoch.
        LCM Type: int64_t
        """

        self.module = ""
        """ LCM Type: string """
        self.instance = ""
        """
        Differs after each start of the module.
        LCM Type: string
        """

        self.pid = 0
        """
        Process id.
        LCM Type: int32_t
        """

        self.host = ""
        """
        The machine on which the process runs.
        LCM Type: string
        """

        self.started_utime = 0
        """
        When the module was started, µs since the Unix epoch.
        LCM Type: int64_t
        """

        self.health = ""
        """
        "ok", or what is wrong.
        LCM Type: string
        """

        self.skills_version = ""
        """
        Changes when skills_json does.
        LCM Type: string
        """

        self.skills_json = ""
        """
        The skills' schemas, JSON; empty where only the version is sent.
        LCM Type: string
        """

        self.n_calls = 0
        """
        Entries in call_ids and last_seqs.
        LCM Type: int32_t
        """

        self.call_ids = []
        """ LCM Type: string[n_calls] """
        self.last_seqs = []
        """
        The number of each call's newest event.
        LCM Type: int32_t[n_calls]
        """

        self.state_json = ""
        """
        What the module says of its own state, a small JSON object by topics; empty for nothing.
        LCM Type: string
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">q", self.utime))
        __module_encoded = self.module.encode('utf-8')
        buf.write(struct.pack('>I', len(__module_encoded)+1))
        buf.write(__module_encoded)
        buf.write(b"\0")
        __instance_encoded = self.instance.encode('utf-8')
        buf.write(struct.pack('>I', len(__instance_encoded)+1))
        buf.write(__instance_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">i", self.pid))
        __host_encoded = self.host.encode('utf-8')
        buf.write(struct.pack('>I', len(__host_encoded)+1))
        buf.write(__host_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">q", self.started_utime))
        __health_encoded = self.health.encode('utf-8')
        buf.write(struct.pack('>I', len(__health_encoded)+1))
        buf.write(__health_encoded)
        buf.write(b"\0")
        __skills_version_encoded = self.skills_version.encode('utf-8')
        buf.write(struct.pack('>I', len(__skills_version_encoded)+1))
        buf.write(__skills_version_encoded)
        buf.write(b"\0")
        __skills_json_encoded = self.skills_json.encode('utf-8')
        buf.write(struct.pack('>I', len(__skills_json_encoded)+1))
        buf.write(__skills_json_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">i", self.n_calls))
        for i0 in range(self.n_calls):
            __call_ids_encoded = self.call_ids[i0].encode('utf-8')
            buf.write(struct.pack('>I', len(__call_ids_encoded)+1))
            buf.write(__call_ids_encoded)
            buf.write(b"\0")
        buf.write(struct.pack('>%di' % self.n_calls, *self.last_seqs[:self.n_calls]))
        __state_json_encoded = self.state_json.encode('utf-8')
        buf.write(struct.pack('>I', len(__state_json_encoded)+1))
        buf.write(__state_json_encoded)
        buf.write(b"\0")

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != ModuleStatus._get_packed_fingerprint():
            raise ValueError("Decode error")
        return ModuleStatus._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = ModuleStatus.__new__(ModuleStatus)
        self.utime = struct.unpack(">q", buf.read(8))[0]
        __module_len = struct.unpack('>I', buf.read(4))[0]
        self.module = buf.read(__module_len)[:-1].decode('utf-8')
        __instance_len = struct.unpack('>I', buf.read(4))[0]
        self.instance = buf.read(__instance_len)[:-1].decode('utf-8')
        self.pid = struct.unpack(">i", buf.read(4))[0]
        __host_len = struct.unpack('>I', buf.read(4))[0]
        self.host = buf.read(__host_len)[:-1].decode('utf-8')
        self.started_utime = struct.unpack(">q", buf.read(8))[0]
        __health_len = struct.unpack('>I', buf.read(4))[0]
        self.health = buf.read(__health_len)[:-1].decode('utf-8')
        __skills_version_len = struct.unpack('>I', buf.read(4))[0]
        self.skills_version = buf.read(__skills_version_len)[:-1].decode('utf-8')
        __skills_json_len = struct.unpack('>I', buf.read(4))[0]
        self.skills_json = buf.read(__skills_json_len)[:-1].decode('utf-8')
        self.n_calls = struct.unpack(">i", buf.read(4))[0]
        self.call_ids = []
        for i0 in range(self.n_calls):
            __call_ids_len = struct.unpack('>I', buf.read(4))[0]
            self.call_ids.append(buf.read(__call_ids_len)[:-1].decode('utf-8'))
        self.last_seqs = struct.unpack('>%di' % self.n_calls, buf.read(self.n_calls * 4))
        __state_json_len = struct.unpack('>I', buf.read(4))[0]
        self.state_json = buf.read(__state_json_len)[:-1].decode('utf-8')
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if ModuleStatus in parents: return 0
        tmphash = (0x128b731f55ed6043) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if ModuleStatus._packed_fingerprint is None:
            ModuleStatus._packed_fingerprint = struct.pack(">Q", ModuleStatus._get_hash_recursive([]))
        return ModuleStatus._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", ModuleStatus._get_packed_fingerprint())[0]
