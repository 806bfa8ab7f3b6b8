"""Robots and models that mean ill: what they say is read as it is, and costs the page nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import itertools
import json
import math
import re
import struct
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from dimos_streams import clock
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.unseen import NOTHING
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseStamped, Quaternion
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.nav_msgs import MapMetaData, OccupancyGrid, Path
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module
from dimos_streams.robot import sensor_messages
from dimos_streams.robot.velocity import Velocity
from dimos_streams.skill import Call, skill
from tests.bridge.serving import Served, served
from tests.browser.conftest import Contexts
from tests.browser.script_modules import ScriptModules
from tests.browser.waiting import OFTEN, until
from tests.detected import detection

pytestmark = [pytest.mark.feature("I1"), pytest.mark.slow]

CHANNELS = {
    "/color_image#sensor_msgs.Image": "",
    "/detections#vision_msgs.Detection2DArray": "",
    "/scan#sensor_msgs.LaserScan": "",
    "/odom#nav_msgs.Odometry": "",
    "/map#nav_msgs.OccupancyGrid": "",
    "/plan#nav_msgs.Path": "",
}
REORDERED = "stop \u202etfel nrut\u202c \u2066and\u2069 go\x07\u200b"
EVIL = f"<img src=x onerror=alert(1)> {REORDERED} Approve Reject \n{'x' * 4000}"
UNSEEN = "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]"


class HostileRobot(Module):
    """Says what it likes, and when it likes."""

    @skill
    async def talk(self, call: Call, about: str) -> dict[str, Any]:
        """Talk. Args: about: Anything."""
        await call.update(EVIL)
        call.progress(EVIL, **{"__proto__": 1.5, "x_constructor": 2.5, "distance_m": 1e308, "a\u202eb": EVIL})
        await asyncio.sleep(0.3)  # the page has shown what came before by then
        await call.update(about)
        return {"picture": "../../run.json", "text": EVIL, "\u202e": [REORDERED]}


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A bridge of a run with a robot that means ill, and one picture."""
    run_dir = tmp_path_factory.mktemp("run")
    (run_dir / "pictures").mkdir()
    (run_dir / "pictures" / "a.jpg").write_bytes(_picture(16).data)
    with served(CHANNELS, run_dir=run_dir) as made:
        made.run(made.scene.add(HostileRobot(name="robot")))
        made.run(made.scene.offered("talk"))
        yield made


def test_what_reorders_or_hides_is_written_out_and_means_the_same(script_modules: ScriptModules) -> None:
    texts = ["plain, Küche, 人, שלום, \U0001f468\u200d\U0001f373\n\t", REORDERED, "\ufeff\U000e0041", "x" * 10_000]
    shown, drawn, parsed, json_text = script_modules(
        "texts.js",
        """(texts, all) => [all.map(texts.shown), all.map(texts.drawn).map(({ length }) => length),
            all.map((text) => JSON.parse(texts.shownJson({ [text]: text }))), texts.shownJson(all[1])]""",
        texts,
    )
    assert shown[0] == texts[0]
    assert shown[1] == r"stop \u202etfel nrut\u202c \u2066and\u2069 go\x07\u200b"
    assert shown[2] == r"\ufeff\U000e0041"
    assert max(drawn) < 2500
    assert parsed == [{text: text} for text in texts]
    assert r"\u202etfel" in json_text


def is_drawn_as_nothing(character: str) -> bool:
    return re.match(f"[{NOTHING}]", character) is not None


def is_known(character: str) -> bool:
    return character != "\n" and unicodedata.category(character) not in ("Cn", "Co", "Cs", "Zs")


