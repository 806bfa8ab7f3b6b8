"""Tool streams for code that owns threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Coroutine
from typing import Any, Literal

from dimos_streams.common.json.writing import json_bytes
from dimos_streams.errors import SkillError, StreamClosedError
from dimos_streams.skill import Call

_logger = logging.getLogger(__name__)


class ToolStream:
    """A tool stream that sends a call's updates from any thread.

    ``start`` and ``stop`` twice are no-ops that are logged; ``send`` before ``start``, after ``stop``, after the
    call's close or after the end of its loop raises ``StreamClosedError``. Stopping does not close the call: the
    skill's return does.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._loop = call.loop
        self._lock = threading.Lock()
        self._state: Literal["new", "started", "stopped"] = "new"
        self._newest: tuple[str, dict[str, Any]] | None = None
        """The progress that the loop has not taken yet."""

    def start(self) -> None:
        """Allow sending."""
        with self._lock:
            if self._state == "started":
                _logger.warning("tool stream of call %s is started already", self._call.id)
                return
            if self._state == "stopped":
                raise StreamClosedError(f"the tool stream of call {self._call.id} has been stopped")
            self._state = "started"

    def send(self, text: str, **data: Any) -> None:
        """Send an update and wait until it is on its way; the loop's own thread can't wait, so there it is sent soon
        after.

        Raises ``StreamClosedError``.
        """
        self._check_started()
        update = self._call.update(text, **data)
        if self._on_the_loop():
            task = self._loop.create_task(update, name=f"update:{self._call.id}")
            self._call.unsent[task] = None
            task.add_done_callback(lambda done: self._call.unsent.pop(done, None))
        else:
            self._send_from_thread(update)

    def progress(self, text: str, **data: Any) -> None:
        """Send progress without waiting: the loop takes the newest. Raises ``StreamClosedError``, and ``SkillError``
        for what is no JSON."""
        self._check_started()
        json_bytes(data)
        with self._lock:
            is_next, self._newest = self._newest is None, (text, data)
        if is_next:
            try:
                self._loop.call_soon_threadsafe(self._take_newest)
            except RuntimeError as error:
                self._newest = None  # else those to come would seem to be taken
                raise self._loop_has_ended() from error

    def stop(self) -> None:
        """Allow no more sending."""
        with self._lock:
            if self._state == "stopped":
                _logger.warning("tool stream of call %s is stopped already", self._call.id)
            self._state = "stopped"

    def __enter__(self) -> ToolStream:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _send_from_thread(self, update: Coroutine[Any, Any, None]) -> None:
        try:
            sending = asyncio.run_coroutine_threadsafe(update, self._loop)
        except RuntimeError as error:
            update.close()
            raise self._loop_has_ended() from error
        try:
            sending.result()
        except concurrent.futures.CancelledError as error:  # nobody else cancels it
            raise self._loop_has_ended() from error

    def _loop_has_ended(self) -> StreamClosedError:
        return StreamClosedError(f"the tool stream of call {self._call.id} has ended with its loop")

    def _on_the_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _check_started(self) -> None:
        with self._lock:
            if self._state != "started":
                state = "not started" if self._state == "new" else "stopped"
                raise StreamClosedError(f"the tool stream of call {self._call.id} is {state}")

    def _take_newest(self) -> None:
        with self._lock:
            assert self._newest is not None
            (text, data), self._newest = self._newest, None
        try:
            self._call.progress(text, **data)
        except (SkillError, StreamClosedError) as error:
            _logger.warning("%s", error)
