"""The reasons, in words, why a robot that is to move gets no usable scans or odometry."""

from __future__ import annotations

from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.scan import why_blind
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.skills.moving.steering import SCAN_AGE_S
from dimos_streams.streams import In


def scan_fault(scan: In[LaserScan]) -> str:
    """Return why the velocity gate only lets the robot turn, as far as the scan tells; empty if the scan is usable,
    or none is wired."""
    message, age = scan.latest, scan.age()
    if not scan.wired:
        return ""
    if (age is None or age > SCAN_AGE_S) and (skipped := scan.skipped(SCAN_AGE_S)):
        why = f"scans come, but {skipped}"
    elif message is None or age is None:
        why = f"no scan has ever come on {scan.channel}"
    elif age > SCAN_AGE_S:
        why = f"no scan for {age:.1f} s"
    elif blind := why_blind(message):
        why = f"the scan {blind}"
    else:
        return ""
    return f"{why}: the gate only lets the robot turn"


def odometry_fault(odom: In[Odometry], timeout_s: float) -> str:
    """Return why no odometry has come for ``timeout_s``."""
    if fault := odom.skipped(timeout_s):
        return f"odometry comes, but {fault}"
    if odom.latest is None:
        return f"no odometry has ever come on {odom.channel}"
    return f"odometry has been silent for {timeout_s:g} s"
