"""The beginning of each HTTP surface: of a bridge, of a hub, and of a recording."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI

from dimos_streams import __version__
from dimos_streams.serving import problems
from dimos_streams.serving.openapi import describe
from dimos_streams.serving.problem_kinds import KINDS, ProblemKind
from dimos_streams.serving.route import StrictRoute


def new_app(whose: str, kinds: Sequence[ProblemKind] = KINDS, *, of_hub: bool = False) -> FastAPI:
    """Return an app without routes. ``kinds`` and ``of_hub`` are as ``describe`` takes them."""
    title = f"dimos-streams {whose}"
    app = FastAPI(
        title=title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,  # what generated clients call their functions
    )
    app.router.route_class = StrictRoute
    problems.install(app)
    describe(app, kinds, of_hub=of_hub)
    return app
