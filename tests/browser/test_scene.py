"""What camera, map and plots make of frames, before anything of it is drawn."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dimos_streams.common.polygon import Point, crosses, inside
from dimos_streams.messages import geometry_msgs
from dimos_streams.messages.planar import planar_pose
from tests.browser.script_modules import ScriptModules

pytestmark = pytest.mark.feature("I1")


_ROOM = """(occupancy, { moved, far }) => {
    const grid = new occupancy.Occupancy();
    const scan = { angle_min: 0, angle_increment: Math.PI / 180, range_min: 0.1, range_max: 10 };
    // A square room of 4 m, and somebody who stands one metre ahead at first.
    const wall = (angle) => Math.min(2 / Math.abs(Math.cos(angle)), 2 / Math.abs(Math.sin(angle)));
    const ranges = (person) => Float32Array.from({ length: 360 }, (_, i) =>
        person && (i < 8 || i > 352) ? 1 : wall((i * Math.PI) / 180));
    const at = (x, y) => grid.at({ x, y });
    for (let i = 0; i < 3; i += 1) grid.add({ x: 0, y: 0, yaw: 0 }, scan, ranges(true));
    const before = [at(1.01, 0), at(0.5, 0), at(2.01, 1), at(1.5, 0), at(2.5, 0)].map(Math.sign);
    for (let i = 0; i < moved; i += 1) grid.add({ x: 0, y: 0, yaw: Math.PI / 2 }, scan, ranges(false));
    const after = [at(1.01, 0), at(2.01, 1), at(1.5, 0)].map(Math.sign);
    for (let x = 0; x < far; x += 2) grid.add({ x, y: 0, yaw: 0 }, scan, new Float32Array(360).fill(Infinity));
    return { before, after, tiles: grid.tiles.size, begin: Math.sign(at(-1, 0)), end: Math.sign(at(far - 2, 0)) };
}"""


def test_scans_build_a_map_that_forgets_who_went_and_has_bounds(script_modules: ScriptModules) -> None:
    made = script_modules("map/occupancy.js", _ROOM, {"moved": 30, "far": 400})
    assert made["before"] == [1, -1, 1, 0, 0], "the person, before them, the wall, behind them, behind the wall"
    assert made["after"] == [-1, 1, -1]
    assert made["tiles"] <= 160
    assert (made["begin"], made["end"]) == (0, -1), "what was seen longest ago is forgotten"


def test_the_map_says_of_zones_what_the_gates_say(script_modules: ScriptModules) -> None:
    rng = random.Random(5)

    def point() -> Point:
        return rng.uniform(-3, 3), rng.uniform(-3, 3)

    cases: list[tuple[list[Point], Point, Point]] = [
        ([point() for _ in range(rng.randint(3, 6))], point(), point()) for _ in range(300)
    ]
    judged = script_modules(
        "map/geometry.js",
        """(geometry, cases) => cases.map(([polygon, [x1, y1], [x2, y2]]) => {
            const [start, end] = [{ x: x1, y: y1 }, { x: x2, y: y2 }];
            return [geometry.inside(polygon, start), geometry.crosses(polygon, start, end)];
        })""",
        cases,
    )
    assert judged == [[inside(polygon, start), crosses(polygon, start, end)] for polygon, start, end in cases]


def test_an_orientation_that_is_none_has_no_heading(script_modules: ScriptModules) -> None:
    """The same ones as for skills, which skip such odometry."""
    orientations = [
        {"x": 0.0, "y": 0.0, "z": z, "w": w} for z, w in ((0.0, 0.0), (0.0, 1e-4), (0.0, 2.0), (0.6, 0.8))
    ]
    at = geometry_msgs.Point(x=1.0, y=2.0)
    poses = [
        planar_pose(geometry_msgs.Pose(position=at, orientation=geometry_msgs.Quaternion(**each)))
        for each in orientations
    ]
    expected = [None if pose is None else pytest.approx(pose._asdict()) for pose in poses]
    planar = "(geometry, given) => given.map((each) => geometry.planar({ x: 1, y: 2 }, each))"
    assert script_modules("map/geometry.js", planar, orientations) == expected
    assert expected[:2] == [None, None]


def _odometry(robot: str, x: float, stamp: int, yaw_z: float = 0.0) -> dict[str, Any]:
    pose = {
        "position": {"x": x, "y": 0.0, "z": 0.0},
        "orientation": {"x": 0, "y": 0, "z": yaw_z, "w": (1 - yaw_z**2) ** 0.5},
    }
    message = {"header": {"frame_id": "odom"}, "child_frame_id": "base_link", "pose": {"pose": pose}}
    return {"kind": "odometry", "type": "", "robot": robot, "utime": stamp, "stamp": stamp, "message": message}


def _frames(robot: str, x: float) -> dict[str, Any]:
    transform = {"translation": {"x": x, "y": 0, "z": 0}, "rotation": {"x": 0, "y": 0, "z": 0, "w": 1}}
    stands = {"header": {"frame_id": "world"}, "child_frame_id": "odom", "transform": transform}
    return {
        "kind": "frames",
        "type": "",
        "robot": robot,
        "utime": 0,
        "stamp": None,
        "message": {"transforms": [stands]},
    }


def _detections(robot: str, stamp: int, *seen: tuple[str, str, float, float]) -> dict[str, Any]:
    found = [
        {
            "id": track,
            "bbox": {"center": {"position": {"x": 100 * y, "y": 50}}, "size_x": 20, "size_y": 60},
            "results": [
                {
                    "hypothesis": {"class_id": label, "score": 0.9},
                    "pose": {"pose": {"position": {"x": x, "y": y, "z": 1}}},
                }
            ],
        }
        for track, label, x, y in seen
    ]
    message = {"header": {"frame_id": "base_link"}, "detections": found}
    return {"kind": "detections", "type": "", "robot": robot, "utime": stamp, "stamp": stamp, "message": message}


_MAPS = """(floor, frames) => {
    const made = new floor.Floor();
    const maps = () => made.maps.map(({ frame, robots }) => [frame, robots.map(({ name }) => name)]);
    const seen = [];
    for (const frame of frames) {
        made.take(frame, null);
        seen.push(maps());
    }
    const people = [...made.robots.values()].flatMap(({ name, people }) => [...people.values()].map(
        ({ track, x, y, isSeen }) => [name, track, Math.round(x * 100) / 100, Math.round(y * 100) / 100, isSeen]));
    const [first] = made.robots.values();
    const origin = floor.inMap(first, "odom");
    return { seen, people, origin, unknown: floor.inMap(first, "elsewhere"), trail: first.trail.length };
}"""


def test_robots_share_a_map_only_where_frames_are_known_to_be_one(script_modules: ScriptModules) -> None:
    frames = [
        _odometry("one", 1.0, 1_000_000),
        _odometry("two", 2.0, 1_000_000),
        _frames("one", 5.0),
        _frames("two", -5.0),
        # Turned by 90° to the left within 0.1 s, and who was seen halfway is placed from there.
        _odometry("one", 1.0, 1_100_000, 0.5**0.5),
        _detections("one", 1_050_000, ("7", "person", 2.0**0.5, 0.0), ("8", "box", 0.0, 0.0)),
        _detections("one", 1_900_000),
    ]
    unknown = frames[5]["message"]["detections"][1]["results"][0]["pose"]["pose"]
    unknown["position"] = {"x": None, "y": None, "z": None}
    made = script_modules("map/floor.js", _MAPS, frames)
    assert made["seen"][1] == [["odom", ["one"]], ["odom", ["two"]]], (
        "each odometry begins where its robot was switched on"
    )
    assert made["seen"][3] == [["world", ["one", "two"]]]
    assert made["people"] == [["one", "7", 2.0, 1.0, False]]
    assert (made["origin"]["x"], made["unknown"]) == (5, None)


def test_who_gets_another_track_is_the_same_person(script_modules: ScriptModules) -> None:
    frames = [
        _odometry("", 0.0, 1_000_000),
        _detections("", 1_000_000, ("1", "person in red", 2.0, 0.0), ("2", "person in blue", 2.0, 1.0)),
        _odometry("", 0.0, 2_000_000),
        _detections("", 2_000_000, ("3", "person in red", 2.5, 0.0)),
        _odometry("", 9.0, 2_100_000),
    ]
    made = script_modules("map/floor.js", _MAPS, frames[:4])
    assert made["people"] == [["", "2", 2.0, 1.0, False], ["", "3", 2.5, 0.0, True]]
    begun = script_modules("map/floor.js", _MAPS, frames)
    assert (begun["people"], begun["trail"]) == ([], 1), "a robot that is elsewhere at once has begun anew"


_PEOPLE = """async (people, { url, frames, now }) => {
    const { Floor } = await import(`${url}dashboard/map/floor.js`);
    const floor = new Floor();
    for (const frame of frames) floor.take(frame, null);
    const followed = { one: new Set(["7"]), two: new Set() };
    const robots = [...floor.robots.values()].map((robot) => ({ robot, followed: followed[robot.name] }));
    return people.peopleOn(robots, now).map(({ person, robot, isFollowed }) => [robot, person.label, isFollowed]);
}"""


def test_whom_two_robots_see_is_drawn_once(script_modules: ScriptModules) -> None:
    red, green = "person in red", "person in green"
    frames = [
        *(_odometry(name, 0.0, 1_000_000) for name in ("one", "two")),
        *(_frames(name, x) for name, x in (("one", 0.0), ("two", 4.0))),
        _detections("one", 1_000_000, ("7", red, 2.0, 0.0)),
        # Two metres ahead of one is two metres behind the other.
        _detections("two", 1_100_000, ("1", red, -2.2, 0.0), ("2", green, -2.0, 0.0), ("3", red, 3.0, 0.0)),
    ]
    given = {"url": script_modules.page.url, "frames": frames, "now": 1_200_000}
    drawn = script_modules("map/people.js", _PEOPLE, given)
    assert drawn == [["one", red, True], ["two", green, False], ["two", red, False]], "who is far away is another one"


def test_boxes_are_where_they_were_when_the_picture_was_taken(script_modules: ScriptModules) -> None:
    at = """(boxes, { frames, stamps }) => {
        const made = new boxes.Sightings();
        for (const frame of frames) made.add(boxes.seenIn(frame));
        const at = (stamp) => made.at(stamp, 1_200_000);
        return stamps.map((stamp) => at(stamp).map(({ left, distance }) => [Math.round(left), distance]));
    }"""
    frames = [_detections("", stamp, ("1", "person", 2.0, y)) for stamp, y in ((1_000_000, 0.0), (1_100_000, 0.1))]
    places = script_modules(
        "camera/boxes.js", at, {"frames": frames, "stamps": [1_000_000, 1_100_000, 1_150_000, 1_900_000, None]}
    )
    exact, newest, later, too_late, unstamped = places
    assert [exact[0][0], newest[0][0], later[0][0]] == [-10, 0, 5]
    assert (too_late, unstamped) == ([], newest)
    assert exact[0][1] == 2.0


def _state(**given: Any) -> dict[str, Any]:
    go = {"name": "robot1_go_to", "module": "robot1/drive", "available": True, "audience": "everyone", "agent": False}
    say = {"name": "say", "module": "robot1/agent", "available": True, "audience": "operator", "agent": True}
    agent = {"state": "idle", "mode": "running", "disabled_skills": [], "withheld_skills": []}
    zone = {"name": "kitchen", "polygon": [[1, -1], [2, -1], [2, 1], [1, 1]], "restricted": True}
    return {
        "skills": [go, say],
        "agents": {"robot1/agent": agent},
        "calls": [],
        "leases": {},
        "stopped": {"stops": []},
        "scene": {"robot1": {"zones": [zone], "frame_id": "odom"}},
        **given,
    }


def test_a_robot_is_sent_by_its_agent_or_it_is_said_why_not(script_modules: ScriptModules) -> None:
    (go, say), agents = _state()["skills"], _state()["agents"]
    forbidden = {"robot1/agent": {**agents["robot1/agent"], "disabled_skills": ["robot1_go_to"]}}
    ended = {"robot1/agent": {**agents["robot1/agent"], "state": "closed"}}
    cases: list[tuple[dict[str, Any], str | None, str]] = [
        ({}, "robot1/agent", ""),
        ({"skills": [go], "agents": {}}, None, ""),
        ({"agents": {}}, None, "robot1/agent does not answer"),  # it has, as the page was opened while it hung
        ({"agents": ended}, None, "robot1/agent does not answer"),
        ({"skills": [go, {**say, "available": False}]}, None, "robot1/agent does not answer"),
        ({"skills": []}, None, "no skill go_to"),
        ({"skills": [{**go, "available": False}]}, None, "does not run"),
        ({"agents": forbidden}, None, "may not use"),
    ]
    ways = script_modules(
        "map/go_to.js",
        '(orders, states) => states.map((state) => orders.wayTo(state, "robot1"))',
        [_state(**given) for given, _, _ in cases],
    )
    for way, (_, agent, why) in zip(ways, cases, strict=True):
        assert way["agent"] == agent
        assert why in way["why"]
        assert bool(way["why"]) == bool(why)


def test_what_speaks_against_a_place_is_said_before(script_modules: ScriptModules) -> None:
    follow = {"call_id": "c1", "skill": "follow_person", "module": "robot1/follow", "text": "following ann"}
    busy = _state(leases={"robot1/base": "c1"}, calls=[follow], stopped={"stops": [{"robot": ""}]})
    say = """(orders, { state, point }) => {
        const robot = { name: "robot1", occupancy: { at: () => 0 } };
        const way = orders.wayTo(state, "robot1");
        return orders.cautions(state, robot, { point, from: { x: 0, y: 0 } }, way).map(({ text }) => text).join("|");
    }"""
    inside_zone = script_modules("map/go_to.js", say, {"state": busy, "point": {"x": 1.5, "y": 0}})
    assert "lies in the restricted zone “kitchen”. The agent" in inside_zone
    assert "is stopped" in inside_zone
    assert "Follow person drives the robot, and is ended before: following ann" in inside_zone
    alone = _state(agents={}, skills=_state()["skills"][:1])
    behind = script_modules("map/go_to.js", say, {"state": alone, "point": {"x": 3, "y": 0}})
    assert "leads through the restricted zone “kitchen”. No agent" in behind
    beside = script_modules("map/go_to.js", say, {"state": _state(), "point": {"x": 0, "y": 2}})
    assert beside == "No scan has shown yet what is there."


def test_samples_are_as_many_as_fit(script_modules: ScriptModules) -> None:
    made = script_modules(
        "plots/samples.js",
        """(samples) => {
            const made = new samples.Samples(100);
            const ended = (i) => (i < 950 ? [["ended", i]] : []);
            for (let i = 0; i < 1000; i += 1) made.add(i, [["kept", i], ...ended(i), ["bad", NaN]]);
            const window = made.window(["kept", "ended"], 60);
            const all = {
                count: window[0].length, first: window[0][0], ended: window[2].filter((v) => v !== null).length,
                newest: [made.newest("kept"), made.newest("ended")], silence: made.silence("ended"),
                names: made.names,
            };
            for (let i = 0; i < 300; i += 1) made.add(1000 + i, [[`series ${i}`, 1]]);
            const names = made.names.length;
            made.add(5, [["again", 1]]);
            return { ...all, bound: names, back: made.window(["again"], 60) };
        }""",
    )
    assert (made["count"], made["first"], made["ended"]) == (61, 939, 11)
    assert made["newest"] == [999, None]
    assert made["silence"] == 50
    assert made["names"] == ["kept", "ended"]
    assert made["bound"] <= 64
    assert made["back"] == [[5], [1]], "time that goes back begins anew"


def test_the_newest_calls_numbers_are_plotted_first(script_modules: ScriptModules) -> None:
    calls = [
        {
            "call_id": "a",
            "skill": "move",
            "module": "r/drive",
            "requested_utime": 1,
            "progress": {"remaining_m": 1.0},
        },
        {
            "call_id": "b",
            "skill": "follow_person",
            "module": "r/follow",
            "requested_utime": 2,
            "progress": {"track": "4", "distance_m": 2.0, "bearing_deg": None, "speed": 0.5},
        },
    ]
    state = {"calls": calls, "robots": {"r": {"battery": 0.5}}}
    chosen = script_modules(
        "plots/series.js",
        """(series, state) => {
            const topics = [{ topic: "/r/scan", kind: "scan" }, { topic: "/r/hold", kind: "other" }];
            const speed = (value) => ({ kind: "odometry", robot: "r", value });
            const numbers = new Map([["/r/odom", speed(0.4)]]);
            const rates = { "/r/scan": 10, "/r/hold": 1, "/q/scan": 9 };
            const known = series.valuesNow(state, rates, numbers, "r", topics).map(({ series }) => series);
            const others = { "/r/wheels": speed(0.5), "/r/load": { ...speed(7), kind: "number" } };
            const two = new Map([...numbers, ...Object.entries(others)]);
            const ofTwo = series.valuesNow({}, {}, two, "r", []);
            const charts = (some) => series.chartsOf(known, series.defaults(some)).map((chart) =>
                chart.map(({ label }) => label));
            return {
                all: known.map(({ label, unit }) => `${label} ${unit}`.trim()),
                charts: charts(known), idle: charts(known.filter(({ utime }) => utime === 0)),
                two: ofTwo.map(({ series, value }) => [series.label, series.name, value]),
            };
        }""",
        state,
    )
    assert chosen["all"] == [
        "move remaining m",
        "follow_person distance m",
        "follow_person speed m/s",
        "r battery %",
        "r speed m/s",
        "/r/scan Hz",
        "/r/hold Hz",
    ]
    assert chosen["charts"] == [["follow_person distance"], ["follow_person speed", "r speed"], ["r battery"]]
    assert chosen["two"] == [
        ["/r/odom speed", "speed /r/odom", 0.4],
        ["/r/wheels speed", "speed /r/wheels", 0.5],
        ["/r/load", "number /r/load", 7],
    ], "two odometries of a robot are two lines"
    assert chosen["idle"] == [["r battery"], ["r speed"], ["/r/scan"]]


def test_a_point_stays_under_the_mouse_while_the_map_is_zoomed(script_modules: ScriptModules) -> None:
    made = script_modules(
        "map/view.js",
        """({ View }) => {
            const view = Object.assign(new View(), { width: 400, height: 300 });
            view.fit({ left: -2, right: 6, bottom: -1, top: 2 });
            const corners = [view.toScreen({ x: -2, y: -1 }), view.toScreen({ x: 6, y: 2 })];
            const pixel = { x: 390, y: 10 };
            const before = view.toFloor(pixel);
            view.zoom(3, pixel);
            const after = view.toFloor(pixel);
            view.pan(10, 0);
            const panned = view.toFloor({ x: 400, y: 10 });
            for (let i = 0; i < 50; i += 1) view.zoom(2);
            const apart = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
            return { corners, off: apart(after, before) + apart(panned, after), scale: view.scale };
        }""",
    )
    assert all(0 <= each["x"] <= 400 and 0 <= each["y"] <= 300 for each in made["corners"])
    assert made["off"] == pytest.approx(0, abs=1e-9)
    assert made["scale"] == 400


def test_a_camera_says_how_old_its_picture_is(script_modules: ScriptModules) -> None:
    good = {"header": {"utime": 10e6}, "fresh": 10e6, "times": [0, 100, 200], "failure": "", "seen": 10e6}
    cases: list[tuple[dict[str, Any], float, str, str]] = [
        (good, 10.5e6, "", ""),
        (good, 13e6, "No picture for 3 s", ""),
        ({**good, "fresh": 5e6}, 10e6, "No new picture for 5 s", ""),
        ({**good, "seen": 6e6}, 10e6, "", "No detections for 4 s"),
        ({**good, "header": None}, 10e6, "No picture yet", ""),
        ({**good, "failure": "no JPEG"}, 10e6, "no JPEG", ""),
    ]
    said = script_modules(
        "camera/freshness.js",
        "(made, cases) => cases.map(([kept, now]) => made.freshness(kept, now))",
        [case[:2] for case in cases],
    )
    assert [(each["problem"], each["blind"]) for each in said] == [case[2:] for case in cases]
    assert said[0]["rate"] == "10 Hz"


_PUT = """(made, { at, frames }) => {
    const robot = new made.RobotOnMap("");
    const odometry = (stamp, x) => robot.odometry({ stamp, utime: stamp, message: {
        header: { frame_id: "odom" }, child_frame_id: "base_link",
        pose: { pose: { position: { x, y: 0, z: 0 }, orientation: { x: 0, y: 0, z: 0, w: 1 } } } } });
    odometry(0, 0);
    odometry(10e6, at);
    const scan = { frame_id: "base_link", angle_min: 0, angle_increment: 1, range_min: 0.1, range_max: 10, utime: 0 };
    return frames.map((stamp) => {
        robot.scan({ ...scan, stamp }, new Float32Array([3]));
        return [...robot.hits].map(Math.round);
    });
}"""


@pytest.mark.feature("I3")
def test_a_scan_that_is_a_little_older_than_all_poses_is_on_the_map(script_modules: ScriptModules) -> None:
    """A moment of a recording that somebody has gone to has one scan and one pose, which is often the newer one."""
    put = script_modules("map/robot.js", _PUT, {"at": 5, "frames": [9.8e6]})
    assert put == [[8, 0]], "where it has been put is no way that it went"
    assert script_modules("map/robot.js", _PUT, {"at": 5, "frames": [9e6]}) == [[]], "nobody knows where it was then"
