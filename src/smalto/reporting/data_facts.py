"""Facts about samples: their hash, and how well a dictionary codes them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders._encode import encode
from smalto.coders.base import Coder
from smalto.coders.signals import Missing
from smalto.sources import Stream, as_source
from smalto.sources.base import Source, read_rows

ROWS = 2000  # samples that are coded, at most
_VALUES = 10_000_000  # of them, at most
SHOWN = 6  # best and worst ones
_HASHED = 1 << 30  # bytes of an array or a file that are hashed, at most
_PIECE = 1 << 22


class Samples(NamedTuple):
    """Some rows of the data, and what is known of all of it."""

    rows: Rows
    numbers: Array
    n_rows: int
    about: dict[str, str]


class Coded(NamedTuple):
    """How a dictionary codes samples; errors are shares of the squared norms."""

    n: int
    cost: float
    r2: float
    nonzeros: Array
    errors: Array
    gaps: Array | None  # as shares of ½‖x‖²; None without certificates
    uses: Array  # share of the samples that use each atom
    best: list[tuple[int, float, Array, Array]]  # number, error, before, after
    worst: list[tuple[int, float, Array, Array]]


def some_samples(X: Any, n_features: int) -> Samples:
    """Return at most 2000 rows of the data, evenly spread; raise if it cannot be read by number."""
    source = as_source(X, nan=True)
    if isinstance(source, Stream):
        message = "a report needs samples that can be read by number, got a stream: give an array"
        raise TypeError(message)
    if source.n_features != n_features:
        message = f"X has {source.n_features} features, but the atoms have {n_features}"
        raise ValueError(message)
    n = source.n_rows
    count = min(n, ROWS, max(4 * SHOWN, _VALUES // n_features))
    numbers = np.unique(np.linspace(0, n - 1, count).astype(np.int64))
    rows = read_rows(source, numbers, nan=True)
    about = {"samples": f"{n:,} of {n_features:,} features, {source.dtype}"}
    about |= _hash(X, rows, source)
    if isinstance(X, str | os.PathLike):
        about = {"file": str(X), **about}
    return Samples(rows, numbers, n, about)


def code_samples(
    samples: Samples, D: Array, coder: Coder, prepare: Callable[[Rows], Rows] | None = None
) -> Coded | str:
    """Code samples; return the facts, or why there are none.

    ``prepare`` makes signals of samples, such as centered ones.
    """
    if "groups" in coder.takes:
        return f"{type(coder).__name__} codes groups of samples, which a report does not know."
    rows = samples.rows if prepare is None else prepare(samples.rows)
    dense = rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
    missing = np.isnan(dense)
    kind: Missing = "nan" if missing.any() else None
    try:
        codes, info = encode(
            rows, D.astype(dense.dtype, copy=False), coder, missing=kind, return_info=True
        )
    except ValueError as error:  # such as a parameter for each sample of another set
        return f"The samples could not be coded: {error}"
    after = np.asarray(codes @ D)
    known = np.where(missing, 0.0, dense)
    rest = np.where(missing, 0.0, known - after)
    squares, lost = np.square(known).sum(axis=1), np.square(rest).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = known.sum(axis=0) / (~missing).sum(axis=0)
        spread = np.where(missing, 0.0, known - mean)
        shares = np.where(squares > 0, lost / squares, np.nan)
    costs = 0.5 * lost + np.asarray(coder.penalty(codes), np.float64)
    order = np.argsort(shares, kind="stable")
    order = order[np.isfinite(shares[order])]
    total = float(np.square(spread).sum())

    def shown(some: Array) -> list[tuple[int, float, Array, Array]]:
        return [(int(samples.numbers[i]), float(shares[i]), dense[i], after[i]) for i in some]

    n_shown = min(SHOWN, len(order) // 2)
    return Coded(
        n=len(dense),
        cost=float(costs.mean()),
        r2=1.0 - float(lost.sum()) / total if total > 0 else float("nan"),
        nonzeros=np.asarray(info.nonzeros),
        errors=shares,
        gaps=_relative(info.gap, 0.5 * squares),
        uses=np.bincount(codes.indices[codes.data != 0], minlength=len(D)) / len(dense),
        best=shown(order[:n_shown]),
        worst=shown(order[::-1][:n_shown]),
    )


def _relative(gaps: Array, units: Array) -> Array | None:
    """Return the gaps as shares of the costs of zero codes; None if there are no certificates."""
    gaps = np.asarray(gaps, np.float64)
    good = np.isfinite(gaps) & (units > 0)
    return np.maximum(gaps[good], 0.0) / units[good] if good.any() else None


def _hash(X: Any, rows: Rows, source: Source) -> dict[str, str]:
    """Return the SHA-256 of the file or array, or of some rows of data that is too large."""
    if isinstance(X, str | os.PathLike) and Path(X).is_file():
        if Path(X).stat().st_size <= _HASHED:
            return {"SHA-256 of the file": hash_of_file(Path(X))}
    elif isinstance(X, np.ndarray) and not isinstance(X, np.memmap) and X.nbytes <= _HASHED:
        return {"SHA-256 of the array": hash_of_array(X)}
    dense = rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
    some = "the samples" if len(dense) == source.n_rows else f"{len(dense):,} samples"
    return {f"SHA-256 of {some}": hash_of_array(dense)}


def hash_of_file(path: Path) -> str:
    """Return the SHA-256 of the bytes of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def hash_of_array(X: Array) -> str:
    """Return the SHA-256 of the dtype, shape and bytes (rows one after another) of an array."""
    digest = hashlib.sha256(f"{X.dtype.str} {X.shape}".encode())
    step = max(1, _PIECE // max(X[:1].nbytes, 1))
    for first in range(0, len(X), step):
        digest.update(X[first : first + step].tobytes())
    return digest.hexdigest()
