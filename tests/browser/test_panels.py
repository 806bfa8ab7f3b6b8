"""Camera, map and plots in a page, drawn from frames of a robot that is made up."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.script_modules import ScriptModules
from tests.browser.waiting import OFTEN, until

pytestmark = pytest.mark.feature("I1")

_MOUNT = """async (module, { panel, width, height, topics, state }) => {
    const { h, render } = await import("preact");
    const place = Object.assign(document.createElement("main"), { id: "place" });
    Object.assign(place.style, { display: "grid", width: `${width}px`, height: `${height}px`, padding: 0 });
    document.body.append(place);
    const takers = {};
    const asked = [];
    const live = {
        topics, rates: { "/scan": 10 }, errors: {},
        onTopics: (listener) => (listener(topics), () => {}),
        watch: (topic, take) => ((takers[topic] ??= new Set()).add(take), () => takers[topic].delete(take)),
    };
    const run = { state, trails: new Map(), calls: new Map() };
    window.at = 1_000_000_000;
    const ask = async (command) => {
        asked.push(command);
        if (command.command === "cancel") run.state = { ...run.state, leases: {} };
        return { type: "reply" };
    };
    const session = {
        get state() { return run.state; },
        run, live, connected: true, readOnly: false, robot: "", ask, order: async () => ({}),
        now: () => window.at, select: () => {}, selected: null,
    };
    const show = (more) => render(more && h(module[panel], { session: Object.assign(session, more) }), place);
    const send = (given, payload = null) => {
        const header = { utime: window.at, stamp: window.at, number: 1, dropped: 0, robot: "", type: "", ...given };
        return Promise.all([...(takers[header.topic] ?? [])].map((take) => take(header, payload)));
    };
    const watched = () => Object.keys(takers).filter((topic) => takers[topic].size);
    window.scene = { show, send, takers, asked, watched };
    show({});
    await new Promise((done) => setTimeout(done, 50));
}"""
_PIXELS = """(points) => {
    const canvas = document.querySelector("canvas");
    const sharp = canvas.width / canvas.clientWidth;
    const context = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const pixel = (x, y) => context.getImageData(Math.round(x * sharp), Math.round(y * sharp), 1, 1).data;
    return points.map(([x, y]) => [...pixel(x, y)].slice(0, 3));
}"""
_DETECTIONS = {
    "header": {"frame_id": "base_link"},
    "detections": [
        {
            "id": "7",
            "bbox": {"center": {"position": {"x": 80, "y": 120}}, "size_x": 60, "size_y": 160},
            "results": [
                {
                    "hypothesis": {"class_id": "person in red", "score": 0.9},
                    "pose": {"pose": {"position": {"x": 2.0, "y": 0.0, "z": 0.0}}},
                }
            ],
        }
    ],
}
_KITCHEN = [[1, -3], [3, -3], [3, -1], [1, -1]]
_FOLLOWS = {
    "call_id": "c1",
    "skill": "follow_person",
    "module": "follow",
    "text": "following ann",
    "arguments": {"description": "ann"},
    "progress": {"track": "7", "distance_m": 2.0, "speed": 0.5},
    "requested_utime": 1,
}


def _state(**given: Any) -> dict[str, Any]:
    return {
        "robots": {"": {"x": 0, "y": 0, "yaw": 0, "frame_id": "odom", "battery": 0.5}},
        "modules": [{"name": "robot"}, {"name": "follow"}],
        "skills": [
            {"name": "go_to", "module": "drive", "available": True, "audience": "everyone", "agent": False},
            {"name": "say", "module": "agent", "available": True, "audience": "operator", "agent": True},
        ],
        "agents": {"agent": {"state": "idle", "mode": "running", "disabled_skills": [], "withheld_skills": []}},
        "calls": [_FOLLOWS],
        "leases": {"base": "c1"},
        "stopped": {"stops": []},
        "scene": {"": {"zones": [{"name": "kitchen", "polygon": _KITCHEN, "restricted": True}]}},
        **given,
    }


def _topics(**kinds: str) -> list[dict[str, Any]]:
    return [{"topic": f"/{name}", "kind": kind, "robot": "", "type": "", "hz": None} for name, kind in kinds.items()]


def _mounted(modules: ScriptModules, path: str, panel: str, topics: list[dict[str, Any]], **state: Any) -> None:
    modules.page.evaluate(f"() => {OFTEN}")
    given = {"panel": panel, "width": 400, "height": 341, "topics": topics, "state": _state(**state)}
    modules(path, _MOUNT, given)


def test_the_camera_shows_who_is_followed_and_how_old_the_picture_is(script_modules: ScriptModules) -> None:
    _mounted(
        script_modules,
        "camera/camera.js",
        "CameraPanel",
        _topics(color_image="picture", detections="detections", depth_image="picture"),
    )
    page = script_modules.page
    page.evaluate(
        """async (message) => {
            const source = new OffscreenCanvas(320, 240);
            const context = source.getContext("2d");
            context.fillStyle = "#008000";
            context.fillRect(0, 0, 320, 240);
            const jpeg = await (await source.convertToBlob({ type: "image/jpeg" })).arrayBuffer();
            await scene.send({ topic: "/detections", kind: "detections", message });
            // Done when it is drawn.
            await scene.send({ topic: "/color_image", kind: "picture", encoding: "jpeg" }, jpeg);
        }""",
        _DETECTIONS,
    )
    assert page.evaluate("scene.watched()") == ["/color_image", "/detections"], "depth is there to be chosen"
    box = page.locator("canvas").bounding_box()
    assert box is not None
    scale = min(box["width"] / 320, box["height"] / 240)
    left, middle = box["width"] / 2 - 160 * scale, box["height"] / 2
    free, edge = page.evaluate(_PIXELS, [[left + 250 * scale, middle], [left + 50 * scale, middle]])
    assert free[1] > 100 > free[0]
    assert min(edge[:2]) > 150 > edge[2], "a yellow frame"
    spoken = "Camera /color_image. In sight: Following: person in red · 2.0 m · #7 · 90 %."
    page.get_by_role("img", name=spoken, exact=True).wait_for()
    page.evaluate("window.at += 5e6")
    page.get_by_text("No picture for 5 s", exact=True).wait_for()
    page.evaluate(
        "async () => scene.send({ topic: '/color_image', kind: 'picture', encoding: 'jpeg' }, new ArrayBuffer(9))"
    )
    page.get_by_text("can't be shown").first.wait_for()
    page.evaluate("scene.show(null)")
    until(page, lambda: page.evaluate("scene.watched()") == [])


def test_a_click_on_the_map_asks_and_sends_the_robot_by_its_agent(script_modules: ScriptModules) -> None:
    _mounted(
        script_modules,
        "map/map.js",
        "MapPanel",
        _topics(odom="odometry", scan="scan", detections="detections", tf="frames", ground_truth="frames"),
        robots={},
    )
    page = script_modules.page
    page.evaluate(
        """async (message) => {
            const pose = { position: { x: 0, y: 0, z: 0 }, orientation: { x: 0, y: 0, z: 0, w: 1 } };
            const odometry = { header: { frame_id: "odom" }, child_frame_id: "base_link", pose: { pose } };
            const look = () => [Boolean(document.querySelector(".nothing").textContent === ""),
                document.querySelector(".nothing").textContent === "No robot has said yet where it is."];
            window.seen = [look()];
            const angles = { angle_min: 0, angle_increment: Math.PI / 90 };
            const scan = { ...angles, range_min: 0.1, range_max: 10, frame_id: "base_link" };
            for (let i = 0; i < 12; i += 1) {
                await scene.send({ topic: "/odom", kind: "odometry", message: odometry });
                if (i === 0) window.seen.push(look());  // in the frame in which the robot is drawn
                await scene.send({ topic: "/scan", kind: "scan", ...scan }, new Float32Array(180).fill(3).buffer);
            }
            await scene.send({ topic: "/detections", kind: "detections", message });
        }""",
        _DETECTIONS,
    )
    assert page.evaluate("scene.watched()") == ["/odom", "/scan", "/detections", "/tf"], "not what is true"
    assert page.evaluate("window.seen") == [[False, True], [True, False]], "words and robot are never seen together"
    page.get_by_role("listitem").filter(has_text="person in red, who is followed, is at x 2.0 m, y 0.0 m.").wait_for(
        state="attached"
    )
    box = page.locator("canvas").bounding_box()
    assert box is not None
    x, y = box["width"] / 2, box["height"] / 2
    metre = (min(box["width"], box["height"]) - 48) / 6.1

    def drawn() -> bool:
        """The first robot is blue, who wears red is red, and scans have shown what is free."""
        robot, person, floor, beyond = page.evaluate(
            _PIXELS, [[x, y + 7], [x + 2 * metre + 5, y], [x - metre, y], [2, 2]]
        )
        return bool(robot[2] > 150 > robot[0] and person[0] > 150 > person[1] and min(floor) > 240 > min(beyond))

    until(page, drawn)  # words may be there a frame before the picture
    page.mouse.click(box["x"] + x + 2 * metre, box["y"] + y + 2 * metre)
    dialog = page.get_by_role("dialog")
    assert "It lies in the restricted zone “kitchen”" in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")  # a click before would be one beside it
    page.mouse.click(box["x"] + x, box["y"] + y - metre)
    dialog.get_by_role("button", name="End “Follow person” and go here").click()
    until(page, lambda: page.evaluate("scene.asked.length") == 2)
    cancel, say = page.evaluate("scene.asked")
    assert (cancel["command"], cancel["call_id"]) == ("cancel", "c1")
    assert (say["command"], say["agent"]) == ("say", "agent")
    assert say["text"].startswith("go to (")
    page.locator(".floor").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")
    page.evaluate("scene.show({ readOnly: true })")
    page.mouse.click(box["x"] + 50, box["y"] + 50)
    assert dialog.count() == 0, "nobody goes anywhere in a recording"


_SCALE = """async () => {
    const [words, ends] = [[], []];
    const { fillText, lineTo } = CanvasRenderingContext2D.prototype;
    Object.assign(CanvasRenderingContext2D.prototype, {
        fillText(text, x, y) { words.push([text, x, y]); fillText.call(this, text, x, y); },
        lineTo(x, y) { ends.push([x, y]); lineTo.call(this, x, y); },
    });
    await scene.send({ topic: "/odom", kind: "odometry", message: window.odometry });
    Object.assign(CanvasRenderingContext2D.prototype, { fillText, lineTo });
    const bottom = document.querySelector("canvas").clientHeight - 12.5;
    const [said] = words.filter(([, , y]) => y === bottom - 9);
    const metres = parseFloat(said[0]) / (said[0].endsWith(" cm") ? 100 : 1);
    const xs = ends.filter(([, y]) => y === bottom).map(([x]) => x);
    return [metres, Math.max(...xs) - Math.min(...xs)];
}"""


def test_the_scale_of_the_map_is_as_long_as_it_says_and_zoom_is_what_the_buttons_say(
    script_modules: ScriptModules,
) -> None:
    _mounted(script_modules, "map/map.js", "MapPanel", _topics(odom="odometry"), robots={})
    page = script_modules.page
    page.evaluate(
        """() => {
            const pose = { position: { x: 0, y: 0, z: 0 }, orientation: { x: 0, y: 0, z: 0, w: 1 } };
            window.odometry = { header: { frame_id: "odom" }, child_frame_id: "base_link", pose: { pose } };
            return scene.send({ topic: "/odom", kind: "odometry", message: window.odometry });
        }"""
    )
    box = page.locator("canvas").bounding_box()
    assert box is not None

    def metres_at(x: float) -> float:
        page.mouse.move(box["x"] + x, box["y"] + 100)
        return float(page.locator(".where").inner_text().split()[1].replace("\u2212", "-"))

    def pixels_of_a_metre() -> float:
        """As the words under the mouse say, and the scale."""
        by_mouse = 300 / (metres_at(350) - metres_at(50))
        metres, long = page.evaluate(_SCALE)
        assert long / metres == pytest.approx(by_mouse, rel=0.02)
        return by_mouse

    first = pixels_of_a_metre()
    page.get_by_role("button", name="Zoom in").click()
    assert pixels_of_a_metre() == pytest.approx(1.4 * first, rel=0.02)
    for _ in range(2):
        page.get_by_role("button", name="Zoom out").click()
    assert pixels_of_a_metre() == pytest.approx(first / 1.4, rel=0.02)


def test_the_newest_calls_numbers_are_drawn(script_modules: ScriptModules) -> None:
    _mounted(script_modules, "plots/plots.js", "PlotsPanel", _topics(scan="scan"))
    page = script_modules.page
    page.evaluate("window.ticking = setInterval(() => { window.at += 250_000; }, 50)")
    page.get_by_role("cell", name="2.00 m", exact=True).wait_for(state="attached")
    assert page.locator("figcaption > b").all_inner_texts() == ["distance", "speed", "battery"]
    assert page.locator(".plot canvas").count() == 3
    page.get_by_text("Series: automatic").click()
    page.get_by_role("checkbox", name="/scan").check()
    page.get_by_text("Series: 4 chosen").wait_for()
    page.locator("figcaption").filter(has_text="rates of topics").wait_for()
    page.evaluate("clearInterval(window.ticking)")


_HEADER = """async (module, { robots }) => {
    const { h, render } = await import("preact");
    const place = document.createElement("main");
    document.body.append(place);
    window.ordered = [];
    const order = async (path, body) => window.ordered.push([path, body.robot]);
    const batteries = robots.map((name) => [name, { battery: null }]);
    const state = { robots: Object.fromEntries(batteries), agents: {}, skills: [], modules: [], watchers: 1 };
    state.stopped = { stops: [], held: [], not_held: [] };
    const choose = (robot) => (window.chosen = robot);
    const session = { monitor: { status: "live" }, state, order, robot: "", choose, shows: () => true,
        now: () => 0, readOnly: false };
    render(h(module.Header, { session }), place);
}"""


def test_one_of_several_robots_is_stopped_alone(script_modules: ScriptModules) -> None:
    script_modules("header.js", _HEADER, {"robots": ["robot1", "robot2"]})
    page = script_modules.page
    page.get_by_role("button", name="Stop robot2").click()
    page.get_by_role("button", name="Stop every robot").click()
    page.get_by_role("button", name="robot1", exact=True).click()
    assert page.evaluate("window.ordered") == [["robots/stop", "robot2"], ["robots/stop", ""]]
    assert page.evaluate("window.chosen") == "robot1"


_CALLS = """async (module, robot) => {
    const { h, render } = await import("preact");
    const place = document.body.appendChild(document.createElement("main"));
    window.ordered = [];
    const order = async (path, body) => window.ordered.push([path, body.robot]);
    const call = { call_id: "1", skill: "turn", module: "robot1/drive", state: "open", text: "", arguments: {} };
    const state = { agents: {}, calls: [call], leases: {}, not_ending: [] };
    const session = { state, order, robot, connected: true, readOnly: false, shows: () => true, now: () => 0 };
    render(h(module.CallsPanel, { session }), place);
}"""


@pytest.mark.parametrize("robot", ["robot1", ""])
def test_the_calls_of_the_robot_that_is_shown_are_cancelled(script_modules: ScriptModules, robot: str) -> None:
    script_modules("run/calls.js", _CALLS, robot)
    script_modules.page.get_by_role("button", name="Cancel all").click()
    assert script_modules.page.evaluate("window.ordered") == [["calls/cancel", robot]]


_MISSING = """async (module, { readOnly, status }) => {
    const { h, render } = await import("preact");
    const place = document.body.appendChild(document.createElement("main"));
    const problem = JSON.stringify({ detail: "GET /pictures/a.jpg: whatever its server says" });
    const session = { readOnly, monitor: { get: async () => new Response(problem, { status }) } };
    render(h(module.Picture, { name: "a.jpg", label: "a", session }), place);
}"""


@pytest.mark.parametrize(
    ("read_only", "status", "said"),
    [
        (True, 404, "This picture is not in the recording."),
        (False, 404, "The picture is not there any more."),
        (False, 500, "The picture can\u2019t be shown: GET /pictures/a.jpg: whatever its server says"),
    ],
)
def test_a_picture_that_is_missing_is_missed_in_words_for_people(
    script_modules: ScriptModules, read_only: bool, status: int, said: str
) -> None:
    script_modules("conversation/picture.js", _MISSING, {"readOnly": read_only, "status": status})
    expect(script_modules.page.locator(".picture")).to_have_text(said)


_CANCELS = """async (module, calls) => {
    const session = new module.Session({ readOnly: false });
    session.monitor.ask = async ({ command }) => ({ type: "reply", command, text: "" });
    const texts = () => session.notices.map(({ text }) => text);
    const shown = { agents: {}, robots: {}, skills: [], calls };
    session.take({ type: "snapshot", utime: 1, snapshot: shown });
    for (const { call_id } of calls) await session.ask({ command: "cancel", call_id });
    await session.ask({ command: "cancel", call_id: "has ended" });
    const said = [texts()];
    for (const left of [1, 0]) {
        session.take({ type: "change", utime: 2, change: { calls: calls.slice(0, left) } });
        said.push(texts());
    }
    return said;
}"""


def test_that_a_call_is_cancelled_is_said_by_its_name_until_it_has_ended(script_modules: ScriptModules) -> None:
    call: dict[str, Any] = {"module": "r/drive", "caller": "r/agent", "parent": "", "resources": [], "progress": {}}
    call |= {"arguments": {"text": "come"}, "requested_utime": 1, "state": "open", "text": ""}
    calls = [call | {"call_id": each, "skill": f"r_{each}"} for each in ("follow_person", "say")]
    first, second = "Cancelling follow person …", "Cancelling “come” …"
    assert script_modules("session.js", _CANCELS, calls) == [[first, second], [first], []]


CONVERSATION = """async (module, { snapshots, talks }) => {
    const { h, render } = await import("preact");
    const place = document.createElement("main");
    document.body.append(place);
    const state = { agents: snapshots, calls: [], skills: [] };
    const [calls, drafts, now] = [new Map(), new Map(), () => 9e6];
    const run = { state, talks: new Map(Object.entries(talks)), calls, drafts, callsChanged: 0 };
    const agents = Object.entries(snapshots).map(([name, agent]) => ({ name, agent }));
    const ask = async () => ({});
    const session = { agents: () => agents, state, run, connected: true, readOnly: false, ask, now, selected: null };
    render(h(module.ConversationPanel, { session }), place);
}"""


IDLE: dict[str, Any] = {
    "state": "idle",
    "mode": "running",
    "hold": None,
    "retry": None,
    "plan": None,
    "iteration": 0,
    **{name: [] for name in ("approvals", "waiting_calls", "missions", "calls", "warnings", "conversation")},
    "usage": {"requests": 0, "input_tokens": 0, "output_tokens": 0, "cost": None},
    "queue": {"waiting": 0},
    "model": "offline",
    "on_console_loss": "continue",
}
"""The snapshot of an agent that does nothing, without its name."""


def test_who_talks_to_one_agent_sees_what_the_other_says_and_is_there_with_one_click(
    script_modules: ScriptModules,
) -> None:
    said = {"number": 1, "utime": 4_000_000, "skill": "", "call_id": "", "is_error": False, "missions": []}
    names = ("robot1/agent", "robot2/agent")
    talks = {name: [{**said, "role": "assistant", "text": f"This is {name}."}] for name in names}
    snapshots = {name: {**IDLE, "agent": name} for name in names}
    asks = [
        {
            "id": "a",
            "skill": "robot2_turn",
            "module": "robot2/drive",
            "arguments": {},
            "reason": "",
            "hidden_characters": 0,
        }
    ]
    snapshots[names[1]]["approvals"] = [{**asks[0], "created_utime": 4_000_000, "expires_utime": None}]
    given = {"snapshots": snapshots, "talks": talks}
    script_modules("conversation/conversation.js", CONVERSATION, given)
    page = script_modules.page
    other = page.get_by_role("button", name="robot2/agent")
    assert "waits for approval" in other.inner_text()
    assert "This is robot2/agent." in other.inner_text()
    assert page.get_by_role("form", name="Approval of").count() == 0
    other.click()
    page.get_by_role("form", name="Approval of robot2_turn").wait_for()
    page.get_by_text("Turn begins when you approve it, below.").wait_for()
