"""Models see results shortened, and get at the rest."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import random
import re
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.context.images import Pictures, without_urls
from dimos_streams.agent.context.memo import Memo
from dimos_streams.agent.context.results import READ_RESULT, ResultPipeline, ResultStore
from dimos_streams.agent.context.settings import ResultSettings
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    ImagePart,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from dimos_streams.agent.tools.local_tools import LocalTools
from dimos_streams.agent.tools.own_tools import read_result_tool
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.event import ToolEvent


def event(**data: Any) -> ToolEvent:
    return ToolEvent(utime=0, call_id="c", seq=2, type="close", module="m", skill="s", caller="a", text="", data=data)


def test_large_results_are_shortened_and_can_be_read() -> None:
    store = ResultStore()
    pipeline = ResultPipeline(store)
    whole = "".join(f"line {number}\n" for number in range(100_000))
    seen = pipeline.shorten(whole, skill="scan")
    assert len(seen) < 8_300
    assert seen.startswith("line 0\n")
    assert seen.endswith("line 99999\n")
    assert f"{len(whole) - 8000} of {len(whole)} characters" in seen
    tools = LocalTools([read_result_tool(store)])

    def read(**arguments: Any) -> str:
        answer = asyncio.run(tools.run("read_result", arguments))
        return answer.text

    assert "reference='result-1'" in seen
    pieces, offset = [], 0
    while offset < 40_000:
        head, part = read(reference="result-1", offset=offset, length=8000).split("\n", 1)
        assert head.startswith(f"[characters {offset} to {offset + 8000} of {len(whole)}")
        pieces.append(part)
        offset += 8000
    assert "".join(pieces) == whole[:40_000]
    found = read(reference="result-1", search="LINE 54321")
    assert f"[at {whole.index('line 54321')}]" in found
    assert "line 54321\n" in found
    assert "does not occur" in read(reference="result-1", search="nowhere")
    assert "that is the end" in read(reference="result-1", offset=len(whole) - 5)
    assert "kept: result-1 to result-1" in read(reference="result-9")
    assert "length" in read(reference="result-1", length=0)


@pytest.mark.parametrize(("sought", "place"), [("gate 7", 1000), ("GATE 7", 1000), ("\u0130stasyon", 1008)])
def test_a_search_shows_the_right_place_behind_letters_that_are_longer_in_lower_case(sought: str, place: int) -> None:
    store = ResultStore()
    whole = "\u0130" * 1000 + "Gate 7, \u0130stasyon" + "\u0130" * 1000
    arguments = {"reference": store.put(whole), "search": sought}
    answer = asyncio.run(LocalTools([read_result_tool(store)]).run(READ_RESULT, arguments))
    assert answer.text.startswith(f"[at {place}]\n{whole[place - 200 : place + len(sought) + 200]}")


def test_a_single_letter_is_longer_in_lower_case() -> None:
    """Searching takes care of that one only."""
    assert [each for each in map(chr, range(sys.maxunicode + 1)) if len(each.lower()) != 1] == ["\u0130"]


def test_short_ones_and_errors_stay() -> None:
    pipeline = ResultPipeline(ResultStore())
    assert pipeline.shorten("x" * 8000, skill="s") == "x" * 8000
    assert pipeline.shorten("x" * 10**6, skill="s", is_error=True) == "x" * 10**6


def test_the_store_is_bounded_and_knows_equal_texts() -> None:
    store = ResultStore(1000)
    assert [store.put("a" * 400), store.put("b" * 400), store.put("a" * 400)] == ["result-1", "result-2", "result-1"]
    store.put("c" * 400)
    assert store.bytes == 800
    with pytest.raises(SkillError, match="result-2"):
        store.get("result-2")
    assert store.get("result-1") == "a" * 400
    assert store.get(store.put("d" * 5000)) == "d" * 5000
    assert store.bytes == 5000


def test_old_results_are_masked_and_stay_so() -> None:
    store = ResultStore()
    pipeline = ResultPipeline(store, ResultSettings(masked_after=2, max_characters=1000))
    long = "y" * 500
    shortened = pipeline.shorten("z" * 2000, skill="scan")
    messages: list[Message] = [
        SystemMessage("s" * 500),
        UserMessage("operator " * 100),
        AssistantMessage("first"),
        ToolResultMessage("1", "look", long),
        ToolResultMessage("2", "scan", shortened),
        ToolResultMessage("3", "bad", long, is_error=True),
        UserMessage(long, event(outcome="completed")),
        UserMessage(long, event(outcome="failed")),
        ToolResultMessage("4", "small", "ok"),
        AssistantMessage("second"),
        ToolResultMessage("5", "look", long),
    ]
    assert pipeline.mask(messages) == tuple(messages)
    older = [*messages, AssistantMessage("third"), AssistantMessage("fourth")]
    masked = pipeline.mask(older)
    changed = [index for index, (old, new) in enumerate(zip(older, masked, strict=True)) if old != new]
    assert changed == [3, 4, 6]
    look, scan = masked[3], masked[4]
    assert isinstance(look, ToolResultMessage)
    assert isinstance(scan, ToolResultMessage)
    assert look.text == "[old result of look, 500 characters: read_result(reference='result-2') shows it]"
    assert store.get("result-2") == long
    assert "2000 characters: read_result(reference='result-1')" in scan.text
    assert pipeline.mask(older) == masked
    assert pipeline.mask([*older, AssistantMessage("fifth")])[: len(older)][3:5] == masked[3:5]


@pytest.mark.slow
def test_a_conversation_that_grows_is_masked_as_one_that_is_seen_for_the_first_time() -> None:
    """Whatever is forgotten meanwhile, by the conversation and by the store."""
    chance = random.Random(4)
    settings = ResultSettings(masked_after=2, masked_above=10, images=1)
    url = f"data:image/png;base64,{base64.b64encode(b'png').decode()}"
    store = ResultStore(capacity_bytes=4000)
    growing = ResultPipeline(store, settings, Pictures(None))
    messages: list[Message] = []
    for number in range(300):
        text = f"{number} " * chance.choice((1, 20, 60))
        shown = event(result={"picture": url}) if chance.random() < 0.3 else event(outcome="completed")
        said: list[Message] = [AssistantMessage(text), ToolResultMessage("t", "look", text, event=shown)]
        messages.append(chance.choice(said))
        if chance.random() < 0.02:
            del messages[: chance.randrange(len(messages))]
        fresh = ResultPipeline(ResultStore(), settings, Pictures(None)).mask(messages)
        masked = growing.mask(messages)
        assert [_without_reference(message) for message in masked] == [_without_reference(one) for one in fresh]
    assert store.forgotten > 10


def _without_reference(message: Message) -> Message:
    return replace(message, text=re.sub(r"'result-\d+'", "'result'", message.text))


def test_pictures_reach_the_messages_and_are_counted(tmp_path: Path) -> None:
    files = []
    for number in range(3):
        path = tmp_path / f"{number}.jpg"
        path.write_bytes(bytes([number]))
        files.append(str(path))
    url = f"data:image/png;base64,{base64.b64encode(b'png').decode()}"
    (tmp_path.parent / "outside.jpg").write_bytes(b"secret")
    pictures = Pictures(tmp_path)
    pipeline = ResultPipeline(ResultStore(), ResultSettings(images=2), pictures)
    messages: list[Message] = [
        ToolResultMessage("1", "observe", "a", event=event(result={"picture": files[0]})),
        ToolResultMessage("2", "observe", "b", event=event(result={"picture": files[1], "note": files[2]})),
        UserMessage("c", event(result={"images": [url]})),
        UserMessage("d", event(result={"picture": str(tmp_path.parent / "outside.jpg")})),
        UserMessage("e", event(result={"picture": "none.jpg"})),
        UserMessage("f", event(result={"picture": "data:image/png;base64,###", "text": "nothing"})),
    ]
    seen = pipeline.mask(messages)
    images = [message.images for message in seen if isinstance(message, ToolResultMessage | UserMessage)]
    assert images == [(), (ImagePart(b"\x01"),), (ImagePart(b"png", "image/png"),), (), (), ()]
    assert isinstance(seen[0], ToolResultMessage)
    assert "[1 picture not shown any more]" in seen[0].text
    assert without_urls({"a": [url, "b"]}) == {"a": ["[a picture]", "b"]}


def test_each_event_brings_the_picture_that_was_in_its_file_when_it_came(tmp_path: Path) -> None:
    """A skill may write each picture over the one before."""
    file = tmp_path / "camera.jpg"
    pipeline = ResultPipeline(ResultStore(), ResultSettings(), Pictures(tmp_path))
    messages: list[ToolResultMessage] = []
    for number in range(2):
        file.write_bytes(bytes([number]))
        seen = replace(event(result={"picture": str(file)}), call_id=f"c{number}")
        messages.append(ToolResultMessage(f"{number}", "look", "seen", event=seen))
        shown = pipeline.mask(messages)
    images = [message.images for message in shown if isinstance(message, ToolResultMessage)]
    assert images == [(ImagePart(b"\x00"),), (ImagePart(b"\x01"),)]


def test_a_link_to_a_file_of_the_run_that_is_no_picture_is_none(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b"token")
    link = tmp_path.parent / "link.jpg"
    link.symlink_to(tmp_path / "run.json")
    assert Pictures(tmp_path).load(str(link), event()) is None


def test_a_pipe_and_a_file_too_large_are_no_pictures(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")  # whoever reads it would wait for a writer
    with (tmp_path / "large.jpg").open("wb") as file:
        file.truncate(5_000_001)
    pictures = Pictures(tmp_path)
    assert [pictures.load(str(tmp_path / name), event()) for name in ("pipe.jpg", "large.jpg")] == [None, None]


def test_what_a_models_server_would_refuse_is_no_picture(tmp_path: Path) -> None:
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 30_000, 30_000)
    (tmp_path / "bomb.png").write_bytes(bomb)
    coded = base64.b64encode(bomb).decode()
    names = (str(tmp_path / "bomb.png"), f"data:image/png;base64,{coded}", "data:image/svg+xml;base64,PHN2Zy8+")
    assert [Pictures(tmp_path).load(name, event()) for name in names] == [None, None, None]


def test_a_memo_knows_the_same_objects_and_forgets_the_oldest() -> None:
    numbers = itertools.count(1)
    memo: Memo[list[int], int] = Memo(lambda thing: next(numbers), capacity=2)
    first, equal, third = [1], [1], [3]
    assert [memo.of(first), memo.of(equal), memo.of(first)] == [1, 2, 1]
    assert [memo.of(third), memo.of(equal), memo.of(first)] == [3, 2, 4]
    assert memo.again(first) == 5
    assert len(memo) == 2


def test_what_was_masked_is_kept_again_when_it_was_forgotten() -> None:
    store = ResultStore(capacity_bytes=1500)
    pipeline = ResultPipeline(store, ResultSettings(masked_after=1, masked_above=0))
    old = ToolResultMessage("t0", "scan", "old " * 250)
    messages: list[Message] = [old, AssistantMessage("a"), AssistantMessage("b")]
    note = pipeline.mask(messages)[0].text
    assert pipeline.mask(messages)[0].text == note
    store.put("other " * 200)
    again = pipeline.mask(messages)[0].text
    assert again != note
    assert store.get(again.split("reference='")[1].split("'")[0]) == old.text
