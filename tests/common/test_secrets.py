"""Secrets are replaced wherever text enters or leaves, in whatever form; bad ones are refused, and not shown."""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import cast
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretBytes, SecretStr
from websockets.http11 import Request

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.settings import apply_settings, explain
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.common.json.writing import json_without_secrets
from dimos_streams.common.printable import LogFormatter, printable, show_tracebacks
from dimos_streams.common.secrets import (
    REDACTED,
    RedactedPieces,
    Redaction,
    checked,
    has_secret_setting,
    know,
    know_environment,
    know_settings,
    know_url,
    masked,
    redacted,
)
from dimos_streams.common.secrets import known as known_secrets
from dimos_streams.errors import UserError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.recording.metadata import without_secrets
from dimos_streams.runtime.options import RunOptions
from dimos_streams.serving.server.frames import MeteredFrames


class KeeperConfig(ModuleConfig):
    credentials: Mapping[str, object] = {}
    token: Mapping[str, int] = {}
    labels: Mapping[str, str] = {}


class Keeper(Module):
    config: KeeperConfig


VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=40)
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": lambda text: json.dumps({"said": text}),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "Python": lambda text: repr({text: text}),
    "URL": lambda text: quote(text, safe=""),
    "path": quote,
    "form": quote_plus,
    "HTML": html.escape,
    "URL twice": lambda text: quote(quote(text, safe=""), safe=""),
    "URL, all of it": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "URL, as browsers write it": lambda text: quote(text, safe="!*'()"),
    "HTML in decimal": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML in hexadecimal": lambda text: "".join(f"&#x{ord(char):X};" for char in text),
    "HTML in a URL": lambda text: quote(html.escape(text)),
    "JSON, all of it": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "JSON in JSON, all of it": lambda text: json.dumps("".join(f"\\u{ord(char):04X}" for char in text)),
    "Python's bytes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "Bearer": lambda text: f"Bearer {text}",
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "Basic": lambda text: base64.b64encode(f"somebody:{text}".encode()).decode(),
    "base64 of Bearer": lambda text: base64.b64encode(f"Bearer {text}\n".encode()).decode(),
}


@pytest.fixture
def key() -> str:
    know("sk-p1ant3d/key+7")
    return "sk-p1ant3d/key+7"


@pytest.mark.slow
@given(VISIBLE, st.text(max_size=5), st.text(max_size=5), st.sampled_from(sorted(ENCODINGS)))
def test_no_encoding_hides_a_secret(secret: str, before: str, after: str, encoding: str) -> None:
    redaction = Redaction()
    redaction.add(secret)
    encode = ENCODINGS[encoding]
    shown = redaction.redacted(before + encode(secret) + after)
    assert REDACTED in shown
    for form in (encode(secret), secret):
        assert form not in shown.replace(REDACTED, "\0")


@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_base64_hides_no_secret_wherever_it_begins(before: str, key: str) -> None:
    shown = redacted(base64.b64encode(f"{before}{key} and more".encode()).decode())
    assert REDACTED in shown


@pytest.mark.parametrize("secret", [os.fsdecode(b"us\xe9r:secret"), "half a \ud83d character"])
def test_a_secret_that_is_no_utf_8_is_found_as_all_others_are(secret: str) -> None:
    redaction = Redaction()
    redaction.add(secret)
    data = secret.encode("utf-8", "surrogatepass" if "half" in secret else "surrogateescape")
    for form in (secret, json.dumps(secret), quote(data), quote_plus(data), base64.b64encode(data).decode()):
        assert REDACTED in redaction.redacted(form)


@pytest.mark.slow
@given(st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=4), st.text("abc", max_size=60))
def test_secrets_that_overlap_leave_nothing_of_each_other(known: list[str], text: str) -> None:
    redaction = Redaction()
    for secret in known:
        redaction.add(secret)
    covered = {
        at + offset
        for secret in known
        for at in range(len(text))
        if text.startswith(secret, at)
        for offset in range(len(secret))
    }
    left = "".join(char for at, char in enumerate(text) if at not in covered)
    assert redaction.redacted(text).replace(REDACTED, "") == left


