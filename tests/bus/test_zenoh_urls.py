"""Zenoh without a session: what URLs and keys say, and what is reliable."""

from __future__ import annotations

import asyncio
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dimos_streams.bus import create_bus
from dimos_streams.bus.delivery import delivery_of, urgency_of
from dimos_streams.bus.url import leaves_process
from dimos_streams.bus.zenoh.keys import KeySpace
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.errors import BusUrlError, UserError
from dimos_streams.tool_stream.protocol.channels import EVENTS

CANCELS = "/skill_cancels#dimos_streams.SkillCancel"
TWIST = "/robot1/cmd_vel#geometry_msgs.Twist"


@pytest.mark.feature("G1")
@pytest.mark.parametrize(
    ("channel", "key"),
    [
        (TWIST, "dimos/robot1/cmd_vel/geometry_msgs.Twist"),
        ("/color_image#sensor_msgs.Image", "dimos/color_image/sensor_msgs.Image"),
        ("/untyped", "dimos/untyped"),
        ("/not.a_type", "dimos/not%2Ea_type"),
        ("/a*b$c?d#e", "dimos/a%2Ab%24c%3Fd%23e"),
        ("/@hidden", "dimos/%40hidden"),
        ("CAMERA", "dimos/%%/CAMERA"),
        ("/a//b/", "dimos/a/%/b/%"),
    ],
)
def test_keys_have_the_form_of_dimos(channel: str, key: str) -> None:
    keys = KeySpace("dimos")
    assert keys.key_of(channel) == key
    assert keys.channel_of(key) == channel


@pytest.mark.parametrize(
    "key",
    [
        "dimos/robot1%2Fcmd_vel/geometry_msgs.Twist",
        "dimos/%72obot1/cmd_vel/geometry_msgs.Twist",
        "dimos/%00/a.B",
        "dimos/a%0Ab",
        "dimos/%C2%85",
        "dimos/%%",
        "dimos/%%/%",
        "dimos/%FF",
    ],
)
def test_a_key_that_is_not_that_of_its_channel_stands_for_none(key: str) -> None:
    assert KeySpace("dimos").channel_of(key) is None


@pytest.mark.slow
@given(st.text(alphabet="/ab.#*%@A$?é ", max_size=12), st.text(alphabet="/ab.#*%@A$?é ", max_size=12))
def test_every_channel_has_a_key_of_its_own(one: str, other: str) -> None:
    keys = KeySpace("room")
    assert keys.channel_of(keys.key_of(one)) == (one or None)
    assert (keys.key_of(one) == keys.key_of(other)) == (one == other)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.text(max_size=20))
def test_every_channel_has_a_key_that_zenoh_takes(channel: str) -> None:
    zenoh = pytest.importorskip("zenoh")
    if any(0xD800 <= ord(character) < 0xE000 for character in channel):
        return
    keys = KeySpace("room")
    assert zenoh.KeyExpr(keys.everything).includes(zenoh.KeyExpr(keys.key_of(channel)))


def test_what_a_url_leaves_out_stays_on_this_machine() -> None:
    url = ZenohUrl.parse("zenoh://")
    assert (url.mode, url.endpoints, url.listening, url.interface) == ("peer", (), ("127.0.0.1:0",), "lo")
    assert url.is_local
    assert url.key_space == KeySpace("dimos_streams")
    assert url.scouting is not None
    assert url.scouting != ZenohUrl.parse("zenoh:///other").scouting, "runs of other domains are not even met"
    assert leaves_process("zenoh://")


def test_the_keys_of_dimos_are_looked_for_where_dimos_looks() -> None:
    url = ZenohUrl.parse("zenoh://?keys=dimos")
    assert (url.key_space, url.scouting) == (KeySpace("dimos"), "224.0.0.224:7446")
    assert ZenohUrl.parse("zenoh:///lab?keys=dimos").key_space == KeySpace("dimos-domains/lab")


