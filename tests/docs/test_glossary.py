"""The glossary has each term once and says truly where it lives; decisions have a date and a status."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "glossary.md").read_text()
TERMS = re.findall(r"^\| (\*\*.+?) \| .+ \| `([\w./]+)` \|$", TEXT, re.MULTILINE)
_DECISION = re.compile(r"^### (.+)\n\n(.*)$", re.MULTILINE)
_STATUS = re.compile(r'\*(\d{4}-\d\d-\d\d) · (?:accepted|superseded on \d{4}-\d\d-\d\d by "(.+)")\*')


def test_no_term_has_two_meanings() -> None:
    terms = Counter(term for terms, _ in TERMS for term in re.findall(r"\*\*(.+?)\*\*", terms))
    assert len(terms) > 50
    assert [term for term, times in terms.items() if times > 1] == []


@pytest.mark.parametrize(("term", "where"), TERMS)
def test_a_term_lives_where_the_glossary_says(term: str, where: str) -> None:
    assert (ROOT / where).is_file()


def test_each_decision_has_a_date_and_a_status() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text()
    decisions = dict(_DECISION.findall(text))
    assert len(decisions) == len(re.findall(r"^### ", text, re.MULTILINE))
    for title, status in decisions.items():
        match = _STATUS.fullmatch(status)
        assert match, f"{title}: {status!r} is no date and status"
        assert match[2] is None or match[2] in decisions, f"{title}: superseded by what is not there"