@pytest.mark.slow
@given(
    st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=3),
    st.lists(st.text("abc", max_size=12), max_size=12),
)
def test_pieces_come_out_as_the_whole_would(known: list[str], pieces: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_secrets, "_process", Redaction())
        for secret in known:
            know(secret)
        stream = RedactedPieces()
        reported = [*map(stream.add, pieces), stream.rest()]
        assert "".join(reported) == redacted("".join(pieces))
        assert len(stream.rest()) == 0


def test_what_can_be_no_secret_is_not_held_up(key: str) -> None:
    stream = RedactedPieces()
    assert stream.add("I follow the person, ") == "I follow the person, "
    assert stream.add("it is s") == "it is "
    assert stream.add("ure.") == "sure."
    assert stream.add("sk-p1ant3d/") == ""
    assert stream.add("key+7 is") == f"{REDACTED} i"
    assert stream.rest() == "s"


def test_a_short_secret_is_noted_and_not_looked_for(settled_log: pytest.LogCaptureFixture) -> None:
    for key in (None, "", "robots-key", "robot"):
        know(key, where="OPENAI_API_KEY")
    assert redacted("the robot moves") == "the robot moves"
    assert settled_log.messages == [
        "OPENAI_API_KEY has fewer than 6 characters: texts that contain it are not redacted"
    ]


def test_the_secrets_of_the_environment_are_found_without_the_urls_that_they_are_in() -> None:
    know_environment(
        {
            "OPENAI_API_KEY": "openais-key",
            "DIMOS_STREAMS_TOKEN": "bridges-token",
            "BACKUP": "ssh://me:backup-key@nas",
            "BROKEN": "http://me@[x",
            "HOME": "/home/someone",
        }
    )
    said = "openais-key bridges-token backup-key /home/someone"
    assert redacted(said) == f"{REDACTED} {REDACTED} {REDACTED} /home/someone"


def test_a_url_shows_neither_user_nor_password() -> None:
    text = "rtsp://admin:p@ssw0rd@10.0.0.5/stream, http://tok3n-as-user@host:80/v1?mail=me@here"
    assert redacted(text) == f"rtsp://{REDACTED}@10.0.0.5/stream, http://{REDACTED}@host:80/v1?mail=me@here"
    know_settings({"vlm": {"base_url": "https://eve:s%3Acr3t-word@host/v1"}})
    sent = base64.b64encode(b"eve:s:cr3t-word").decode()
    for form in ("s:cr3t-word", "s%3Acr3t-word", sent):
        assert form not in redacted(f"you sent {form}!")


def test_a_user_that_is_in_the_scheme_of_its_url_is_no_secret_but_a_password_is() -> None:
    know_url("postgresql://postgres@db/fleet")
    assert redacted("from postgresql://db/fleet") == "from postgresql://db/fleet"
    know_url("postgresql://fleet:postgres@db/fleet")
    assert redacted("it is postgres") == f"it is {REDACTED}"


@pytest.mark.parametrize("end", "#/?")
def test_a_password_that_ends_what_is_before_a_host_is_found(end: str) -> None:
    url = f"http://bob:se{end}cret-cut@127.0.0.1:1/v1"
    know_settings({"base_url": url})
    assert redacted(f"at {url}: cannot reach se{end}cret-cut") == (
        f"at http://{REDACTED}@127.0.0.1:1/v1: cannot reach {REDACTED}"
    )


@pytest.mark.parametrize(
    "url", ["http://cam:80/at@2x.png", "http://cam/at@2x.png", "http://[::1]/a@b", "http://[::1]:8/a@b"]
)
def test_what_is_behind_a_host_is_no_secret(url: str) -> None:
    know_settings({"picture": url})
    assert redacted(url) == url


