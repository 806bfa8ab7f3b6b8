"""Help of commands in paragraphs that the terminal wraps, however long the lines of their docstrings are."""

from __future__ import annotations

import inspect


def help_of(docstring: str | None) -> str | None:
    """Return a command's docstring as its help: each paragraph in one line, which is wrapped at the terminal's width.

    Typer does so with the first paragraph only; the line ends of others it takes for meant.
    """
    if docstring is None:
        return None
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(docstring).split("\n\n"))
