"""How well a fitted model predicts the held-out entries of a round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from smalto.checks import Array, Rows, as_rows, float_dtype
from smalto.choosing.held_out import Round, row_slices
from smalto.choosing.matching import unit_atoms
from smalto.coders import Coder, Lasso, encode
from smalto.coders.signals import Missing
from smalto.estimators.base import Factorization
from smalto.estimators.sparse_pca import SparsePCA
from smalto.sources import is_dask

ROWS_AT_ONCE = 4096
SOME_ROWS = 8192  # that stand for all of them
_FEW_ZEROS = 0.1  # share of nonzeros above which a table of at most so many entries is dense
_DENSE_ENTRIES = 1 << 27


class Predicted(NamedTuple):
    """Sums over the held-out entries of a round."""

    squares: float  # of the differences from the predictions
    total: float  # of the differences from the means of their features
    entries: int  # how many there are
    nonzeros: float  # mean number of nonzeros of the codes

    @property
    def error(self) -> float:
        """The mean squared error."""
        return self.squares / max(self.entries, 1)


def predict_held_out(
    model: Factorization, X: Rows, held: Round, total: float, n_threads: int
) -> Predicted:
    """Return how well a model predicts the entries that a round has held out of X.

    ``total`` is what `total_squares` returns, the same for all models.
    """
    sums, coded = np.zeros(3), 0
    for rows in row_slices(len(held.tested), ROWS_AT_ONCE):
        numbers = held.tested[rows]
        signals = model._signals(in_memory(X[numbers]))
        if held.mask is not None:
            sums += _masked(model, signals, held.mask[numbers], n_threads)
            coded += len(numbers)
        for columns in held.columns:
            sums += _by_columns(model, signals, columns, n_threads)
            coded += len(numbers)
    return Predicted(float(sums[0]), total, int(sums[1]), float(sums[2]) / max(coded, 1))


def total_squares(X: Rows, held: Round) -> float:
    """Return the sum of squares of the held-out entries, less the means of their features."""
    center, total = known_means(X, held), 0.0
    for rows in row_slices(len(held.tested), ROWS_AT_ONCE):
        numbers = held.tested[rows]
        part = _dense(in_memory(X[numbers])) - center
        known = ~np.isnan(part)
        if held.mask is not None:
            known &= held.mask[numbers]
        total += float(np.square(part[known]).sum())
    return total


def known_means(X: Rows, held: Round) -> Array:
    """Return the mean of each feature over the known entries of the samples that are learned from."""
    m = X.shape[1]
    sums, counts = np.zeros(m), np.zeros(m)
    for rows in row_slices(len(held.learned), ROWS_AT_ONCE):
        numbers = held.learned[rows]
        part = _dense(in_memory(X[numbers])).astype(np.float64, copy=False)
        known = ~np.isnan(part)
        if held.mask is not None:
            known &= ~held.mask[numbers]
        sums += np.where(known, part, 0.0).sum(axis=0)
        counts += known.sum(axis=0)
    return np.asarray(sums / np.maximum(counts, 1.0))


def some_rows(X: Rows) -> Rows:
    """Return 8192 rows, evenly spread; all of them if there are fewer."""
    count = X.shape[0]
    some = np.unique(np.linspace(0, count - 1, min(count, SOME_ROWS)).astype(np.intp))
    return X if len(some) == count else X[some]


def in_memory(rows: Rows) -> Rows:
    """Return rows of a Dask array as an array; others as they are."""
    return rows.compute() if is_dask(rows) else rows


def as_table(X: Any, *, masked: bool = False) -> Rows:
    """Return X as rows that can be taken by number, sparse just if most of its entries are zero.

    It is read by many fits, and the fits of one table do not depend on how it was given. With
    ``masked`` entries of it will be masked, and it stays dense.
    """
    if is_dask(X) or isinstance(X, np.ma.MaskedArray | np.memmap):
        return X
    X = as_rows("X", X)
    if masked:
        return X
    size = X.shape[0] * X.shape[1]
    if scipy.sparse.issparse(X):
        return X.toarray() if X.nnz > _FEW_ZEROS * size and size <= _DENSE_ENTRIES else X
    is_sparse = np.count_nonzero(X) <= _FEW_ZEROS * size and np.isfinite(X).all()
    return scipy.sparse.csr_array(X) if is_sparse else X


def in_single(X: Rows) -> Rows:
    """Return X in float32, if it is in memory and all of its squares are normal numbers there."""
    is_sparse = scipy.sparse.issparse(X)
    if not is_sparse and type(X) is not np.ndarray:
        return X
    values = np.abs(X.data if is_sparse else X)
    known = values[np.isfinite(values)]
    largest = float(known.max(initial=0.0))
    return X.astype(np.float32) if 1e-8 < largest < 1e8 else X


def steady_coder(model: Factorization) -> Coder:
    """Return the coder that predictions are made with.

    Without a penalty, as in plain NMF, atoms that the known entries hardly show could get
    coefficients of any size. They then get the squared penalty ``r/2 ‖α‖²`` that suits noise and
    codes: r is the variance of the residuals over the mean square of the coefficients. So do
    sparse components, as their explained variance is that of a regression: they are short, and
    the ℓ1 penalty would shrink predictions by more or less, as their length happens to be.
    Their length does not matter then: they are taken to have norm 1 (`steady_atoms`).
    """
    coder = model.coder_
    if not isinstance(coder, Lasso) or (coder.lam and not isinstance(model, SparsePCA)):
        return coder
    return replace(coder, lam=0.0, ridge=max(coder.ridge, noise_ratio(model) or 0.0))


def steady_atoms(model: Factorization, dtype: Any) -> Array:
    """Return the atoms that predictions are made with."""
    D = model.components_
    return (unit_atoms(D) if isinstance(model, SparsePCA) else D).astype(dtype, copy=False)


def noise_ratio(model: Factorization) -> float | None:
    """Return the variance of the residuals over the mean square of the coefficients.

    Those of sparse components are for components of norm 1. None if the model has not learned
    anything.
    """
    state, history = model.state_, model.history_
    weight = sum(part.scale * part.weight for part in state.stats)
    units = np.square(state.D).sum(axis=1) if isinstance(model, SparsePCA) else 1.0
    energy = sum(part.scale * float((part.A.diagonal() * units).sum()) for part in state.stats)
    if not history or not weight > 0 or not energy > 0:
        return None
    k, m = state.D.shape
    last = history[-1]
    squares = 2.0 * (last.batch_cost if last.surrogate is None else last.surrogate)
    noise = squares / max(m - last.mean_nonzeros, 1.0)
    return float(noise * weight * k / energy)


def _by_columns(model: Factorization, X: Rows, hidden: Array, n_threads: int) -> Array:
    """Return the sums for features that are predicted from all others."""
    known = np.setdiff1d(np.arange(X.shape[1]), hidden)
    D = steady_atoms(model, float_dtype(X.dtype))
    shown = X[:, known]  # sparse and masked arrays stay what they are
    missing: Missing = model.missing
    over = np.ascontiguousarray(D[:, known])
    codes = encode(shown, over, steady_coder(model), missing=missing, n_threads=n_threads)
    return _sums(_dense(X[:, hidden]), codes, D[:, hidden], None)


def _masked(model: Factorization, X: Rows, mask: Array, n_threads: int) -> Array:
    """Return the sums for entries that are predicted from the others of their sample."""
    D = steady_atoms(model, float_dtype(X.dtype))
    coder = steady_coder(model)
    codes = encode(X, D, coder, mask=mask, missing=model.missing, n_threads=n_threads)
    return _sums(_dense(X), codes, D, mask)


def _sums(X: Array, codes: Any, D: Array, where: Array | None) -> Array:
    """Return Σ (x − p)², the number of entries and that of nonzeros; NaN is left out."""
    known = ~np.isnan(X) if where is None else where & ~np.isnan(X)
    left = (X.astype(np.float64, copy=False) - codes @ D)[known]
    return np.array([np.vdot(left, left), known.sum(), codes.nnz])


def _dense(X: Rows) -> Array:
    if scipy.sparse.issparse(X):
        return np.asarray(X.toarray())
    return np.asarray(X.filled(np.nan) if isinstance(X, np.ma.MaskedArray) else X)
