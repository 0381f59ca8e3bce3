"""Sources of samples (arrays, files, streams) and reproducible random orders to read them in."""

from smalto.sources.base import Source
from smalto.sources.chunked import ChunkedSource
from smalto.sources.convert import as_set, as_source, is_dask, lies_elsewhere
from smalto.sources.in_memory import ArraySource
from smalto.sources.order import ChunkOrder, Order, RowOrder
from smalto.sources.read_ahead import ReadAhead
from smalto.sources.stream import Stream

__all__ = [
    "ArraySource",
    "ChunkOrder",
    "ChunkedSource",
    "Order",
    "ReadAhead",
    "RowOrder",
    "Source",
    "Stream",
    "as_set",
    "as_source",
    "is_dask",
    "lies_elsewhere",
]
