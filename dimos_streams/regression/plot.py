"""Draws what was recorded against what was replayed."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.errors import UserError
from dimos_streams.recording.files.whole import whole_file
from dimos_streams.regression.comparison import Points, Series
from dimos_streams.regression.report import Report

_MAX_PANELS = 12
_BLUE, _ORANGE = "#1f5fa8", "#e07b00"


def draw(report: Report, target: Path) -> None:
    """Write a picture with a panel for each number that changes, those that differ most first.

    Raises ``UserError`` without the extra ``plot``, without anything to draw, and if the file can't be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("pictures need matplotlib: pip install 'dimos-streams[plot]'") from error

    chosen = _chosen(report)
    if not chosen:
        raise UserError("there is nothing to draw: no number that was recorded or replayed changes")
    figure = Figure(figsize=(10, 0.6 + 1.9 * len(chosen)), layout="constrained")
    panels = figure.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
    for panel, ((channel, path), series) in zip(panels, chosen, strict=True):
        panel.plot(*_line(series.recorded, report.start_utime), color=_BLUE, linewidth=2.2, label="recorded")
        panel.plot(*_line(series.replayed, report.start_utime), color=_ORANGE, linewidth=1.0, label="replayed")
        panel.set_title(f"{channel.partition('#')[0]}  {path}", fontsize=9, loc="left")
        panel.grid(alpha=0.3)
        panel.tick_params(labelsize=8)
    if (first := report.first) is not None:
        for panel in panels:
            panel.axvline((first.utime - report.start_utime) / 1e6, color="#b00020", linewidth=0.8, linestyle=":")
    panels[0].legend(fontsize=8, loc="upper right")
    panels[-1].set_xlabel("seconds of the recording", fontsize=9)
    verdict = "passed" if report.passed else "failed"
    figure.suptitle(f"{', '.join(report.modules)} on {Path(report.log).name}: {verdict}", fontsize=11)
    try:
        with whole_file(target) as file:
            figure.savefig(file, dpi=110, format=target.suffix[1:] or "png")
    except ValueError as error:
        raise UserError(f"picture {str(target)!r} can't be written: {error}") from error


def _chosen(report: Report) -> list[tuple[tuple[str, str], Series]]:
    worst = {stream.stream: stream.worst for stream in report.streams}

    def by_difference(item: tuple[tuple[str, str], Series]) -> float:
        (channel, path), _ = item
        return -worst.get(channel, {}).get(path, (0.0, 0))[0]

    changing = [item for item in report.series.items() if _changes(item[1]) and not _is_stamp(item[0][1])]
    return sorted(changing, key=by_difference)[:_MAX_PANELS]


def _changes(series: Series) -> bool:
    return len({value for _, value in series.recorded + series.replayed}) > 1


def _is_stamp(path: str) -> bool:
    return path.rpartition(".")[2] in ("sec", "nsec", "nanosec", "seq", "utime")


def _line(points: Points, start_utime: int) -> tuple[list[float], list[float]]:
    return [(utime - start_utime) / 1e6 for utime, _ in points], [value for _, value in points]
