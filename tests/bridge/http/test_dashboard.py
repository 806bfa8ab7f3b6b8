"""``GET /``: the dashboard, as it is served, and its agreement with the protocol that it speaks."""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import requests
from fastapi import FastAPI
from starlette.testclient import TestClient

from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.record.agent_events import KINDS
from dimos_streams.dashboard.linking import linked
from dimos_streams.dashboard.serving import FILES, PATHS, SCRIPT, mount_dashboard, policy_of, script
from dimos_streams.operator.schema import schema
from tests.bridge.serving import Served, served

SOURCES = {name: file.read_text(encoding="utf-8") for name, file in FILES.items()}
OWN = {name: text for name, text in SOURCES.items() if not name.startswith("vendor/")}
SCRIPTS = "\n".join(text for name, text in OWN.items() if name.endswith(".js"))
VIEWS = "\n".join(
    text
    for name, text in OWN.items()
    if name.endswith(".js") and not name.startswith(("calls/", "camera/", "map/", "plots/", "timeline/", "link/"))
)
"""The scripts that show what the monitor reports, and nothing else."""
VENDORED = Path(str(FILES["index.html"])).parent / "vendor"
INDEX = FILES["index.html"]
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
}
DEFS: dict[str, Any] = schema()["$defs"]


@pytest.fixture(scope="module")
def bridge() -> Iterator[Served]:
    with served(token="sesame", allowed_hosts=("robot.local",)) as made:
        yield made


@pytest.mark.slow
def test_every_file_is_served_to_anybody_as_what_it_is(bridge: Served) -> None:
    contents = {**SOURCES, SCRIPT: script().decode()}
    assert {path.removeprefix("/dashboard/").strip("/") or "index.html" for path in PATHS} == set(contents)
    for path in PATHS:
        name = path.removeprefix("/dashboard/").strip("/") or "index.html"
        response = bridge.get(path)
        assert (response.status_code, response.text) == (200, contents[name])
        headers = response.headers
        assert headers["content-type"] == TYPES[name.rpartition(".")[2]]
        assert headers["content-security-policy"] == policy_of(INDEX)
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_what_the_page_has_not_is_not_found(bridge: Served) -> None:
    for path in ("/dashboard/nothing.js", "/dashboard/vendor/preact/LICENSE", "/dashboard/../serving.py"):
        assert bridge.get(path).status_code == 401
        assert bridge.get(path, headers={"Authorization": "Bearer sesame"}).status_code == 404


def test_a_recording_is_looked_at_with_the_same_page() -> None:
    app = FastAPI()
    mount_dashboard(app, "recording")
    page = TestClient(app).get("/")
    assert (
        page.text
        == SOURCES["index.html"].replace('data-mode="live"', 'data-mode="recording"')
        != SOURCES["index.html"]
    )
    assert page.headers["content-security-policy"] == policy_of(INDEX)


