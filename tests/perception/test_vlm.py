"""A vision model behind a scripted server."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simplejpeg

from dimos_streams import clock
from dimos_streams.errors import UserError
from dimos_streams.perception.backends.vlm import VlmDetector, parse_reply
from dimos_streams.perception.config import VlmSettings
from dimos_streams.perception.detector import DetectorError, Frame
from dimos_streams.perception.geometry import Box
from tests.client.event_server import Peer, event_server
from tests.perception.chat_server import ChatServer, chat_server
from tests.perception.test_geometry import camera

RED = "person in red"
FOUND = {"description": RED, "label": "a man in a crimson shirt", "score": 0.9, "box": [100, 250, 200, 750]}


def frame() -> Frame:
    rgb = np.zeros((240, 320, 3), dtype=np.uint8)
    rgb[:, 160:] = (250, 10, 10)
    return Frame(utime=1, camera=camera(), rgb=rgb, depth=np.full((120, 160), 2.0, dtype=np.float32))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


@pytest.fixture
def settings(server: ChatServer) -> VlmSettings:
    return VlmSettings(base_url=server.url, model="eyes-1", api_key_env="EYES_KEY", timeout_s=5.0)


@pytest.fixture
def detector(settings: VlmSettings) -> Iterator[VlmDetector]:
    made = VlmDetector(settings)
    yield made
    made.close()
    made.close()


def test_the_request(server: ChatServer, detector: VlmDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYES_KEY", "secret-1")
    server.finds()
    assert detector.detect(frame(), [RED, 'a "tall" dog']) == []
    ((path, headers, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret-1"
    assert body["model"] == "eyes-1"
    text, image = body["messages"][0]["content"]
    assert json.dumps([RED, 'a "tall" dog']) in text["text"]
    kind, _, data = image["image_url"]["url"].partition(",")
    assert kind == "data:image/jpeg;base64"
    picture = simplejpeg.decode_jpeg(base64.b64decode(data), colorspace="RGB")
    assert picture.shape == (240, 320, 3)
    red, green, _ = picture[100, 300]
    assert red > 200 > 60 > green


def test_no_key_is_sent_without_one(
    server: ChatServer, detector: VlmDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EYES_KEY", raising=False)
    server.finds()
    detector.detect(frame(), [RED])
    assert "Authorization" not in server.requests[0][1]


def test_boxes_become_detections(server: ChatServer, detector: VlmDetector) -> None:
    server.finds(FOUND, FOUND | {"description": "nobody asked for this"})
    (found,) = detector.detect(frame(), [RED])
    assert found.box == Box(32.0, 60.0, 64.0, 180.0)
    assert (found.label, found.score) == (RED, 0.9)
    assert found.further_labels == (("a man in a crimson shirt", 0.9),)
    assert found.point is not None
    assert found.point[0] == pytest.approx(2.1)


def test_boxes_in_pixels_are_clipped(server: ChatServer, settings: VlmSettings) -> None:
    detector = VlmDetector(replace(settings, coordinates="pixels"))
    server.finds(FOUND | {"box": [300.5, 10, 400, 500]})
    (found,) = detector.detect(frame(), [RED])
    detector.close()
    assert found.box == Box(300.5, 10.0, 320.0, 240.0)
    assert "320 wide and 240 high" in server.requests[0][2]["messages"][0]["content"][0]["text"]


def test_nothing_wanted_costs_nothing(server: ChatServer, detector: VlmDetector) -> None:
    assert detector.detect(frame(), []) == []
    assert server.requests == []


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}```", "Here you are:\n```JSON\n{}\n```\nDone.", "{}"])
def test_code_fences_are_tolerated(fence: str) -> None:
    text = fence.replace("{}", json.dumps({"detections": [FOUND]}))
    assert [found.description for found in parse_reply(text).detections] == [RED]


@pytest.mark.parametrize(
    "detection",
    [
        FOUND | {"box": [1, 2, 3]},
        FOUND | {"box": [200, 250, 100, 750]},
        FOUND | {"box": [1, 2, "3", 4]},
        FOUND | {"box": [1, 2, float("nan"), 4]},
        FOUND | {"box": [1, 2, float("inf"), 4]},
        FOUND | {"score": 1.5},
        FOUND | {"score": float("nan")},
        FOUND | {"description": None},
        "person",
    ],
)
def test_other_shapes_are_refused(detection: Any) -> None:
    with pytest.raises(DetectorError, match="the model answered"):
        parse_reply(json.dumps({"detections": [detection]}))


def test_half_a_character_in_a_label_is_repaired() -> None:
    found = {"description": RED, "label": "a \ud83d", "score": 0.5, "box": [0, 0, 1, 1]}
    (detection,) = parse_reply(json.dumps({"detections": [found]})).detections
    assert detection.label == "a \ufffd"


@pytest.mark.parametrize("answer", [(500, "overloaded"), (200, "<html>"), (200, '{"choices": []}'), (302, "")])
def test_a_failing_server_is_an_error_of_the_frame(
    server: ChatServer, detector: VlmDetector, answer: tuple[int, str]
) -> None:
    server.script.append(answer)
    server.finds(FOUND)
    with pytest.raises(DetectorError, match=r"127\.0\.0\.1"):
        detector.detect(frame(), [RED])
    assert len(detector.detect(frame(), [RED])) == 1


def test_an_answer_that_is_packed_is_not_read(server: ChatServer, detector: VlmDetector) -> None:
    server.headers["Content-Encoding"] = "zstd"
    server.finds(FOUND)
    with pytest.raises(DetectorError, match="answers with the encoding 'zstd'"):
        detector.detect(frame(), [RED])


def test_a_redirection_is_not_followed_and_says_where_it_leads(server: ChatServer, detector: VlmDetector) -> None:
    server.headers["Location"] = "https://two/v1/chat/completions"
    server.script.append((307, ""))
    with pytest.raises(DetectorError, match=r"points to .* set vlm\.base_url to 'https://two/v1'"):
        detector.detect(frame(), [RED])


def test_the_body_of_a_redirection_is_not_read(settings: VlmSettings) -> None:
    def play(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 9\r\n\r\nbegun")
        peer.hang_up_noticed()

    with event_server(play) as server:
        detector = VlmDetector(replace(settings, base_url=server.url, timeout_s=3.0))
        with contextlib.closing(detector), pytest.raises(DetectorError, match="points to"):
            detector.detect(frame(), [RED])


def test_prose_is_an_error_that_quotes_it(server: ChatServer, detector: VlmDetector) -> None:
    server.says("I see a person in red on the left.")
    with pytest.raises(DetectorError, match="on the left"):
        detector.detect(frame(), [RED])


def test_silence_ends_with_the_timeout(server: ChatServer, settings: VlmSettings) -> None:
    detector = VlmDetector(replace(settings, timeout_s=0.2))
    server.script.append(None)
    before = clock.monotonic()
    with pytest.raises(DetectorError, match="no answer"):
        detector.detect(frame(), [RED])
    assert clock.monotonic() - before < 2.0
    detector.close()


def test_closing_ends_a_request_under_way(server: ChatServer, settings: VlmSettings) -> None:
    detector = VlmDetector(replace(settings, timeout_s=30.0))
    server.script.append(None)
    errors: list[DetectorError] = []

    def look() -> None:
        try:
            detector.detect(frame(), [RED])
        except DetectorError as error:
            errors.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    assert server.asked.wait(10.0)
    before = clock.monotonic()
    detector.close()
    thread.join(10.0)
    assert len(errors) == 1
    assert clock.monotonic() - before < 2.0
    with pytest.raises(DetectorError, match="closed"):
        detector.detect(frame(), [RED])


def test_a_server_of_the_private_network_is_asked_without_the_environments_proxy(
    server: ChatServer, detector: VlmDetector, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    """The proxy would read the key, and see the pictures."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port}")
    server.finds()
    assert detector.detect(frame(), [RED]) == []