def test_the_page_writes_out_what_terminals_do(script_modules: ScriptModules) -> None:
    """But for line ends and blanks of other widths, and where one of the two knows a newer Unicode."""
    parts = ["\u2764", "a", "\U0001f3fd", "\ufe0f", "\u200d"]
    more = [*parts, "\u2139", "\u21a4", "\u303d", "1", "#", "\u2800", "\u20e3"]
    texts = ["".join(each) for each in (*itertools.product(parts, repeat=4), *itertools.product(more, repeat=3))]
    codes = (*range(0x3400), *range(0xE000, 0x20000), *range(0xE0000, 0xE1000))
    known = [char for char in map(chr, codes) if is_known(char) or is_drawn_as_nothing(char)]
    escaped, shown = script_modules(
        "texts.js",
        """({ shown }, [characters, texts]) => {
            const isKnown = (character) => /\\P{Cn}|\\p{Default_Ignorable_Code_Point}/u.test(character);
            return [characters.filter((each) => isKnown(each) && shown(each) !== each), texts.map(shown)];
        }""",
        [known, texts],
    )
    assert escaped == [char for char in known if printable(char) != char]
    assert shown == list(map(printable, texts))


def test_no_half_of_a_character_is_left_where_a_text_is_cut(script_modules: ScriptModules) -> None:
    cut, drawn = script_modules(
        "texts.js",
        "(texts, all) => [all.map((text) => texts.clipped(text, 4)), texts.drawn('a' + all[3].repeat(200))]",
        ["abcd", "abcde", "abc\U0001f600", "\U0001f600" * 3],
    )
    assert cut == ["abcd", "abcd…", "abc…", "\U0001f600\U0001f600…"]
    assert set(drawn) == {"a", "\U0001f600", "…"}


def test_what_is_to_be_approved_reads_as_it_is(script_modules: ScriptModules) -> None:
    script = "ls  # and no more\n\n  rm -r /"
    arguments = {"description": REORDERED, "\u202eplace": {"deep": [REORDERED]}, "button": "<button>Approve</button>"}
    arguments |= {"script": script}
    made = script_modules(
        "conversation/approval.js",
        """async (module, { approval }) => {
            const { h, render } = await import("preact");
            (await import("/dashboard/every_text.js")).showTexts();
            const place = document.body.appendChild(document.createElement("main"));
            const answers = [];
            const session = { connected: true, readOnly: false, now: () => 2e6,
                ask: (command) => answers.push(command) };
            render(h(module.Approval, { name: "agent", approval, session }), place);
            const said = [place.innerText, ...[...place.querySelectorAll("*")].flatMap((each) =>
                [...each.attributes].map(({ value }) => value)), place.querySelector("textarea").value];
            const buttons = [...place.querySelectorAll("button")].map(({ textContent }) => textContent);
            place.querySelector("details").open = true;
            const changed = ({ textContent }) => textContent === "Approve with these";
            [...place.querySelectorAll("button")].find(changed).click();
            return { said: said.join("|"), buttons, answers };
        }""",
        {
            "approval": {
                "id": "a1", "skill": "go_to", "reason": REORDERED, "arguments": arguments, "hidden_characters": 0,
                "created_utime": 1_000_000, "expires_utime": None,
            }
        },
    )  # fmt: skip
    assert not any(each in made["said"] for each in "\u202e\u2066\u200b\x07")
    assert made["said"].count(r"\u202e") >= 5
    assert script in made["said"], "lines and blanks are what they are"
    assert made["buttons"] == ["Approve", "Reject", "Delete", "Approve with these", "Only change"]
    (answer,) = made["answers"]
    assert answer["arguments"] == arguments, "what is written out comes back as it was"


def test_integers_beyond_those_of_javascript_are_read_and_approved_as_they_are(script_modules: ScriptModules) -> None:
    given = '{"id": 9007199254740993, "all": [-12345678901234567890], "text": "old", "small": 5}'
    agents = f'{{"a": {{"approvals": [{{"arguments": {given}}}]}}, "b": null}}'
    message = f'{{"type": "change", "change": {{"agents": {agents}}}}}'
    said, sent, utime = script_modules(
        "link/exact_json.js",
        """async ({ parseMessage }, message) => {
            const { h, render } = await import("preact");
            const { Approval } = await import("/dashboard/conversation/approval.js");
            const approval = { id: "n", skill: "pick", hidden_characters: 0, created_utime: 1, expires_utime: null,
                ...parseMessage(message).change.agents.a.approvals[0] };
            const place = document.body.appendChild(document.createElement("main"));
            const sent = [];
            const session = { connected: true, readOnly: false, now: () => 2e6,
                ask: (command) => sent.push(JSON.stringify(command.arguments)) };
            render(h(Approval, { name: "agent", approval, session }), place);
            const field = place.querySelector("textarea");
            field.value = field.value.replace("old", "new");
            field.dispatchEvent(new Event("input", { bubbles: true }));
            while (!place.querySelector("details").open) await new Promise((resolve) => setTimeout(resolve));
            [...place.querySelectorAll("button")].find((each) => each.textContent === "Approve with these").click();
            return [place.innerText, sent, parseMessage('{"type": "event", "utime": 9223372036854775807}').utime];
        }""",
        message,
    )
    assert "9007199254740993" in said
    assert "[-12345678901234567890]" in said
    assert json.loads(sent[0]) == json.loads(given) | {"text": "new"}
    assert math.isclose(utime, 2**63), "what the page calculates with is a number"