def test_the_policy_allows_nothing_that_text_could_use() -> None:
    policy = policy_of(INDEX)
    rules = {rule.split(" ", 1)[0]: rule.split(" ", 1)[1] for rule in policy.split("; ")}
    assert rules["default-src"] == "'none'"
    assert {rules[name] for name in ("style-src", "connect-src")} == {"'self'"}
    own_map = hashlib.sha256(_import_map().encode()).digest()
    assert rules["script-src"] == f"'self' 'sha256-{base64.b64encode(own_map).decode()}'"
    assert rules["img-src"] == "data: blob:"
    assert {rules[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert rules["require-trusted-types-for"] == "'script'"
    assert rules["trusted-types"] == "'none'"
    assert "unsafe" not in policy
    assert "*" not in policy


@pytest.mark.parametrize("path", ["/healthz", "/skills", "/monitor/schema", "/openapi.json", "/dashboard/", "//"])
def test_nothing_else_is_served_without_the_token(bridge: Served, path: str) -> None:
    assert bridge.get(path).status_code == 401


@pytest.mark.parametrize("path", ["/", "/dashboard/main.js"])
def test_the_page_obeys_the_rules_for_host_and_origin(bridge: Served, path: str) -> None:
    assert bridge.get(path, headers={"Host": "robot.local"}).status_code == 200
    assert bridge.get(path, headers={"Host": "evil.example"}).status_code == 403
    assert bridge.get(path, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert bridge.get(path, headers={"Origin": bridge.url}).status_code == 200
    behind_a_proxy = {"Origin": "http://proxy.example:8080", "Sec-Fetch-Site": "same-origin"}
    assert bridge.get(path, headers=behind_a_proxy).status_code == 200, "the page is there to say what is wrong"
    assert "access-control-allow-origin" not in bridge.get(path, headers=behind_a_proxy).headers
    refused = bridge.post(path, headers=behind_a_proxy)
    assert refused.status_code == bridge.get("/healthz", headers=behind_a_proxy).status_code == 403
    assert "a proxy in between has to pass on Host" in refused.json()["detail"]
    assert bridge.post(path).status_code == 401
    assert (
        requests.delete(bridge.url + path, headers={"Authorization": "Bearer sesame"}, timeout=10).status_code == 405
    )


@pytest.mark.parametrize("path", ["/monitor", "/monitor?agent=nobody&x=1"])
def test_a_plain_request_for_the_monitor_is_told_what_a_websocket_needs(bridge: Served, path: str) -> None:
    assert bridge.get(path).status_code == 401
    refused = bridge.get(path, headers={"Authorization": "Bearer sesame"})
    assert (refused.status_code, refused.headers["upgrade"]) == (426, "websocket")
    assert refused.json()["type"] == "urn:dimos-streams:problem:upgrade-needed"
    assert "a proxy in between has to pass on Upgrade, Connection and Host" in refused.json()["detail"]


class _References(HTMLParser):
    """The sources that a page loads, and those that its content security policy would refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [value for name in ("src", "href") if (value := given.get(name))]
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        if tag == "style" or (tag == "script" and "src" not in given and given.get("type") != "importmap"):
            self.inline.append(tag)


def _import_map() -> str:
    found = re.findall(r'<script type="importmap">(.*?)</script>', SOURCES["index.html"], re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def test_the_page_loads_only_its_own_files() -> None:
    page = _References()
    page.feed(SOURCES["index.html"])
    assert page.inline == []
    styles = {f"dashboard/{name}" for name in SOURCES if name.endswith(".css")}
    libraries = {path.removeprefix("./") for path in json.loads(_import_map())["imports"].values()}
    loaded = {each for each in page.loaded if not each.startswith("data:")}
    assert loaded == {f"dashboard/{SCRIPT}", *styles, *libraries}
    for name, text in OWN.items():
        assert not re.search(r"\w://|url\(|@import", text.replace("http://www.w3.org/", "")), (
            f"{name} names something outside"
        )
    assert sum(len(text.encode()) for text in OWN.values()) <= 400_000


def test_every_script_is_imported_from_where_it_is() -> None:
    bare = {name: path.removeprefix("./dashboard/") for name, path in json.loads(_import_map())["imports"].items()}
    seen: set[str] = set()
    following = ["main.js"]
    while following:
        name = following.pop()
        if name in seen:
            continue
        seen.add(name)
        for imported in re.findall(r'(?:\bfrom|\bimport) ?\(?"([^"\n]+)"', SOURCES[name]):
            path = bare.get(imported) or posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))
            assert path in SOURCES, f"{name} imports {imported!r}, which is not there"
            following.append(path)
        for names, imported in re.findall(r'import \{([^}]+)\} from "(\.[^"]+)"', SOURCES[name]):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))
            exported = set(
                re.findall(r"^export (?:async )?(?:function\*?|class|const|let) (\w+)", SOURCES[path], re.MULTILINE)
            )
            wanted = {each.strip().partition(" as ")[0] for each in names.split(",") if each.strip()}
            assert wanted <= exported, f"{name} wants of {imported!r} what is not in it"
    unused = {name for name in SOURCES if name.endswith((".js", ".mjs"))} - seen
    assert unused == set(), "files that nobody imports"


def test_all_scripts_are_served_as_one() -> None:
    own = {name: text for name, text in OWN.items() if name.endswith(".js")}
    parts = re.findall(r"^// ([\w/]+\.js)\nconst .* = \(\(\) => \{$", script().decode(), re.MULTILINE)
    assert sorted(parts) == sorted(own)
    assert parts[-1] == "main.js"
    for name in own:
        for imported in re.findall(r'^import .* from "(\.[^"]+)";$', own[name], re.MULTILINE):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))
            assert parts.index(path) < parts.index(name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('import { b } from "./b.js";\nexport const a = b;\n', "a.js → b.js → a.js|b.js → a.js → b.js"),
        ("export default 7;\n", "a.js: 'export default 7;' is a form"),
        ('import "./b.js";\n', "is a form"),
        ("export let a = 1;\n", "is a form"),
    ],
)
def test_scripts_that_cannot_be_one_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        linked("a.js", {"a.js": text, "b.js": 'import { a } from "./a.js";\nexport const b = a;\n'})


def test_libraries_are_the_packages_own_files_with_their_licences() -> None:
    listed = dict(
        re.findall(r"\| `([\w./]+)` \| `([0-9a-f]{64})` \|", (VENDORED / "README.md").read_text(encoding="utf-8"))
    )
    there = {path.relative_to(VENDORED).as_posix() for path in VENDORED.rglob("*") if path.is_file()}
    licences = {f"{name.partition('/')[0]}/LICENSE" for name in listed}
    assert there == {"README.md", *listed, *licences}
    for name, digest in listed.items():
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == digest, name


def test_text_never_becomes_html() -> None:
    words = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "Function(")
    for word in (*words, "dangerouslySetInnerHTML", "setHTML"):
        assert word not in SCRIPTS


# The page and the protocol


def kinds(union: str, field: str) -> dict[str, dict[str, Any]]:
    """The members of a union of the schema, by the value that distinguishes them."""
    members = [DEFS[part["$ref"].rpartition("/")[2]] for part in DEFS[union]["oneOf"]]
    return {member["properties"][field]["const"]: member for member in members}


def test_the_page_knows_every_message_and_no_other() -> None:
    taken = re.search(r"switch \(message\.type\) \{(.*?)\n    \}", SOURCES["session.js"], re.DOTALL)
    assert taken
    assert set(re.findall(r'case "(\w+)":', taken[1])) == set(kinds("ServerMessage", "type"))


def test_the_page_sends_every_command_and_no_other() -> None:
    scripts = "\n".join(text for name, text in SOURCES.items() if not name.startswith("transport/"))
    sent = re.findall(r"\{ command: \"(\w+)\"([^}]*) \}", scripts)
    known = kinds("Command", "command")
    assert {name for name, _ in sent} == set(known)
    for name, rest in sent:
        fields = {field.partition(":")[0].strip() for field in rest.split(",") if field.strip()}
        assert fields <= set(known[name]["properties"]), name
        assert set(known[name].get("required", ())) <= {*fields, "command"}, name
    decisions = set(re.findall(r'\bdecide\("(\w+)"', SCRIPTS))
    assert decisions == set(known["decide"]["properties"]["decision"]["enum"])


_READ_AS = {
    "agent": "AgentSnapshot",
    "approval": "ApprovalView",
    "entry": "ConversationEntry",
    "mission": "MissionView",
    "call": "CallLine",
    "skill": "SkillLine",
    "module": "ModuleLine",
    "robot": "RobotView",
    "hold": "HoldView",
}
_METHODS = {"join", "length", "flatMap", "filter", "includes", "startsWith", "lastIndexOf", "slice"}


def test_the_page_reads_only_fields_that_are_there() -> None:
    for name, model in _READ_AS.items():
        read = set(re.findall(rf"(?<![\w.#/\"]){name}\.(\w+)", VIEWS)) - _METHODS
        assert read, name
        assert read <= set(DEFS[model]["properties"]), f"{name} is a {model}"
    shown = set(re.findall(r"\bstate\??\.(\w+)", SCRIPTS))
    assert shown == set(DEFS["MonitorSnapshot"]["properties"]), "all of the state, and nothing else"


def test_the_page_knows_the_kinds_of_agents_events() -> None:
    steps = re.search(r"const STEPS = new Set\(\[(.*?)\]\)", SCRIPTS, re.DOTALL)
    assert steps
    assert set(re.findall(r'"(\w+)"', steps[1])) < set(KINDS)
    modes = set(DEFS["AgentSnapshot"]["properties"]["mode"]["enum"])
    assert set(re.findall(r'agent\.mode [!=]== "(\w+)"', SCRIPTS)) <= modes
    assert set(re.findall(r'agent\.state [!=]== "(\w+)"', SCRIPTS)) <= {state.value for state in LoopState}