@pytest.mark.parametrize(
    "text",
    [
        "zenoh://",
        "zenoh:///lab",
        "zenoh://10.0.0.1:7447,[::1]:7448/lab?mode=client",
        "zenoh://me:p%40ss%2Fword@10.0.0.1:7447?ca=/etc/ca.pem&cert=/c.pem&key=/k.pem",
        "zenoh://?keys=dimos&mode=router&listen=0.0.0.0:7447&scout=off&interface=eth0&users=/u&config=/z.json5",
    ],
)
def test_a_url_says_all_that_it_was_made_of(text: str) -> None:
    url = ZenohUrl.parse(text)
    assert ZenohUrl.parse(str(url)) == url
    assert "ss/word" not in repr(url)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("zenoh://host", "'host' is no HOST:PORT"),
        ("zenoh://host:99999", "'host:99999' is no HOST:PORT"),
        ("zenoh://a..b:7447", "'a..b:7447' is no HOST:PORT: no host has such a name"),
        ("zenoh:///a/b", "'a/b' is no domain"),
        ("zenoh://?key=dimos", "'cert' and 'key' go together"),
        ("zenoh://?keyz=dimos", "no option 'keyz'; did you mean 'key'"),
        ("zenoh://?keys=ros", "no keys 'ros' .valid: 'dimos', or none"),
        ("zenoh://?mode=hub", "no mode 'hub' .modes: peer, client, router."),
        ("zenoh://?mode=client", "a client needs the address of a router"),
        ("zenoh://?scout=10.0.0.1:7446", "is no GROUP:PORT of multicast"),
        ("zenoh://?scout=", "option 'scout' is empty"),
        ("zenoh://?listen=7447", "'7447' is no HOST:PORT"),
        ("zenoh://me@host:1", "a user needs a password"),
        ("zenoh://a%3Ab:secret@host:1", "a user has no ':'"),
        ("zenoh://me:pass%0Aword@host:1", "neither it nor its password a line end"),
        ("zenoh://a:1#b", "#b says nothing"),
    ],
)
def test_a_bad_url_is_named_with_what_would_be_valid(text: str, why: str) -> None:
    with pytest.raises(BusUrlError, match=why) as raised:
        create_bus(text)
    assert text in str(raised.value) or "[redacted]" in str(raised.value)
    assert "valid for example: 'zenoh://'" in str(raised.value)


def test_errors_about_a_url_do_not_show_its_password() -> None:
    with pytest.raises(BusUrlError) as raised:
        create_bus("zenoh://me:geheimnis@host")
    assert "geheimnis" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "zenoh://me:gehe#imnis@host:1",
        "zenoh://me:gehe/imnis@host:1",
        "zenoh://me:gehe?imnis@host:1",
        "zenoh://me:gehe?imnis=gehe@host:1",
        "zenoh://me:gehe/@imnis@host:1/lab?keys=dimos",
        "zenoh://me:gehe[imnis@host:1",
        "zenoh://me:gehe\u2100imnis@host:1",
        "zenoh://host:1?password=geheimnis",
        "zenoh://host:1?geheimnis",
        "zeno://me:gehe/imnis@host:1",
        "zenoh:me:gehe/imnis@host:1",
        "udpm://me:geheimnis@239.255.76.67:7667",
        "udpm://me:gehe/imnis@239.255.76.67:7667",
        "udpm://me:gehe[imnis@239.255.76.67:7667",
        "udpm://1.2.3.4:7667?password=geheimnis",
    ],
)
def test_a_url_that_cannot_be_read_does_not_show_what_may_be_its_password(text: str) -> None:
    with pytest.raises(BusUrlError, match=r"bad bus URL .*\[redacted\].*; valid") as raised:
        leaves_process(text)
    assert "gehe" not in str(raised.value)
    assert "imnis" not in str(raised.value)
    assert raised.value.__cause__ is None or "imnis" not in str(raised.value.__cause__)


def test_an_option_may_have_a_path_with_an_at_sign() -> None:
    assert ZenohUrl.parse("zenoh://?users=/home/me@work").files == {"users": "/home/me@work"}


def test_only_what_was_chosen_and_does_not_repeat_itself_hangs_on_the_numbers_of_a_bus() -> None:
    ours = ("/skill_calls#dimos_streams.SkillCall", CANCELS, EVENTS)
    for channel in (TWIST, "/scan#sensor_msgs.LaserScan", "/untyped", *ours):
        assert delivery_of(channel, {}) == "latest"
    for channel in ours:
        assert delivery_of(channel, {channel.partition("#")[0]: "reliable"}) == "latest"
    chosen = delivery_of("/goal#geometry_msgs.PoseStamped", {"/goal": "reliable"})
    assert chosen == "reliable"
    assert (urgency_of(TWIST), urgency_of("/image#sensor_msgs.Image"), urgency_of(EVENTS)) == (
        "urgent",
        "bulky",
        "usual",
    )


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(UserError, match=r"pip install 'dimos-streams\[zenoh\]'"):
        asyncio.run(create_bus("zenoh://").open())
