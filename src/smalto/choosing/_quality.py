"""`quality`: all measures of a fitted model, as a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from smalto.checks import Array, Rows, as_marks, as_rows, check_integer, check_kind, float_dtype
from smalto.choosing.agreement import Consensus
from smalto.choosing.lazy_data import computed
from smalto.choosing.measures import (
    coherence,
    dead_atoms,
    duplicate_atoms,
    effective_rank,
    matched_similarity,
    r2,
)
from smalto.choosing.selection import Selection
from smalto.choosing.tables import as_frame, as_text
from smalto.coders import Coder, encode
from smalto.coders.coding import mean_cost
from smalto.coders.signals import Missing, as_signals
from smalto.data_frames import check_columns
from smalto.estimators.base import Factorization
from smalto.learning._learn import Result
from smalto.learning.files.model import Model
from smalto.learning.initial_state import as_seed
from smalto.learning.memory.state import State
from smalto.threads import resolve_threads, single_threaded_blas


@dataclass(frozen=True, repr=False)
class Quality:
    """Measures of a fitted model on data.

    Attributes
    ----------
    cost : float
        Mean of ``½‖x − αD‖² + ψ(α)`` over the samples.
    held_out_cost : float or None
        The same over samples that the model has not seen; None if none were given.
    r2 : float
        Coefficient of determination of the approximations αD.
    mean_nonzeros : float
        Mean number of nonzeros per code.
    coherence : float
        Largest absolute cosine between two atoms.
    dead_atoms : list of int
        Atoms that no sample uses.
    duplicate_atoms : list of (int, int)
        Pairs of atoms that are the same.
    effective_rank : float
        Effective rank of the approximations.
    stability : array (k,) or None
        Mean similarity of each atom to its match in the models of other starts; None if there
        are none.
    relative_gap : float or None
        Certificate: the mean cost is proven to be at most this share of ``½‖x‖²``, the cost of
        zero codes, above the lowest. None if the coder is not convex.

    See Also
    --------
    smalto.quality : Where it comes from.
    """

    cost: float
    held_out_cost: float | None
    r2: float
    mean_nonzeros: float
    coherence: float
    dead_atoms: list[int]
    duplicate_atoms: list[tuple[int, int]]
    effective_rank: float
    stability: Array | None
    relative_gap: float | None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict for each measure: its name and value; counts in place of lists."""
        rows = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):
                value = len(value)
            elif isinstance(value, np.ndarray):
                value = float(value.mean())
            rows.append({"measure": field.name, "value": value})
        return rows

    @property
    def table(self) -> Any:
        """The rows as a data frame of pandas, if it is installed; otherwise a dict of columns."""
        return as_frame(self.rows)

    def __repr__(self) -> str:
        return f"Quality\n{as_text(self.rows)}"


