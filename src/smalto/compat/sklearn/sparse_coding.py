"""`sparse_encode`: the codes of signals over a dictionary, by one of scikit-learn's five names."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from smalto.checks import Array, check_integer, check_number
from smalto.coders import OMP, Coder, Lasso, encode, lasso_path
from smalto.compat.sklearn.options import check_choice, check_positive_codes, n_threads
from smalto.threads import single_threaded_blas
from smalto.warn import warn

Algorithm = Literal["lasso_lars", "lasso_cd", "lars", "omp", "threshold"]
ALGORITHMS = ("lasso_lars", "lasso_cd", "lars", "omp", "threshold")
ENOUGH_ROUNDS = 1000  # no lasso takes more, so limits from here on need not be watched


def sparse_encode(
    X: Any,
    dictionary: Any,
    *,
    gram: Any = None,
    cov: Any = None,
    algorithm: Algorithm = "lasso_lars",
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    copy_cov: bool = True,
    init: Any = None,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    check_input: bool = True,
    verbose: int = 0,
    positive: bool = False,
) -> Array:
    """Return codes of the rows of X over a dictionary, as a dense array.

    Parameters
    ----------
    X : array (n, m)
        Signals, one per row.
    dictionary : array (k, m)
        Atoms, one per row, of any norm.
    gram : array (k, k), optional
        No effect: smalto computes ``D Dᵀ``, with the accuracy that it needs.
    cov : array (k, n), optional
        No effect: smalto computes ``D Xᵀ``.
    algorithm : {"lasso_lars", "lasso_cd", "lars", "omp", "threshold"}
        The problem. The two lassos are the same: the exact minimum of
        ``½‖x − αD‖² + alpha ‖α‖₁``. "lars" is the point of the path of the lasso where one more
        atom than ``n_nonzero_coefs`` would enter, "omp" textbook orthogonal matching pursuit,
        and "threshold" the correlations ``D x``, shrunk by ``alpha``.
    n_nonzero_coefs : int, optional
        Number of nonzeros of "lars" and "omp"; by default a tenth of the features, at least 1.
    alpha : float, optional
        Penalty of the lassos, and threshold; by default 1.
    copy_cov : bool, default True
        No effect: nothing is overwritten.
    init : array (n, k), optional
        No effect: exact codes do not depend on a start.
    max_iter : int, default 1000
        The lassos are solved exactly in any case. If that takes more rounds than this, a
        ConvergenceWarning says so.
    n_jobs : int, optional
        Number of threads; None and -1 stand for every core. The codes do not depend on it.
    check_input : bool, default True
        If False, NaN and infinity are looked for by smalto alone, which costs nothing more.
    verbose : int, default 0
        No effect: nothing is printed.
    positive : bool, default False
        Whether codes must not be negative; not for "lars" and "omp".

    Returns
    -------
    array (n, k)
        One code per row, in the dtype of X.

    See Also
    --------
    smalto.encode : The same with any coder, and sparse codes.
    SparseCoder : The same as an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.compat.sklearn import sparse_encode
    >>> sparse_encode(np.array([[3.0, 0.5]]), np.eye(2), alpha=1.0)
    array([[2., 0.]])
    """
    if check_input:
        X = check_array(X, dtype=[np.float64, np.float32])
        dictionary = check_array(dictionary, dtype=[np.float64, np.float32])
    if dictionary.shape[1] != X.shape[1]:
        message = (
            "Dictionary and X have different numbers of features: their shapes are "
            f"{dictionary.shape} and {X.shape}"
        )
        raise ValueError(message)
    check_choice("algorithm", algorithm, ALGORITHMS)
    check_positive_codes(algorithm, positive)
    check_integer("max_iter", max_iter, low=0)
    threads = n_threads(n_jobs)
    if algorithm in ("lars", "omp"):
        count = _nonzeros(n_nonzero_coefs, *dictionary.shape)
        if algorithm == "lars":
            return _lars(X, dictionary, count)
        coder: Coder = OMP(count, look_ahead=False)
        return np.asarray(encode(X, dictionary, coder, n_threads=threads).toarray())
    penalty = 1.0 if alpha is None else check_number("alpha", alpha, low=0)
    if algorithm == "threshold":
        return _shrunk(X @ dictionary.T.astype(X.dtype, copy=False), penalty, positive)
    coder = Lasso(penalty, positive=bool(positive))
    if max_iter >= ENOUGH_ROUNDS:
        return np.asarray(encode(X, dictionary, coder, n_threads=threads).toarray())
    codes, info = encode(X, dictionary, coder, n_threads=threads, return_info=True)
    _warn_of_rounds(int(np.max(info.iterations, initial=0)), max_iter)
    return np.asarray(codes.toarray())


def _nonzeros(asked: int | None, n_atoms: int, n_features: int) -> int:
    """Return the number of nonzeros of greedy codes, at most one per atom and per feature."""
    if asked is None:
        return min(max(n_features // 10, 1), n_atoms)
    return min(check_integer("n_nonzero_coefs", asked), n_atoms, n_features)


def _shrunk(correlations: Array, by: float, positive: bool) -> Array:
    """Return correlations moved towards zero, and without negative ones if ``positive``."""
    low = 0.0 if positive else -np.inf
    kept = np.clip(correlations, low, np.inf)
    return np.asarray(np.sign(kept) * np.maximum(np.abs(kept) - kept.dtype.type(by), 0))


def _lars(X: Array, D: Array, count: int) -> Array:
    """Return the points of lasso paths where atom number ``count + 1`` would enter."""
    codes = np.zeros((len(X), len(D)), X.dtype)
    with single_threaded_blas():  # the products are small
        for code, x in zip(codes, X, strict=True):
            if x.any():
                path = lasso_path(x, D)
                beyond = np.flatnonzero(path.nonzeros > count)
                last = beyond[0] - 1 if len(beyond) else len(path.lams) - 1
                code[:] = path.codes[[last]].toarray()[0]
    return codes


def _warn_of_rounds(rounds: int, max_iter: int) -> None:
    if rounds > max_iter:
        message = (
            f"max_iter={max_iter} is not enough to converge: exact codes took up to {rounds} "
            "rounds. They are returned nevertheless"
        )
        warn(message, ConvergenceWarning)