def test_integers_beyond_those_of_javascript_are_read_as_they_are_in_what_waits_for_a_step(
    script_modules: ScriptModules,
) -> None:
    waiting = '{"skill": "pick", "arguments": {"id": 9007199254740993}}'
    message = f'{{"type": "change", "change": {{"agents": {{"a": {{"waiting_calls": [{waiting}]}}}}}}}}'
    said = script_modules(
        "link/exact_json.js",
        """async ({ parseMessage }, message) => {
            const { listed } = await import("/dashboard/format.js");
            return listed(parseMessage(message).change.agents.a.waiting_calls[0].arguments);
        }""",
        message,
    )
    assert said == "id=9007199254740993"


def test_no_scan_and_no_pose_keeps_the_map(script_modules: ScriptModules) -> None:
    made = script_modules(
        "map/floor.js",
        """async (floor, { rays }) => {
            const made = new floor.Floor();
            const odometry = (x) => ({ kind: "odometry", type: "", robot: "", utime: 1e6, stamp: 1e6, message: {
                header: { frame_id: "odom" }, child_frame_id: "base_link",
                pose: { pose: { position: { x, y: 0, z: 0 }, orientation: { x: 0, y: 0, z: 0, w: 1 } } } } });
            const scan = { kind: "scan", type: "", robot: "", utime: 1e6, stamp: 1e6, frame_id: "base_link",
                angle_min: 0, angle_increment: 2 * Math.PI / rays, range_min: 0.1, range_max: 1e30 };
            for (const x of [1e17, -1e308, null]) {
                made.take(odometry(x));
                made.take(scan, new Float32Array([1, 2, 3]).buffer);
            }
            const lost = made.robots.get("").pose;
            made.take(odometry(1));
            for (const range of [1e8, 2.5, NaN, 1e30]) made.take(scan, new Float32Array(rays).fill(range).buffer);
            const poses = [null, 1e300, 1].map((x) => ({ pose: { position: { x, y: 1 } } }));
            const message = { header: { frame_id: "" }, poses };
            made.take({ kind: "path", robot: "", topic: "/plan", utime: 1e6, message });
            const robot = made.robots.get("");
            return { lost, pose: robot.pose, tiles: robot.occupancy.tiles.size, hits: robot.hits.length,
                wall: robot.occupancy.at({ x: 3.52, y: 0.01 }), path: robot.paths.get("/plan").points };
        }""",
        {"rays": 1_000_000},
    )
    assert made["lost"] is None
    assert made["pose"]["x"] == 1
    assert 0 < made["tiles"] <= 160
    assert made["hits"] < 10_000
    assert made["wall"] > 0
    assert made["path"] == [{"x": 1, "y": 1}]


def test_times_that_cannot_be_have_no_end_of_marks(script_modules: ScriptModules) -> None:
    counts = script_modules(
        "timeline/scale.js",
        """async (scale, views) => {
            const { dateOf } = await import("/dashboard/format.js");
            return views.map(([from, to]) =>
                [scale.marks({ from, to }, 1280).length, dateOf(from).toISOString().length]);
        }""",
        [[-9.2e18, 1.7e15], [9.2e18, 9.2e18 + 2e5], [1.7e15, 1.7e15 + 6e7], [-9.2e18, 9.2e18]],
    )
    assert all(marks <= 16 for marks, _ in counts)
    assert counts[2][0] > 3


