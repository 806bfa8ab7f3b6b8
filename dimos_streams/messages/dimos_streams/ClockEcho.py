"""Generated from lcm_types/dimos_streams/ClockEcho.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from io import BytesIO
import struct

from dimos_streams.messages.base import Message

class ClockEcho(Message):
    """
    The clock of one machine of a run, and what it has heard of the others' clocks. Sent at least once in 2 s; from two that
    have crossed follows how far one clock is ahead of the other, as with NTP's four stamps.
    """

    msg_name = "dimos_streams.ClockEcho"

    __slots__ = ["utime", "machine", "n_heard", "machines", "sent", "received"]

    __typenames__ = ["int64_t", "string", "int32_t", "string", "int64_t", "int64_t"]

    __dimensions__ = [None, None, None, ["n_heard"], ["n_heard"], ["n_heard"]]

    def __init__(self, **fields):
        self.utime = 0
        """
        When it was sent, µs since the Unix epoch, by the clock of its machine.
        LCM Type: int64_t
        """

        self.machine = ""
        """
        The machine's name in the blueprint.
        LCM Type: string
        """

        self.n_heard = 0
        """
        Entries in the lists below, one for each other machine that was heard lately.
        LCM Type: int32_t
        """

        self.machines = []
        """ LCM Type: string[n_heard] """
        self.sent = []
        """
        The utime of the newest echo of each of them.
        LCM Type: int64_t[n_heard]
        """

        self.received = []
        """
        When that came, µs since the Unix epoch, by the clock of this machine.
        LCM Type: int64_t[n_heard]
        """


        if fields:
            self._assign(fields)

    def _encode_one(self, buf):
        buf.write(struct.pack(">q", self.utime))
        __machine_encoded = self.machine.encode('utf-8')
        buf.write(struct.pack('>I', len(__machine_encoded)+1))
        buf.write(__machine_encoded)
        buf.write(b"\0")
        buf.write(struct.pack(">i", self.n_heard))
        for i0 in range(self.n_heard):
            __machines_encoded = self.machines[i0].encode('utf-8')
            buf.write(struct.pack('>I', len(__machines_encoded)+1))
            buf.write(__machines_encoded)
            buf.write(b"\0")
        buf.write(struct.pack('>%dq' % self.n_heard, *self.sent[:self.n_heard]))
        buf.write(struct.pack('>%dq' % self.n_heard, *self.received[:self.n_heard]))

    @staticmethod
    def decode(data: bytes):
        if hasattr(data, 'read'):
            buf = data
        else:
            buf = BytesIO(data)
        if buf.read(8) != ClockEcho._get_packed_fingerprint():
            raise ValueError("Decode error")
        return ClockEcho._decode_one(buf)

    @staticmethod
    def _decode_one(buf):
        self = ClockEcho.__new__(ClockEcho)
        self.utime = struct.unpack(">q", buf.read(8))[0]
        __machine_len = struct.unpack('>I', buf.read(4))[0]
        self.machine = buf.read(__machine_len)[:-1].decode('utf-8')
        self.n_heard = struct.unpack(">i", buf.read(4))[0]
        self.machines = []
        for i0 in range(self.n_heard):
            __machines_len = struct.unpack('>I', buf.read(4))[0]
            self.machines.append(buf.read(__machines_len)[:-1].decode('utf-8'))
        self.sent = struct.unpack('>%dq' % self.n_heard, buf.read(self.n_heard * 8))
        self.received = struct.unpack('>%dq' % self.n_heard, buf.read(self.n_heard * 8))
        return self

    @staticmethod
    def _get_hash_recursive(parents):
        if ClockEcho in parents: return 0
        tmphash = (0xaa55155480c22ba7) & 0xffffffffffffffff
        tmphash  = (((tmphash<<1)&0xffffffffffffffff) + (tmphash>>63)) & 0xffffffffffffffff
        return tmphash
    _packed_fingerprint = None

    @staticmethod
    def _get_packed_fingerprint():
        if ClockEcho._packed_fingerprint is None:
            ClockEcho._packed_fingerprint = struct.pack(">Q", ClockEcho._get_hash_recursive([]))
        return ClockEcho._packed_fingerprint

    def get_hash(self):
        """Get the LCM hash of the struct"""
        return struct.unpack(">Q", ClockEcho._get_packed_fingerprint())[0]
