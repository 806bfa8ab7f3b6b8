"""The facts on which the bytes of a virtual-time run depend besides blueprint, seed and inputs."""

from __future__ import annotations

import importlib
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dimos_streams import __version__

_PACKAGES = (
    "numpy",
    "mujoco-core",
    "mujoco",
    "simplejpeg",
    "opencv-python-headless",
    "pydantic-core",
)
"""Packages whose code makes bytes: arithmetic, physics, pictures, detections, the text of numbers in JSON."""
_WITH_LIBM = ("avx2", "fma", "fma4")
"""The flags of a processor that decide which of its versions of sin, cos, exp, pow and atan2 the C library takes."""


def run_facts() -> dict[str, str]:
    """Return the versions, and the abilities of the processor, on which the bytes of a run depend.

    Two runs of one blueprint, seed and input whose facts are equal write the same bytes. Where facts differ, the
    bytes may: docs/virtual-time.md says which of them did when it was measured.
    """
    facts = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": f"{sys.platform} {platform.machine()} {sys.byteorder}-endian",
        "libc": " ".join(platform.libc_ver()),
        "processor": _processor(),
        "libm_features": " ".join(feature for feature in _WITH_LIBM if feature in _cpu_flags()),
        "numpy_features": _numpy_features(),
        "dimos-streams": __version__,
    }
    for package in _PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def _processor() -> str:
    return _cpu_line("model name") or platform.processor() or "unknown"


def _cpu_flags() -> list[str]:
    return _cpu_line("flags").split()


def _cpu_line(key: str) -> str:
    """Return the system's entry for its first processor under a key; empty if there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == key), "")


def _numpy_features() -> str:
    """Return the instruction sets that numpy uses beyond its baseline; empty without numpy."""
    try:
        core = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:
        return ""
    used = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    return " ".join(used)
