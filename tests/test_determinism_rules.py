"""Nothing in the package reads the wall clock, unseeded randomness, an order that differs between processes, or the
machine's locale.

Virtual time rests on it: a run is a function of blueprint, seed and inputs only if its code asks
`dimos_streams.clock` for the time and a seeded generator for chance. What may do otherwise is listed with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
ROOTS = ("dimos_streams", "skills")

FORBIDDEN_MODULES = {"time", "secrets", "uuid"}
"""Whatever of them is used counts."""
FORBIDDEN_CALLS = {
    "asyncio.new_event_loop",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "os.getpid",
    "os.getrandom",
    "os.urandom",
    "random.SystemRandom",
    "threading.Thread",
    "threading.Timer",
    "concurrent.futures.ThreadPoolExecutor",
    "concurrent.futures.ProcessPoolExecutor",
}
FORBIDDEN_BUILTINS = {"hash": "differs by PYTHONHASHSEED", "id": "is an address"}
SEEDED = {"random.Random", "numpy.random.default_rng", "numpy.random.SeedSequence", "numpy.random.PCG64"}
"""Fine with an argument."""
FOR_TYPES = {"numpy.random.Generator"}
ENCODING_AT = {"read_text": 0, "write_text": 1}
"""Functions of files whose texts are in the encoding of the locale, and where that of another one would stand."""
OPENERS = {"os.fdopen", "tempfile.NamedTemporaryFile", "tempfile.TemporaryFile"}
SETS = {"set", "frozenset"}
SET_OPERATORS = (ast.Sub, ast.BitOr, ast.BitAnd, ast.BitXor)
"""What makes a set of the keys of a table."""
UNORDERED = {"sum", "any", "all", "len", "set", "frozenset"}
"""What gives the same of a set in whatever order."""
ORDERED = {"list", "tuple", "enumerate", "iter", "next", "dict.fromkeys", "map", "filter", "zip"}
"""What keeps the order of what it gets."""

ALLOWED: dict[tuple[str, str], str] = {
    (
        "dimos_streams/bus/lcm/early_datagrams.py",
        "time.sleep",
    ): "waits for a thread of LCM's library when a bus opens; in virtual time there is none",
    (
        "dimos_streams/journal/tables.py",
        "secrets.token_hex",
    ): "the name of a journal must be another one in each run; nothing in a run reads it",
    ("dimos_streams/clock.py", "time.monotonic"): "it is the clock: outside of virtual time the system's",
    ("dimos_streams/clock.py", "time.clock_gettime"): "it is the clock: outside of virtual time the system's",
    ("dimos_streams/clock.py", "time.CLOCK_BOOTTIME"): "it is the clock: outside of virtual time the system's",
    ("dimos_streams/clock.py", "time.time_ns"): "it is the clock: wall time where the loop is not virtual",
    (
        "dimos_streams/common/process/threads.py",
        "threading.Thread",
    ): "what must not wait for others' threads; in virtual time it is done inline",
    ("dimos_streams/common/process/given_up.py", "threading.Thread"): "lists threads of live processes, begins none",
    (
        "dimos_streams/runtime/processes/slow_start.py",
        "threading.Timer",
    ): "says where a module of a live process is that has not started; virtual time has no workers",
    (
        "dimos_streams/client/http_session.py",
        "threading.Timer",
    ): "bounds requests to real servers, which are late by the wall clock",
    ("dimos_streams/common/waiting.py", "threading.Thread"): "says where threads of live processes are, begins none",
    (
        "dimos_streams/cli/running/session.py",
        "time.perf_counter",
    ): "the summary says how fast virtual time went on the wall",
    ("dimos_streams/cli/running/session.py", "os.getpid"): "finds this command among the processes that it ends",
    (
        "dimos_streams/cli/running/run_entry.py",
        "os.getpid",
    ): "the registry of live runs; a virtual run is not registered",
    (
        "dimos_streams/cli/system/bus_echo.py",
        "os.getpid",
    ): "`doctor` tries the real bus on a channel of its own",
    (
        "dimos_streams/client/backoff.py",
        "os.getpid",
    ): "the jitter of a command's or script's reconnecting to a live bridge; modules give their own random",
    ("dimos_streams/cli/consoles/chat_console.py", "threading.Thread"): "reads the terminal, which has no other way",
    (
        "dimos_streams/client/http_gateway.py",
        "secrets.token_hex",
    ): "a command's call must not be taken for one of another process; in virtual time there is no HTTP",
    (
        "dimos_streams/client/sse_client.py",
        "threading.Thread",
    ): "reads a real socket; in virtual time there is no HTTP",
    (
        "dimos_streams/bridge/fleet/connection.py",
        "secrets.token_urlsafe",
    ): "nobody may guess the name of a stream of commands; in virtual time there is no HTTP",
    (
        "dimos_streams/foxglove/server.py",
        "secrets.randbelow",
    ): "nobody may guess where the SDK listens; in virtual time nothing is served",
    (
        "dimos_streams/hub/asking.py",
        "secrets.token_urlsafe",
    ): "a hub is no part of a run: its commands need keys that nobody else has",
    ("dimos_streams/hub/process.py", "os.getpid"): "a hub is no part of a run: names its process",
    ("dimos_streams/hub/process.py", "secrets.token_hex"): "a hub is no part of a run: names its process",
    (
        "dimos_streams/hub/storage/engines/postgres.py",
        "threading.Thread",
    ): "a hub is no run: waits for notices",
    ("dimos_streams/hub/storage/robots.py", "secrets.token_urlsafe"): "a robot's token is a secret",
    (
        "dimos_streams/hub/storage/sequence.py",
        "secrets.token_urlsafe",
    ): "a hub is no part of a run: names its history",
    (
        "dimos_streams/hub/storage/storage.py",
        "secrets.randbelow",
    ): "a hub is no part of a run: a database that is put back must not number commands as it did before",
    (
        "dimos_streams/dimos_skills/server.py",
        "concurrent.futures.ThreadPoolExecutor",
    ): "requests to a real server; its module refuses virtual time",
    (
        "dimos_streams/bridge/mcp/sessions.py",
        "secrets.token_hex",
    ): "nobody may guess a client's session; HTTP only",
    ("dimos_streams/serving/problems.py", "secrets.token_hex"): "the id of an internal error, over HTTP only",
    (
        "dimos_streams/ros2/actions/goal.py",
        "uuid.uuid4",
    ): "servers remember the ids of goals from run to run; DDS only",
    ("dimos_streams/ros2/participant.py", "threading.Thread"): "waits for DDS; virtual time has a wire without any",
    ("dimos_streams/runtime/in_process.py", "os.getpid"): "shows an operator which process runs; not on the bus",
    (
        "dimos_streams/bus/zenoh/reader.py",
        "threading.Thread",
    ): "takes samples off a real network; not in virtual time",
    ("dimos_streams/bus/zenoh/session.py", "threading.Thread"): "opens and closes real sessions, which block",
    ("dimos_streams/bus/zenoh/session.py", "os.getpid"): "sessions of a real network do not survive a fork",
    ("dimos_streams/runtime/liveness.py", "threading.Thread"): "watches a live worker's loop from outside",
    ("dimos_streams/runtime/processes/fork_server.py", "os.getpid"): "sees whether the run it serves was killed",
    ("dimos_streams/runtime/run_directories.py", "os.getpid"): "names the directory of a live run",
    (
        "dimos_streams/runtime/processes/orphaned.py",
        "threading.Thread",
    ): "ends a worker process whose parent has died",
    ("dimos_streams/tool_stream/hosting/heart.py", "os.getpid"): "heartbeats of live runs; in virtual time it is 0",
    (
        "dimos_streams/tool_stream/hosting/heart.py",
        "secrets.token_hex",
    ): "nobody may guess a live instance; in virtual time it is left out",
    ("dimos_streams/agent/context/memo.py", "id"): "finds an object again that it holds; never put in an order",
    ("dimos_streams/perception/tracking.py", "id"): "distinguishes tracks within one function; never put in an order",
    (
        "dimos_streams/tool_stream/liveness/heartbeat_intake.py",
        "hash",
    ): "distinguishes texts of one process; never put in an order",
    (
        "dimos_streams/tool_stream/liveness/module_table.py",
        "hash",
    ): "distinguishes texts of one process; never put in an order",
    (
        "dimos_streams/common/process/live_loop.py",
        "asyncio.new_event_loop",
    ): "live processes; virtual time has its own",
    ("dimos_streams/testing/model_server.py", "asyncio.new_event_loop"): "a real HTTP server for tests",
    ("dimos_streams/testing/model_server.py", "set of tasks"): "a real HTTP server for tests",
    ("dimos_streams/testing/model_server.py", "threading.Thread"): "a real HTTP server for tests",
    (
        "dimos_streams/client/bridge_requests.py",
        "order of a set",
    ): "closes connections to a real bridge; in virtual time there is no HTTP",
    ("dimos_streams/common/secrets/redaction.py", "order of a set"): "the places that are found are sorted",
    (
        "dimos_streams/dimos_skills/server.py",
        "order of a set",
    ): "closes connections to a real server; its module refuses virtual time",
    ("dimos_streams/testing/faults/fault_bus.py", "order of a set"): "cancels all its timers in one instant",
}


def sources() -> list[Path]:
    return [path for root in ROOTS for path in sorted((REPOSITORY / root).rglob("*.py")) if not path.is_symlink()]


class _Reader(ast.NodeVisitor):
    """Collects what one file does against the rules."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self._names: dict[str, str] = {"np": "numpy"}
        self._sets: set[str] = set()
        """The attributes that are declared as sets."""

    def visit_Module(self, node: ast.Module) -> None:
        for each in ast.walk(node):
            match each:
                case ast.AnnAssign(target=ast.Attribute() as name, annotation=annotation):
                    if ast.unparse(annotation).partition("[")[0] in SETS:
                        self._sets.add(ast.unparse(name))
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self._names[alias.asname or first] = alias.name if alias.asname else first

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            if node.module in FORBIDDEN_MODULES:
                self._report(node, f"{node.module}.{alias.name}")

    def visit_Call(self, node: ast.Call) -> None:
        name = self._dotted(node.func)
        if name in SEEDED:
            if not (node.args or node.keywords):
                self._report(node, f"{name} without a seed")
            self._visit_arguments(node)
            return
        if name in FORBIDDEN_BUILTINS:
            self._report(node, name)
        if _goes_by_locale(name, node):
            self._report(node, "encoding of the locale")
        if name in ORDERED or name.endswith(".join"):
            for argument in node.args:
                self._check_order(argument)
        if name in UNORDERED:
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                self._visit_unordered(argument)
            return
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._dotted(node)
        module, _, rest = name.partition(".")
        if (
            module in FORBIDDEN_MODULES
            or name in FORBIDDEN_CALLS
            or (name.startswith("numpy.random.") and name not in SEEDED | FOR_TYPES)
            or (module == "random" and rest and name != "random.Random" and self._names.get("random") == "random")
        ):
            self._report(node, name)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            if self._dotted(base) == "threading.Thread":
                self._report(base, "threading.Thread")
        for child in (*node.decorator_list, *node.body):
            self.visit(child)

    def visit_For(self, node: ast.For) -> None:
        self._check_order(node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._check_order(node.iter)
        self.generic_visit(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._visit_unordered(node)

    def _visit_unordered(self, node: ast.expr) -> None:
        """Visit what is taken in whatever order it comes; what it is made of is in order or not all the same."""
        if isinstance(node, ast.GeneratorExp | ast.SetComp):
            first, *further = node.generators
            for part in (node.elt, first.target, first.iter, *first.ifs, *further):
                self.visit(part)
        elif isinstance(node, ast.Call) and self._dotted(node.func) in ("map", "filter"):
            for part in node.args:
                self.visit(part)
        else:
            self.visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        held = ast.unparse(node.slice)
        if self._dotted(node.value) in SETS and ("Task" in held or "Future" in held):
            self._report(node, "set of tasks")
        self.generic_visit(node)

    def _visit_arguments(self, node: ast.Call) -> None:
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.visit(argument)

    def _check_order(self, node: ast.expr) -> None:
        if self._is_set(node):
            self._report(node, "order of a set")

    def _is_set(self, node: ast.expr) -> bool:
        """Return whether an expression shows that it is a set."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, SET_OPERATORS):
            return any(self._is_set(part) or _is_keys(part) for part in (node.left, node.right))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in self._sets:
            return True
        made = isinstance(node, ast.Call) and self._dotted(node.func) in SETS
        return made or isinstance(node, ast.Set | ast.SetComp)

    def _dotted(self, node: ast.AST) -> str:
        """The name that an expression is, its first part as it was imported; empty for other expressions."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self._dotted(node.value)
            return f"{before}.{node.attr}" if before else f"?.{node.attr}"
        return ""

    def _report(self, node: ast.AST, what: str) -> None:
        self.found.append((getattr(node, "lineno", 0), what))


def _goes_by_locale(name: str, call: ast.Call) -> bool:
    """Return whether a call shows that it reads or writes text in the encoding of the machine's locale."""
    kind = name.rpartition(".")[2]
    given = {keyword.arg for keyword in call.keywords}
    if "encoding" in given:
        return False
    if kind in ENCODING_AT:
        return len(call.args) <= ENCODING_AT[kind]
    if name in OPENERS or kind == "open":
        values = (*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode"))
        texts = [value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]
        return any(set(text) <= set("rwaxt+") for text in texts if text)
    return "text" in given and name.startswith("subprocess.")


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def breaches(source: str) -> Iterator[tuple[int, str]]:
    reader = _Reader()
    reader.visit(ast.parse(source))
    yield from dict.fromkeys(reader.found)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import time\ntime.time()", "time.time"),
        ("import time as t\nt.monotonic()", "time.monotonic"),
        ("from time import sleep", "time.sleep"),
        ("import datetime\ndatetime.datetime.now()", "datetime.datetime.now"),
        ("from datetime import datetime\ndatetime.utcnow()", "datetime.datetime.utcnow"),
        ("import random\nrandom.random()", "random.random"),
        ("import random\nrandom.Random()", "random.Random without a seed"),
        ("import numpy as np\nnp.random.rand()", "numpy.random.rand"),
        ("import numpy as np\nnp.random.default_rng()", "numpy.random.default_rng without a seed"),
        ("import os\nos.urandom(8)", "os.urandom"),
        ("import uuid\nuuid.uuid4()", "uuid.uuid4"),
        ("import threading\nclass A(threading.Thread): pass", "threading.Thread"),
        ("hash('a')", "hash"),
        ("for name in set(names): pass", "order of a set"),
        ("list({a, b})", "order of a set"),
        ("', '.join({a for a in b})", "order of a set"),
        ("for name in known.keys() - wanted: pass", "order of a set"),
        ("[name for name in known.keys() & set(wanted)]", "order of a set"),
        ("gather(*map(ask, left.keys() - asked))", "order of a set"),
        ("self.parts: set[Part] = set()\nfor part in self.parts: pass", "order of a set"),
        ("self.parts: set[Part] = set()\ntuple(self.parts)", "order of a set"),
        ("self.tasks: set[asyncio.Task[None]] = set()", "set of tasks"),
        ("path.write_text(text)", "encoding of the locale"),
        ("files(package).joinpath(name).read_text()", "encoding of the locale"),
        ("open(descriptor, 'w')", "encoding of the locale"),
        ("path.open(mode='a')", "encoding of the locale"),
        ("import tempfile\ntempfile.NamedTemporaryFile('w', suffix='.users')", "encoding of the locale"),
        ("import subprocess\nsubprocess.run(command, text=True)", "encoding of the locale"),
    ],
)
def test_the_rules_find(source: str, what: str) -> None:
    assert what in [found for _, found in breaches(source)]


@pytest.mark.parametrize(
    "source",
    [
        "import random\nrandom.Random(seed).random()",
        "import random\ndef f(rng: random.Random) -> None: rng.random()",
        "import numpy as np\nnp.random.default_rng(7)\ndef f(rng: np.random.Generator): rng.random()",
        "sorted(set(names))",
        "for name in sorted(known.keys() - wanted): pass",
        "for name in known.keys(): pass",
        "self.boxes: set[Box] = set()\nsum(box.held for box in self.boxes) + sum(map(held, self.boxes))",
        "self.boxes: set[Box] = set()\nself.boxes = {box for box in self.boxes if box.open}",
        "if known.keys() - wanted: pass",
        "self.names: set[str] = set()\nfor name in sorted(self.names): pass",
        "from datetime import UTC, datetime\ndatetime.fromtimestamp(utime / 1e6, UTC)",
        "from dimos_streams import clock\nclock.monotonic()",
        "def f(self): self.random.random(); self.time.time",
        "path.write_text(text, encoding='utf-8')\npath.read_text('utf-8')\npath.open('w', encoding='utf-8')",
        "path.open('rb')\nopen(path, 'wb')\nbus.open()\nsessions.open(name)",
    ],
)
def test_the_rules_leave_alone(source: str) -> None:
    assert list(breaches(source)) == []


@pytest.mark.slow
@pytest.mark.feature("F2")
def test_time_chance_and_text_come_from_the_clock_the_seed_and_utf_8() -> None:
    found = {
        (path.relative_to(REPOSITORY).as_posix(), what): line
        for path in sources()
        for line, what in breaches(path.read_text(encoding="utf-8"))
    }
    against = [f"{path}:{line}: {what}" for (path, what), line in found.items() if (path, what) not in ALLOWED]
    assert against == [], "use dimos_streams.clock, self.random, dicts for order, UTF-8; or give a reason in ALLOWED"
    assert [entry for entry in ALLOWED if entry not in found] == [], "no longer needed"
