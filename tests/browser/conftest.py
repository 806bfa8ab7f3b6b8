"""One browser and one bridge for all tests of this folder, and for each test contexts that may not complain."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import Response
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect

from dimos_streams.dashboard import serving
from tests.bridge.serving import Served, served
from tests.browser.chromium import find_chromium, launched
from tests.browser.complaints import Complaints
from tests.browser.live_run import ON_AND_ON, KeptRun, LiveRun
from tests.browser.script_modules import ScriptModules

PICTURES = Path(__file__).parents[2] / "build" / "browser"
"""Where pictures of failures are kept."""
LONGEST_WAIT_MS = 30_000
_NEXT = pytest.StashKey[pytest.Item | None]()
"""The test that comes after an item."""


class Contexts:
    """Makes contexts, as of several people, and watches them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._made: list[tuple[BrowserContext, Complaints]] = []

    def new(self, **options: Any) -> tuple[BrowserContext, Complaints]:
        """A context, closed with the test, and what its pages do that they may not."""
        context = self._browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(LONGEST_WAIT_MS)
        complaints = Complaints(context)
        self._made.append((context, complaints))
        return context, complaints

    def pictures(self, name: str) -> list[Path]:
        """Keep what all pages show now."""
        kept = []
        for number, page in enumerate(page for context, _ in self._made for page in context.pages):
            path = PICTURES / f"{re.sub(r'[^a-zA-Z0-9]+', '-', name).strip('-')}-{number}.png"
            try:
                page.screenshot(path=path, timeout=5_000)
            except Error:  # it can't be shown any more; the test says why it failed
                continue
            kept.append(path)
        return kept

    def close(self) -> list[str]:
        """All complaints."""
        for context, _ in self._made:
            context.close()
        return self.complaints()

    def complaints(self) -> list[str]:
        """Those that were not asked for before."""
        return [text for _, complaints in self._made for text in complaints.taken()]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep pictures of what a test saw that has failed."""
    report = yield
    used = [each for each in getattr(item, "funcargs", {}).values() if isinstance(each, Contexts)]
    if report.when == "call" and report.failed and used:
        kept = [path for contexts in used for path in contexts.pictures(item.name)]
        report.sections.append(("Pictures", "\n".join(map(str, kept))))
    return report


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Headless, and only while tests of this folder run."""
    path = find_chromium()
    if path is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium-headless-shell)")
    expect.set_options(timeout=LONGEST_WAIT_MS)
    with launched(path) as made:
        yield made


@pytest.fixture(scope="package")
def kept_files() -> Iterator[None]:
    """Have the browser keep the page's files from one test to the next: it would read and compile them for each."""
    plain = serving._response

    def kept(name: str, content: bytes, policy: str) -> Response:
        response = plain(name, content, policy)
        if name != "index.html":
            response.headers["Cache-Control"] = "max-age=3600"
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "_response", kept)
        yield


@pytest.fixture(scope="package")
def bridge(kept_files: None) -> Iterator[Served]:
    """A bridge on a bus in memory, and a module with skills of every kind."""
    with served() as made:
        yield made


@pytest.fixture(scope="package")
def kept_run(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[KeptRun]:
    """One robot for all tests that need a real one."""
    with contextlib.closing(KeptRun(tmp_path_factory.mktemp("run"), *ON_AND_ON)) as made:
        yield made


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Have fixtures know which test comes next."""
    item.stash[_NEXT] = nextitem


@pytest.fixture
def begun_run(kept_run: KeptRun, request: pytest.FixtureRequest) -> Iterator[LiveRun]:
    """The robot. It ends with the last test that needs it: idle, it would take a seventh of a processor from all
    tests of pages that its worker runs next."""
    yield kept_run.begun()
    if request.fixturename not in getattr(request.node.stash[_NEXT], "fixturenames", ()):
        kept_run.close()


@pytest.fixture
def run(begun_run: LiveRun) -> Iterator[LiveRun]:
    """The robot; after the test it does nothing any more."""
    yield begun_run
    begun_run.end_calls()


@pytest.fixture
def contexts(browser: Browser) -> Iterator[Contexts]:
    """For tests with several tabs, or tabs that are unlike others."""
    made = Contexts(browser)
    yield made
    assert "\n".join(dict.fromkeys(made.close())) == ""


@pytest.fixture
def page(contexts: Contexts) -> Page:
    """An empty tab of 1280 by 800 pixels."""
    return contexts.new()[0].new_page()


@pytest.fixture(scope="package")
def kept_contexts(browser: Browser) -> Iterator[Contexts]:
    """For the page that tests take turns at: a window of its own takes each of them half a second."""
    made = Contexts(browser)
    yield made
    assert made.close() == []


@pytest.fixture(scope="package")
def blank_page(kept_contexts: Contexts, bridge: Served) -> ScriptModules:
    """What ``script_modules`` begins anew for each test."""
    return ScriptModules(kept_contexts.new()[0].new_page(), bridge.url)


@pytest.fixture
def script_modules(blank_page: ScriptModules, kept_contexts: Contexts) -> Iterator[ScriptModules]:
    """Evaluates functions of the dashboard's modules."""
    blank_page.begin()
    yield blank_page
    blank_page.page.evaluate("0")  # what was on its way before has come then
    assert "\n".join(dict.fromkeys(kept_contexts.complaints())) == ""