def test_a_panel_that_fails_costs_only_itself(script_modules: ScriptModules) -> None:
    texts = script_modules(
        "error_boundary.js",
        """async ({ ErrorBoundary }) => {
            const { h, render } = await import("preact");
            window.onerror = () => true;
            const place = document.body.appendChild(document.createElement("main"));
            const texts = [];
            const view = ({ bad }) => { if (bad) throw new RangeError("Invalid time value"); return "all is well"; };
            for (const bad of [false, true, false]) {
                const panel = h(ErrorBoundary, { name: "Calls", view, given: { bad }, of: { bad } });
                render([panel, h("button", null, "Stop")], place);
                await new Promise((done) => setTimeout(done, 20));
                texts.push(place.textContent);
            }
            return texts;
        }""",
    )
    assert texts[1] == "Calls can't be shown: RangeError: Invalid time valueStop"
    assert texts[0] == texts[2] == "all is wellStop"


def test_no_page_of_another_origin_frames_it_or_shows_what_it_has(robot: Served, contexts: Contexts) -> None:
    assert robot.get("/pictures/a.jpg").status_code == 200
    context, complaints = contexts.new()
    complaints.expect("Failed to load resource")
    page = context.new_page()
    inside = f"<iframe src='{robot.url}/'></iframe><img src='{robot.url}/pictures/a.jpg'>"
    leads = f"<a href='{robot.url}/'>the robot</a>"
    answered: dict[str, int] = {}
    page.on("response", lambda response: answered.__setitem__(response.url, response.status))
    with page_at_another_port(inside + leads) as evil:
        page.goto(evil)
        until(page, lambda: page.evaluate("document.querySelector('img').complete") and f"{robot.url}/" in answered)
        assert answered[f"{robot.url}/"] == 403
        assert page.evaluate("document.querySelector('img').naturalWidth") == 0
        page.get_by_text("the robot").click()
        expect(page.get_by_role("button", name="Stop every robot")).to_be_visible()


