"""That the tests of this folder see what a page may not do, and that a blank page is restricted as the real one."""

from __future__ import annotations

from functools import partial

from tests.bridge.serving import Served
from tests.browser.complaints import Complaints
from tests.browser.conftest import Contexts
from tests.browser.script_modules import ScriptModules
from tests.browser.waiting import until


def test_the_blank_page_imports_what_the_real_one_runs(script_modules: ScriptModules) -> None:
    assert script_modules("texts.js", "(texts, text) => texts.clipped(text)", "short") == "short"
    assert script_modules.page.evaluate("document.querySelectorAll('script[src]').length") == 0


_FORBIDDEN = {
    "console.error('it broke')": "it broke",
    "setTimeout(() => { throw new Error('nobody catches this') })": "nobody catches this",
    "Promise.reject(new Error('nor this'))": "nor this",
    "setTimeout(() => { document.body.innerHTML = '<p>text</p>' })": "TrustedHTML",
    "document.body.append(Object.assign(document.createElement('style'), { textContent: 'p {}' }))": "style-src",
    "fetch('http://example.org/').catch(() => 0)": "connect-src",
    "location = 'http://example.org/'": "asked for http://example.org",
}


def test_what_no_page_may_do_is_noticed(bridge: Served, contexts: Contexts) -> None:
    context, complaints = contexts.new()
    page = context.new_page()
    ScriptModules(page, bridge.url)
    assert complaints.made == []
    for does, complaint in _FORBIDDEN.items():
        page.evaluate(f"() => {{ {does} }}")
        until(page, partial(_has, complaints, complaint))
    complaints.expect("")


def _has(complaints: Complaints, text: str) -> bool:
    return any(text in made for made in complaints.made)