def test_settings_are_secret_by_type_and_by_name() -> None:
    class Config(ModuleConfig):
        login: SecretStr = SecretStr("hidden-by-type")
        key: SecretBytes = SecretBytes(b"hidden-in-bytes")
        door_secret: bytes = b"hidden-bytes"
        camera_password: str = ""
        extra: Mapping[str, object] = {}
        max_tokens: int = 7

    Config(camera_password="hidden-by-name", extra={"apiKey": "hidden-inside", "Authorization": "Bearer b34rer-key"})
    for secret in (
        "hidden-by-type",
        "hidden-in-bytes",
        "hidden-bytes",
        "hidden-by-name",
        "hidden-inside",
        "b34rer-key",
    ):
        assert redacted(f"<{secret}>") == f"<{REDACTED}>"
    settings = {"camera_password": "short", "max_tokens": 7, "url": "http://u:p@h/", "say": ["hidden-inside"]}
    assert without_secrets(settings) == {"max_tokens": 7, "url": "http://h/", "say": [REDACTED]}


def test_what_is_inside_of_a_secret_is_secret_too_and_so_are_numbers() -> None:
    class Config(ModuleConfig):
        credentials: Mapping[str, object] = {}
        pin_password: int = 0
        seed: int = 83746513

    inside = {"robot1": "of-robot-one", "more": {"x": ["of-robot-two"], "y": {"z": 9182736455}}}
    Config(credentials=inside, pin_password=83746512)
    for secret in ("of-robot-one", "of-robot-two", "9182736455", "83746512"):
        assert redacted(f"<{secret}>") == f"<{REDACTED}>"
    hidden = {"robot1": REDACTED, "more": {"x": REDACTED, "y": {"z": REDACTED}}}
    assert masked({"credentials": inside, "pin_password": 4711, "seed": 1}) == {
        "credentials": hidden,
        "pin_password": REDACTED,
        "seed": 1,
    }
    said = {"numbers": [83746512, 837465120, 83746513, 0.25], "done": True, "text": "83746512"}
    assert json.loads(json_without_secrets(said)) == {
        "numbers": [REDACTED, 837465120, 83746513, 0.25],
        "done": True,
        "text": REDACTED,
    }


@pytest.mark.parametrize(
    ("value", "is_there"),
    [
        ({"seed": 1, "pin_password": 4711, "more": []}, True),
        ({"seed": 1, "more": [{"name": "a"}, {"name": "b", "api_key": "k3y"}]}, True),
        ({"seed": 1, "url": "a", "http://kn0wn-key@h": "b"}, True),
        (["a", SecretStr("b")], True),
        (["a", "with kn0wn-key in it"], True),
        ({"seed": 1, "token": "", "more": [{"name": "a"}]}, False),
        ([], False),
    ],
)
def test_one_secret_among_settings_is_enough_to_hide_a_change_of_them(value: object, is_there: bool) -> None:
    know("kn0wn-key")
    assert has_secret_setting(value) is is_there
    assert (masked(value) != value) is is_there


def test_what_is_inside_of_a_secret_is_not_shown() -> None:
    spec = ModuleSpec(name="m", type="tests.common.test_secrets:Keeper")
    blueprint = Blueprint(name="b", modules={"m": spec})
    given = ["m.credentials={robot1: of-robot-one}", "m.credentials.robot2=two", "m.credentials.more={x: three}"]
    given.append("m.labels={http://me:of-a-url@h/: a}")
    changed = apply_settings(blueprint, {}, given)
    rows = {row.field: row.value for row in explain(changed)}
    paths = ("credentials.robot1", "credentials.robot2", "credentials.more.x", f"labels.http://{REDACTED}@h/")
    assert [rows[path] for path in paths] == [REDACTED, REDACTED, REDACTED, "a"]
    with pytest.raises(UserError) as raised:
        apply_settings(blueprint, {}, ["m.token.x=four"])
    assert "four" not in str(raised.value)


def test_settings_are_not_shown() -> None:
    blueprint = apply_settings(resolve("agent-openai"), {}, ["bridge.token=pwd", "agent.base_url=http://a:b@h/v1"])
    rows = {f"{row.module}.{row.field}": row.value for row in explain(blueprint)}
    assert rows["bridge.token"] == REDACTED
    assert rows["agent.base_url"] == f"http://{REDACTED}@h/v1"
    assert rows["agent.model_options.max_tokens"] == 8192
    for bad in ("bridge.token='tok3n one'", "bridge.nothing.token=tok3n-one"):
        with pytest.raises(UserError) as raised:
            explain(apply_settings(blueprint, {}, [bad]))
        assert "tok3n" not in printable(str(raised.value)), bad