@contextlib.contextmanager
def page_at_another_port(body: str) -> Iterator[str]:
    """The address of a page of this machine: what is of another one, browsers keep from here by themselves."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.timeout(180)
def test_the_page_goes_on_whatever_a_robot_sends(robot: Served, contexts: Contexts) -> None:
    context, complaints = contexts.new()
    page = context.new_page()
    page.add_init_script(OFTEN)
    page.goto(robot.url)
    _sees(page, robot)
    for name, send in _attacks().items():
        for _ in range(3):
            _publish(robot, send())
            page.wait_for_timeout(30)  # each is drawn by itself: of several at once only the newest is
        _sees(page, robot)
        assert page.evaluate("document.querySelectorAll('.panel').length") == 9, name
    robot.post("/calls", {"skill": "talk", "arguments": {"about": EVIL}, "caller": "test"})
    expect(page.locator(".timeline")).to_contain_text("talk", ignore_case=True)
    until(page, lambda: "talk" not in [call["skill"] for call in robot.get("/calls?state=open").json()])
    page.keyboard.press("Escape")
    text = page.evaluate("document.body.innerText + [...document.querySelectorAll('*')].map((each) => "
                         "(each.title || '') + (each.ariaLabel || '')).join('')")  # fmt: skip
    assert r"\u202etfel" in text
    assert not page.evaluate("(text) => new RegExp(text[1]).test(text[0])", [text, UNSEEN])
    page.get_by_role("button", name="Stop every robot").click()
    expect(page.get_by_role("alert", name="Stopped")).to_be_visible()
    robot.post("/robots/release", {"robot": ""})
    assert complaints.made == []


def _sees(page: Page, robot: Served) -> None:
    """A camera whose picture has a size that it did not have before, and a robot that is where it was not."""
    size, x = next(_SIZES), next(_SIZES) / 10

    def shows() -> bool:
        _publish(robot, [("/odom", _odometry(x)), ("/color_image", _picture(size)), ("/detections", _seen("person"))])
        words, facts = page.evaluate(_SHOWN)
        return f"x {x:.1f} m" in words and len(facts) == 1 and f"{size} \u00d7 8" in facts[0]

    until(page, shows)


_SHOWN = """[document.querySelector(".floor canvas")?.ariaLabel ?? "",
    [...document.querySelectorAll(".lens .size")].map(({ textContent }) => textContent)]"""
_SIZES = itertools.cycle(range(16, 90))


def _publish(robot: Served, messages: list[tuple[str, Message]]) -> None:
    async def publish() -> None:
        for topic, message in messages:
            robot.scene.inner.publish(channel_name(topic, type(message)), encode(message))

    robot.run(publish())


def _odometry(x: float) -> Message:
    return sensor_messages.odometry(clock.utime(), PlanarPose(x, 0.0, 0.0), Velocity(0.0, 0.0, 0.0))


def _picture(width: int) -> Image:
    return image_from_array(np.full((8, width, 3), 120, np.uint8), "jpeg", header("camera_optical", clock.utime()))


def _bomb(width: int, height: int) -> Image:
    """A small file that says that it is a large picture."""
    made = _picture(16)
    data = bytearray(made.data)
    at = 2
    while data[at + 1] not in (0xC0, 0xC2):
        at += 2 + int(struct.unpack_from(">H", data, at + 2)[0])
    struct.pack_into(">HH", data, at + 5, height, width)
    made.data = bytes(data)
    return made


def _seen(*labels: str) -> Message:
    when = header("base_link", clock.utime())
    place = Point(x=1.0, y=0.5, z=1.0)
    found = [
        detection(label, id=f"{number}\u202e", at=(10.0, 4.0), size=(8.0, 6.0), place=place, header=when)
        for number, label in enumerate(labels)
    ]
    return Detection2DArray(header=when, detections=found)


def _scan(rays: int, length: float) -> Message:
    return LaserScan(
        header=header("base_link", clock.utime()), angle_increment=6.28 / rays, range_max=1e30, ranges=[length] * rays
    )


def _grid(width: int, height: int, resolution: float = 0.05, x: float = 0.0) -> Message:
    origin = Pose(position=Point(x=x), orientation=Quaternion(w=1.0))
    info = MapMetaData(width=width, height=height, resolution=resolution, origin=origin)
    return OccupancyGrid(header=header("odom", clock.utime()), info=info, data=bytes([99]) * abs(width * height))


def _path(x: float) -> Message:
    where = PoseStamped(pose=Pose(position=Point(x=x), orientation=Quaternion(w=1.0)))
    return Path(header=header("odom", clock.utime()), poses=[where] * 1000)


def _attacks() -> dict[str, Callable[[], list[tuple[str, Message]]]]:
    old = Header(frame_id="\u202e" * 50)
    old.stamp.sec = -(2**31)
    nan, inf = float("nan"), float("inf")
    junk = Image(header=old, encoding="jpeg", width=5, height=5, data=b"\xff\xd8junk")
    unknown = Image(header=old, encoding="<svg onload=alert(1)>", data=b"1")
    sizes = ((16_000, 16_000), (65_535, 65_535), (65_535, 1))
    return {
        "a label of 200 kB": lambda: [("/detections", _seen("x" * 200_000))],
        "labels with markup": lambda: [("/detections", _seen(*[EVIL] * 40))],
        "JPEGs that claim to be huge": lambda: [("/color_image", _bomb(*size)) for size in sizes],
        "no JPEG": lambda: [("/color_image", junk)],
        "no encoding": lambda: [("/color_image", unknown)],
        "a scan of a million points": lambda: [("/scan", _scan(1_000_000, 2.0))],
        "a scan far beyond": lambda: [("/scan", _scan(360, 1e9)), ("/scan", _scan(1, inf)), ("/scan", _scan(9, nan))],
        "poses that nobody has": lambda: [("/odom", _odometry(x)) for x in (1e17, -1e308, nan)],
        "maps of odd sizes": lambda: [("/map", _grid(*size)) for size in ((1, 70_000), (70_000, 1), (-20, -20))],
        "maps of no place": lambda: [("/map", _grid(20, 20, *at)) for at in ((nan,), (1e30,), (0.05, 1e308))],
        "ways to nowhere": lambda: [("/plan", _path(x)) for x in (nan, 1e308)],
    }
