"""``encode``: sparse codes of signals over a dictionary."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import scipy

from smalto.checks import (
    Array,
    Matrix,
    as_dictionary,
    as_floats,
    check_finite,
    csr_rows,
    float_dtype,
)
from smalto.coders.base import Coder, check_coder, check_takes
from smalto.coders.certificates import gaps
from smalto.coders.codes import Codes
from smalto.coders.coding import code_rows, warn_of_zeros
from smalto.coders.lasso import Lasso
from smalto.coders.out_of_reach import warn_if_neither_limit, warn_if_out_of_reach
from smalto.coders.preparing import prepare
from smalto.coders.signals import Missing, Signals, as_signals, in_groups, with_penalty_weights
from smalto.coders.unpenalized import check_unpenalized
from smalto.coders.wanted_nonzeros import missed_nonzeros
from smalto.threads import resolve_threads, single_threaded_blas
from smalto.warn import warn


class Info(NamedTuple):
    """Information about a call of `encode`, for each signal.

    See Also
    --------
    smalto.encode : Returns it if ``return_info=True``.
    """

    gap: Array
    """Bound on how far the objective is above the minimum, see `duality_gap`; infinite where a
    bound on the error is out of reach, NaN if the coder is not convex."""
    iterations: Array
    """Rounds of the solver."""
    nonzeros: Array
    """Number of nonzeros of the code."""
    coder: Coder
    """The coder with all parameters decided, such as ``lam``."""


@overload
def encode(
    X: Matrix,
    D: Matrix,
    coder: Coder | None = None,
    *,
    mask: npt.ArrayLike | None = None,
    missing: Missing = None,
    penalty_weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    start: Matrix | None = None,
    n_threads: int | None = None,
    return_info: Literal[False] = False,
) -> scipy.sparse.csr_array: ...


@overload
def encode(
    X: Matrix,
    D: Matrix,
    coder: Coder | None = None,
    *,
    mask: npt.ArrayLike | None = None,
    missing: Missing = None,
    penalty_weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    start: Matrix | None = None,
    n_threads: int | None = None,
    return_info: Literal[True],
) -> tuple[scipy.sparse.csr_array, Info]: ...


@overload
def encode(
    X: Matrix,
    D: Matrix,
    coder: Coder | None = None,
    *,
    mask: npt.ArrayLike | None = None,
    missing: Missing = None,
    penalty_weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    start: Matrix | None = None,
    n_threads: int | None = None,
    return_info: bool,
) -> scipy.sparse.csr_array | tuple[scipy.sparse.csr_array, Info]: ...


def encode(
    X: Matrix,
    D: Matrix,
    coder: Coder | None = None,
    *,
    mask: npt.ArrayLike | None = None,
    missing: Missing = None,
    penalty_weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    start: Matrix | None = None,
    n_threads: int | None = None,
    return_info: bool = False,
) -> scipy.sparse.csr_array | tuple[scipy.sparse.csr_array, Info]:
    """Return sparse codes of the rows of X over the atoms (rows) of D.

    Solves ``min_α ½‖x − αD‖² + ψ(α)`` for each row x of X, where the coder defines ψ. If entries
    are missing, the norm is taken over the known entries.

    Parameters
    ----------
    X : array or CSR array (n, m)
        Signals. float32 is coded in float32, all other types in float64.
    D : array (k, m)
        Dictionary: one atom per row.
    coder : coder, default ``Lasso()``
        The problem to solve.
    mask : array of bool (n, m), dense or sparse, optional
        True where an entry of X is missing, as in NumPy's masked arrays and in scikit-image;
        the value there is ignored. The code of a signal without any known entry is zero.
    missing : {None, "nan"}
        With "nan", NaN in X means missing; by default it is an error.
    penalty_weights : array (k,) or (n, k), optional
        Weights w_j of the coefficients in the penalty ``Σ w_j|α_j|`` of `Lasso`,
        `ErrorBound` and `L1Ball`; infinity excludes an atom, and zero leaves it unpenalized (not
        with ``positive=True``, where 1e-6 comes close).
    groups : array (n,), optional
        For coders of several signals at once (`JointLasso`, `JointOMP`): a label for each
        signal. Signals with the same label are coded together; by default, all signals are.
    start : CSR array (n, k), optional
        Codes to start from, such as those over an earlier dictionary, for `Lasso`, `GroupLasso`
        and `TreeLasso`. They affect the time, not the result (where it is unique).
    n_threads : int, optional
        Number of threads; by default all available cores. The result does not depend on it.
    return_info : bool, default False
        Return (codes, info) with ``info.gap``, ``info.iterations``, ``info.nonzeros`` of each
        signal, and ``info.coder``, which has the ``lam`` that was used.

    Returns
    -------
    csr_array (n, k)
        One code per row, indices sorted.

    See Also
    --------
    smalto.learn : Learn the dictionary.
    smalto.lasso_path : The codes for every value of λ.
    smalto.duality_gap : How far given codes are from the optimum.
    smalto.distributed.encode : The same for Dask arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import Lasso
    >>> codes = encode(np.array([[3.0, 0.5]]), np.eye(2), Lasso(lam=1.0))
    >>> codes.toarray()
    array([[2., 0.]])
    """
    coder = Lasso() if coder is None else check_coder(coder)
    threads = resolve_threads(n_threads)
    with single_threaded_blas():  # checks use it, too, and its threads would spin on after them
        signals = as_signals("X", X, mask, missing)
        check_takes(
            coder, mask=signals.missing, penalty_weights=penalty_weights, groups=groups, start=start
        )
        n, dtype = len(signals), float_dtype(signals.X.dtype)
        D = as_dictionary(D, signals.X.shape[1], dtype)
        signals = with_penalty_weights(signals, penalty_weights, len(D))
        check_unpenalized(signals, coder)
        first = None if start is None else _check_start(start, (n, len(D)), dtype)
        coder = coder.resolve_for(signals, D, threads)
        codes, rounds, gap = encode_signals(signals, D, coder, groups, first, threads, return_info)
    if codes.nnz == 0 and n:
        warn_of_zeros(coder, signals.X, D)
    elif n and (shortfall := missed_nonzeros(coder, codes.nnz / n)) is not None:
        warn(shortfall)
    if gap is None:
        return codes
    return codes, Info(gap, rounds, np.diff(codes.indptr), coder.fixed())


def encode_signals(
    signals: Signals,
    D: Array,
    coder: Coder,
    groups: Any = None,
    start: Codes | None = None,
    n_threads: int = 1,
    certified: bool = False,
) -> tuple[Any, Array, Array | None]:
    """Return codes of checked signals as a csr_array, rounds, and gaps if ``certified``.

    The coder must be resolved. The order of the rows is kept, whatever the groups.
    """
    signals, order = in_groups(signals, groups, coder)
    if order is not None and start is not None:
        start = start.take(order)
    prepared = prepare(D, coder, n_threads)
    bounded = coder.error_bound() is not None
    coded = code_rows(signals, prepared, start, n_threads, numbered=True, measured=bounded)
    if bounded:
        warn_if_out_of_reach(coder, coded, D.dtype, signals.groups)
    warn_if_neither_limit(coder, coded.codes, signals, D)
    codes, rounds, gap = coded.codes, coded.rounds, None
    if certified:
        gap = gaps(signals, D, codes.as_csr(len(D)), coder)
        if coded.short is not None:  # these know better bounds on the optimum
            unit = _lengths(codes, signals, len(D)) if bounded else 0.5 * coded.norms
            known = (coded.short > 0) & np.isfinite(gap)
            gap = np.where(known, np.minimum(gap, coded.short * unit), gap)
    if order is not None:
        back = np.argsort(order)
        codes, rounds = codes.take(back), rounds[back]
        gap = None if gap is None else gap[back]
    return codes.as_csr(len(D)), rounds, gap


def _lengths(codes: Codes, signals: Signals, n_atoms: int) -> Array:
    """Return ``Σ w_j|α_j|`` of each row."""
    sizes = abs(codes.as_csr(n_atoms)).astype(np.float64)
    if signals.penalty_weights is not None:
        sizes = sizes.multiply(np.nan_to_num(signals.penalty_weights, posinf=0.0))
    return np.asarray(sizes.sum(axis=1)).ravel()


def _check_start(start: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> Codes:
    start = csr_rows("start", start)
    if start.shape != shape:
        message = f"start must have shape {shape} (rows of X, atoms of D), got {start.shape}"
        raise ValueError(message)
    check_finite("start", start)
    start = as_floats(start, dtype)
    return Codes(start.indptr.astype(np.int64), start.indices.astype(np.int32), start.data.copy())
