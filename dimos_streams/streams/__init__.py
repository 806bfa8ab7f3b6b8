"""Typed inputs and outputs of a module."""

from dimos_streams.streams.conversion import Conversion
from dimos_streams.streams.declared import declared_streams
from dimos_streams.streams.input import In, InStatistics
from dimos_streams.streams.output import Out
from dimos_streams.streams.reader import Reader
from dimos_streams.streams.spec import StreamSpec

__all__ = ["Conversion", "In", "InStatistics", "Out", "Reader", "StreamSpec", "declared_streams"]
