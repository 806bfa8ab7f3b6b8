import numpy as np

from dimos_streams.robot.simulation.scene import STOCK_SCENE
from tests.robot.topdown import TopDown, footprints


def test_a_map_shows_tracks_and_the_robot() -> None:
    plan = TopDown(pixels_per_metre=20.0)
    empty = plan.picture()
    plan.track([(-2.0, -2.0), (0.0, -2.0)], (255, 0, 0), width=0.2)
    plan.robot(2.0, -1.0, 0.0)
    drawn = plan.picture()
    assert drawn.shape[2] == 3
    assert abs(drawn.shape[1] / drawn.shape[0] - 10.24 / 8.24) < 0.02
    row, column = round((4.12 + 2.0) * 20), round((5.12 - 1.0) * 20)
    assert tuple(drawn[row, column]) == (255, 0, 0)
    assert 0.005 < np.any(drawn != empty, axis=2).mean() < 0.1


def test_footprints_leave_the_middle_free() -> None:
    boxes = footprints(STOCK_SCENE)
    assert {"sofa", "dining_table", "shelf"} <= set(boxes)
    assert not any(x0 < 1.0 and x1 > -1.0 and y0 < 1.0 and y1 > -2.0 for x0, x1, y0, y1 in boxes.values())
