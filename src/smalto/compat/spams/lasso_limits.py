"""What exact lassos lack of SPAMS's: a limit on nonzeros, the path, Gram matrices as input."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders import Coder, ErrorBound, L1Ball, Lasso, Ridge, lasso_path
from smalto.coders.codes import Codes
from smalto.threads import single_threaded_blas


def kinks(x: Array, D: Array, coder: Coder) -> Array:
    """Return the codes (p, k) at the kinks of the path of a signal, before its own code."""
    if isinstance(coder, Ridge):  # lambda1=0
        coder = Lasso(0.0, ridge=coder.lam)
    if isinstance(coder, Lasso):
        lam = float(coder.lam or 0.0)
        path = lasso_path(x, D, ridge=coder.ridge, positive=coder.positive, lam_end=lam)
        before = path.lams > lam
    else:
        path = lasso_path(x, D, positive=coder.positive)
    codes: Array = path.codes.toarray()
    if isinstance(coder, L1Ball):
        before = np.abs(codes).sum(axis=1) < coder.radius
    elif isinstance(coder, ErrorBound):
        before = ((x.astype(np.float64) - codes @ D.astype(np.float64)) ** 2).sum(
            axis=1
        ) > coder.eps
    return codes[before]


def of_signal(coder: Coder, i: int) -> Coder:
    """Return the coder of signal i, if bounds differ between signals."""
    if isinstance(coder, ErrorBound) and isinstance(coder.eps, tuple):
        return ErrorBound(coder.eps[i], coder.positive)
    return coder


def at_most(codes: Any, L: int, X: Rows, D: Array, coder: Coder, known: Any, weights: Any) -> Any:
    """Return the codes, those with more than L nonzeros replaced by points of their paths.

    Such a code becomes the last point of its path, on the way to the solution, that has at most L
    nonzeros. ``known`` (n, m) and ``weights`` (n, k) are those of the signals, or None; unknown
    entries of X are zero.
    """
    many = np.flatnonzero(np.diff(codes.indptr) > L)
    if not len(many):
        return codes
    indices, values = [], []
    with single_threaded_blas():  # the products are small
        for i in many:
            x = X[[i]].toarray()[0] if scipy.sparse.issparse(X) else X[i]
            atoms = D if known is None else D * known[i]
            size = np.ones(len(D)) if weights is None else 1.0 / weights[i]
            found = kinks(x, atoms * size[:, None], of_signal(coder, int(i)))
            code = found[np.flatnonzero(np.count_nonzero(found, axis=1) <= L)[-1]]
            indices.append(np.flatnonzero(code))
            values.append((code * size)[indices[-1]])
    ends = np.cumsum([0] + [len(places) for places in indices])
    limited = Codes(
        ends.astype(np.int64),
        np.concatenate(indices).astype(np.int32),
        np.concatenate(values).astype(codes.dtype),
    )
    whole = Codes(codes.indptr.astype(np.int64), codes.indices.astype(np.int32), codes.data)
    return whole.put(many, limited).as_csr(len(D))


def factor(Q: Any, q: Any) -> tuple[Array, Array]:
    """Return signals (n, k) and atoms (k, k) with Gram matrix Q and correlations q (k, n)."""
    Q, q = np.asarray(Q), np.asarray(q)
    dtype = np.result_type(Q, q)
    if not np.allclose(Q, Q.T, rtol=1e-5, atol=1e-5 * float(np.abs(Q).max(initial=0.0))):
        message = "Q must be symmetric: it is the Gram matrix of the atoms, D.T @ D"
        raise ValueError(message)
    sizes, V = np.linalg.eigh(Q.astype(np.float64))
    least = len(Q) * float(np.finfo(dtype).eps) * float(sizes.max(initial=0.0))
    if sizes.min(initial=0.0) < -10.0 * least:
        message = f"Q must be positive semidefinite, but has the eigenvalue {sizes.min():.3g}"
        raise ValueError(message)
    used = sizes > least
    roots, V = np.sqrt(sizes[used]), V[:, used]
    return ((q.T.astype(np.float64) @ V) / roots).astype(dtype), (V * roots).astype(dtype)