def test_nobody_listens() -> None:
    detector = VlmDetector(VlmSettings(base_url="http://127.0.0.1:9/v1", model="eyes-1"))
    with pytest.raises(DetectorError, match=r"127\.0\.0\.1:9"):
        detector.detect(frame(), [RED])
    detector.close()


def test_a_model_must_be_named() -> None:
    with pytest.raises(UserError, match=r"vlm\.model"):
        VlmDetector(VlmSettings())


def test_a_server_that_sends_the_key_back_is_redacted(
    server: ChatServer, detector: VlmDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYES_KEY", "sk-eyes/planted")
    server.finds({**FOUND, "label": "Bearer sk-eyes/planted"})
    (found,) = detector.detect(frame(), [RED])
    assert found.further_labels == (("Bearer [redacted]", 0.9),)
    server.script.append((401, "x" * 190 + "sk-eyes/planted"))
    with pytest.raises(DetectorError, match="401") as raised:
        detector.detect(frame(), [RED])
    assert "sk-eyes" not in str(raised.value)


def test_a_key_that_no_header_can_carry_is_refused(settings: VlmSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYES_KEY", "sk-eyes/planted\n")
    with pytest.raises(UserError, match="EYES_KEY ends with a line end") as raised:
        VlmDetector(settings)
    assert "sk-eyes" not in str(raised.value)


def test_a_password_in_the_url_is_not_shown(settings: VlmSettings, free_port: int) -> None:
    url = f"http://eve:pa55word@127.0.0.1:{free_port}/v1"
    with pytest.raises(DetectorError, match=f"no answer from 'http://127.0.0.1:{free_port}") as raised:
        VlmDetector(replace(settings, base_url=url)).detect(frame(), [RED])
    assert "pa55word" not in str(raised.value)
