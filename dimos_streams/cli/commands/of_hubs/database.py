"""The database that a hub's command is to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.terminal import options

if TYPE_CHECKING:
    from dimos_streams.hub.storage.storage import HubStorage

Database = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="DIMOS_STREAMS_DATABASE",
        callback=options.typed_url,
        metavar="URL",
        help="The database: sqlite:///FILE for a single hub, postgresql://USER@HOST/NAME for one or several.",
    ),
]


def storage_of(url: str) -> HubStorage:
    """The storage in the database of a URL; nothing is opened yet. Raises ``UserError``."""
    from dimos_streams.hub.storage.storage import HubStorage, open_engine

    return HubStorage(open_engine(url))


def open_storage(url: str, *, make: bool = True) -> HubStorage:
    """Return an open database; without ``make`` one that is there. Raises ``UserError``."""
    storage = storage_of(url)
    try:
        if not make:
            storage.engine.check_there()
        storage.open()
    except BaseException:
        storage.close()
        raise
    return storage
