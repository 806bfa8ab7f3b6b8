"""Lists as people write them."""

from __future__ import annotations

import pytest

from dimos_streams.common.readable.listed import listed


@pytest.mark.parametrize(("texts", "written"), [(["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")])
def test_texts_are_listed(texts: list[str], written: str) -> None:
    assert listed(texts, "or") == written