def quality(
    model: Any,
    X: Any,
    *,
    held_out: Any = None,
    mask: Any = None,
    others: Sequence[Any] = (),
    n_starts: int = 0,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Quality:
    """Measure a fitted model: cost, fit, sparsity, state of its atoms, stability and certificate.

    Parameters
    ----------
    model : estimator, Result, State or Model
        A fitted `DictionaryLearning`, `NMF` or `SparsePCA`, the result of `learn`, its state, or
        a `Model`.
    X : array, CSR array, data frame or Dask array (n, m)
        Samples, one per row, such as those that were learned from; a Dask array is computed once. NaN means a missing entry if
        the estimator says so.
    held_out : array or CSR array, optional
        Samples that the model has not seen, for ``held_out_cost``.
    mask : array of bool (n, m), optional
        True where an entry of X is missing.
    others : sequence of models or dictionaries, optional
        The same model from other starts, for ``stability``.
    n_starts : int, default 0
        Number of other starts to fit to X here, for ``stability``; only for estimators.
    n_threads : int, optional
        Number of threads; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Determines the first atoms of these starts.

    Returns
    -------
    Quality
        One attribute per measure, and all of them as a ``table``.

    See Also
    --------
    smalto.select : Chooses the number of atoms and the penalty.
    smalto.consensus : The stability of atoms over many starts.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import learn, quality
    >>> from smalto.coders import Lasso
    >>> X = np.random.default_rng(0).standard_normal((500, 16))
    >>> measured = quality(learn(X, 24, Lasso(lam=0.5), random_state=0), X)
    >>> measured.dead_atoms, measured.duplicate_atoms
    ([], [])
    >>> bool(measured.relative_gap < 1e-6)
    True
    """
    D, coder, missing = _parts(model)
    threads = resolve_threads(n_threads)
    n_starts = check_integer("n_starts", n_starts, low=0)
    X, held_out = computed(X), computed(held_out)
    mask = None if mask is None else as_marks(mask)
    samples = _signals("X", model, X, len(D[0]), mask)
    codes, info = encode(
        samples, D, coder, mask=mask, missing=missing, n_threads=threads, return_info=True
    )
    cost = _cost(samples, D, info.coder, mask, missing, threads)
    unseen = None
    if held_out is not None:
        unseen = _cost(
            _signals("held_out", model, held_out, len(D[0])), D, info.coder, None, missing, threads
        )
    check_kind("others", others, list | tuple, "a list of models or dictionaries")
    dictionaries = [np.asarray(o) if _is_array(o) else _parts(o)[0] for o in others]
    if n_starts:
        dictionaries += _other_starts(model, X, mask, n_starts, threads, as_seed(random_state))
    shown = samples if mask is None else np.where(mask, np.nan, samples)
    gap, zero = float(np.mean(info.gap)), _zero_cost(shown)
    return Quality(
        cost,
        unseen,
        r2(shown.filled(np.nan) if np.ma.isMaskedArray(shown) else shown, codes, D),
        codes.nnz / codes.shape[0],
        coherence(D),
        dead_atoms(codes),
        duplicate_atoms(D),
        effective_rank(codes, D),
        matched_similarity(D, dictionaries) if dictionaries else None,
        None if np.isnan(gap) else gap / zero if zero > 0 else gap,
    )


def _parts(model: Any) -> tuple[Array, Coder, Missing]:
    """Return the dictionary and coder of a fitted model, and what NaN means to it."""
    if isinstance(model, Factorization):
        check_is_fitted(model, "components_")
        return model.components_, model.coder_, model.missing
    if isinstance(model, Result | Model):
        return model.D, model.coder, None
    if isinstance(model, State):
        return model.D, model.coder.fixed(), None
    hint = ""
    if isinstance(model, Selection | Consensus):
        hint = ": give its best_model"
    elif isinstance(model, np.ndarray):
        hint = ": the model comes first, as in quality(model, X)"
    elif isinstance(model, type):
        hint = ": create and fit it first"
    elif isinstance(model, str | os.PathLike):
        hint = ": load it first, with smalto.Model.load"
    kind = model if isinstance(model, type) else type(model)
    what = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    message = (
        "model must be a fitted DictionaryLearning, NMF or SparsePCA, a Result, a State or a "
        f"Model, got {what}{hint}"
    )
    raise TypeError(message)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or scipy.sparse.issparse(value)


def _signals(name: str, model: Any, X: Any, n_features: int, mask: Any = None) -> Rows:
    """Return the signals that a model codes: an estimator may center them."""
    rows = X if isinstance(X, np.ma.MaskedArray) else as_rows(name, X)
    if rows.shape[1] != n_features:
        message = (
            f"{name} has {rows.shape[1]} features, but the atoms of the model have {n_features}"
        )
        raise ValueError(message)
    if not isinstance(model, Factorization):
        return rows
    check_columns(name, X, vars(model).get("feature_names_in_"))
    model._check_values(rows, mask)
    return model._signals(rows)


def _cost(X: Rows, D: Array, coder: Coder, mask: Any, missing: Missing, n_threads: int) -> float:
    """Return the mean cost of rows."""
    signals = as_signals("X", X, mask, missing)
    D = np.ascontiguousarray(D, float_dtype(signals.X.dtype))
    with single_threaded_blas():
        return mean_cost(signals, D, coder, n_threads)


def _zero_cost(X: Rows) -> float:
    """Return the mean of ``½‖x‖²`` over rows; NaN and masked entries are missing."""
    values = X.data if scipy.sparse.issparse(X) else np.ma.filled(X, np.nan)
    return 0.5 * float(np.nansum(np.square(values, dtype=np.float64))) / int(X.shape[0])


def _other_starts(
    model: Any, X: Any, mask: Any, n_starts: int, n_threads: int, seed: int
) -> list[Array]:
    """Return the dictionaries of the same estimator from other starts."""
    if not isinstance(model, Factorization):
        message = (
            f"n_starts={n_starts} needs an estimator, which knows how it was fitted, got a "
            f"{type(model).__name__}: give models of other starts as others"
        )
        raise TypeError(message)
    found = []
    for start in range(n_starts):
        own = np.random.SeedSequence([seed, 5, start]).generate_state(1, np.uint64)[0]
        other: Factorization = clone(model).set_params(
            n_threads=n_threads, random_state=int(own >> np.uint64(2)), callbacks=()
        )
        other.fit(X, **({} if mask is None else {"mask": mask}))
        found.append(other.components_)
    return found