def test_logs(key: str) -> None:
    try:
        raise ValueError(f"no such key: {key}")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "asked with %r", (key,), (type(error), error, None))
    shown = LogFormatter("%(message)s").format(record)
    assert key not in shown
    assert shown.count(REDACTED) == 2


def test_records_have_bounds(key: str) -> None:
    try:
        raise ValueError(f"{key}{'x' * 1_000_000}" * 2)
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "%s", (error,), (type(error), error, None))
    shown = LogFormatter("%(message)s").format(record)
    assert len(shown) < 33_000
    assert shown.count(REDACTED) == 2, "at the beginning of each part"
    assert key[:8] not in shown


def test_logs_that_are_not_set_up(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    last = logging.lastResort
    assert last is not None
    monkeypatch.setattr(last, "formatter", None)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    show_tracebacks()
    try:
        raise ValueError(f"no such key: {key}\x1b[2J")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "asked with %r", (key,), (type(error), error, None))
    shown = last.format(record)
    assert key not in shown
    assert shown.count(REDACTED) == 2
    assert "\x1b" not in shown


def test_tracebacks_of_any_thread(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    show_tracebacks()

    def fail() -> None:
        raise ValueError(f"no such key: {key}")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    try:
        fail()
    except ValueError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    shown = capsys.readouterr().err
    assert key not in shown
    assert shown.count("Traceback") == 2
    assert shown.count(REDACTED) == 2


@pytest.mark.parametrize(
    ("token", "what"),
    [
        ("t0ken-of-mine\n", "ends with a line end"),
        (" t0ken-of-mine", "begins with a blank"),
        ("t0ken\tof-mine", "no visible ASCII"),
        ("t0ken of-mine", "no visible ASCII"),
        ("t0kén-of-mine", "no visible ASCII"),
        ("t0ken\x1bof-mine", "no visible ASCII"),
        ("", "is empty"),
        ("${t0ken_OF_MINE}", "is the place of a variable"),
        ("$(t0ken_OF_MINE)", "is the place of a variable"),
    ],
)
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(token: str, what: str) -> None:
    givers: list[Callable[[], object]] = [
        lambda: checked(token, "DIMOS_STREAMS_TOKEN"),
        lambda: RunOptions(token=token),
        lambda: HttpGateway("http://127.0.0.1:1", token=token),
        lambda: explain(resolve("agent-openai").configured({"bridge.token": token})),
    ]
    for give in givers:
        with pytest.raises(UserError, match=what) as raised:
            give()
        assert "token" in str(raised.value).lower()
        assert "t0k" not in str(raised.value)
    with pytest.raises(ValueError, match=what):
        Bridge({"token": token})


def test_who_is_refused_a_web_socket_is_not_told_the_token_that_he_has_sent() -> None:
    know("t0ken-of-mine")
    frames = MeteredFrames(max_size=1000, logger=logging.getLogger(__name__))
    offered = f"dimos-streams, bearer.{base64.urlsafe_b64encode(b't0ken-of-mine').decode()}"  # with a `=` too many
    head = ("GET /monitor HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade")
    key = ("Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}")
    frames.receive_data("\r\n".join([*head, *key, f"Sec-WebSocket-Protocol: {offered}", "", ""]).encode())
    (request,) = frames.events_received()
    response = frames.accept(cast(Request, request))
    assert response.status_code == 400
    assert response.body is not None
    assert REDACTED.encode() in response.body
    assert b"dDBrZW4" not in response.body


def test_a_bus_has_no_password() -> None:
    with pytest.raises(UserError, match="no users") as raised:
        UdpmUrl.parse("udpm://me:pa55word@239.255.76.67:7667")
    assert "pa55word" not in printable(str(raised.value))
