"""Has a process that forks do its work: ``fork_client.py ADDRESS NAME ARGUMENTS``.

It imports as little as it can: with what the fork has imported, it would be as slow as one.
"""

from __future__ import annotations

import array
import os
import signal
import socket
import sys
from json import dumps

_NUMBER = 4

wanted = {"arguments": sys.argv[3:], "environment": dict(os.environ), "name": sys.argv[2], "folder": os.getcwd()}
request = dumps(wanted).encode()
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
descriptors = array.array("i", [0, 1, 2])
connection.sendmsg([request[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
connection.sendall(request[1:])
connection.shutdown(socket.SHUT_WR)


def number() -> int:
    """One that the other side has sent."""
    return int.from_bytes(connection.recv(_NUMBER, socket.MSG_WAITALL), "big", signed=True)


process = number()
for passed in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(passed, lambda which, _frame: os.kill(process, which))
code = os.waitstatus_to_exitcode(number())
sys.exit(code if code >= 0 else 128 - code)
