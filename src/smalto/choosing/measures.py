"""Measures of a dictionary and its codes, one function each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Matrix, as_rows, check_finite, check_number, csr_rows, float_dtype
from smalto.choosing.held_out import row_slices
from smalto.choosing.matching import match, unit_atoms

_ROWS_AT_ONCE = 4096
_FEW = 8  # units of rounding that count as nothing


def r2(X: Any, codes: Matrix, D: Matrix) -> float:
    """Return the coefficient of determination of ``codes @ D`` as an approximation of X.

    Parameters
    ----------
    X : array or CSR array (n, m)
        Signals; NaN means a missing entry, which does not count.
    codes : array or sparse array (n, k)
        One code per row.
    D : array (k, m)
        The dictionary, one atom per row.

    Returns
    -------
    float
        1 for a perfect approximation, 0 for one as good as the mean of each feature. If features
        are constant up to rounding, it is 1 if the error is no more than rounding, and else 0.

    See Also
    --------
    quality : All measures of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.choosing import r2
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> r2(X, X, np.eye(2))
    1.0
    """
    X, C = as_rows("X", X), _codes(codes)
    eps = max(float(np.finfo(float_dtype(part.dtype)).eps) for part in (X, C, as_rows("D", D)))
    D = _dictionary(D)
    if C.shape[0] != X.shape[0] or C.shape[1] != len(D) or X.shape[1] != D.shape[1]:
        message = f"X {X.shape}, codes {C.shape} and D {D.shape} do not fit together"
        raise ValueError(message)
    m = X.shape[1]
    left, norm, sums, squares, counts = 0.0, 0.0, np.zeros(m), np.zeros(m), np.zeros(m)
    shift = None
    for rows in row_slices(X.shape[0], _ROWS_AT_ONCE):
        part = X[rows].toarray() if scipy.sparse.issparse(X) else np.asarray(X[rows])
        part = part.astype(np.float64, copy=False)
        known = ~np.isnan(part)
        error = np.where(known, part - C[rows] @ D, 0.0)
        left += float(np.vdot(error, error))
        values = np.where(known, part, 0.0)
        norm += float(np.vdot(values, values))
        if shift is None:  # sums of differences from it lose less to rounding
            shift = values.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        moved = np.where(known, part - shift, 0.0)
        sums += moved.sum(axis=0)
        squares += (moved * moved).sum(axis=0)
        counts += known.sum(axis=0)
    total = float((squares - sums**2 / np.maximum(counts, 1.0)).sum())
    if not total > (_FEW * np.finfo(np.float64).eps) ** 2 * norm:
        return 1.0 if left <= _FEW * eps * norm else 0.0
    return 1.0 - left / total


def coherence(D: Matrix) -> float:
    """Return the largest absolute cosine between two atoms.

    Parameters
    ----------
    D : array (k, m)
        The dictionary, one atom per row.

    Returns
    -------
    float
        From 0 (all atoms orthogonal) to 1 (two are the same, up to scale and sign).

    See Also
    --------
    duplicate_atoms : Which ones are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.choosing import coherence
    >>> coherence(np.array([[1.0, 0.0], [3.0, 4.0]]))
    0.6
    """
    cosines = _cosines(_dictionary(D))
    return float(min(cosines.max(), 1.0)) if len(cosines) > 1 else 0.0


def duplicate_atoms(D: Matrix, min_similarity: float = 0.99) -> list[tuple[int, int]]:
    """Return the pairs of atoms that are the same up to scale and sign.

    Parameters
    ----------
    D : array (k, m)
        The dictionary, one atom per row.
    min_similarity : float in (0, 1], default 0.99
        Absolute cosine from which on two atoms are the same.

    Returns
    -------
    list of (int, int)
        Numbers of two atoms each, the smaller one first.

    See Also
    --------
    coherence : The largest absolute cosine.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.choosing import duplicate_atoms
    >>> duplicate_atoms(np.array([[1.0, 0.0], [0.0, 1.0], [-2.0, 0.0]]))
    [(0, 2)]
    """
    least = check_number("min_similarity", min_similarity, low=0, high=1, strict=True)
    pairs = np.argwhere(np.triu(_cosines(_dictionary(D)) >= least - 1e-12, 1))
    return [(int(i), int(j)) for i, j in pairs]


def dead_atoms(codes: Matrix) -> list[int]:
    """Return the numbers of the atoms that no code uses.

    Parameters
    ----------
    codes : array or sparse array (n, k)
        One code per row.

    Returns
    -------
    list of int

    See Also
    --------
    smalto.plot.atom_use : How much each atom is used.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.choosing import dead_atoms
    >>> dead_atoms(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]]))
    [1]
    """
    C = _codes(codes)
    used = np.zeros(C.shape[1], np.bool_)
    used[C.indices[C.data != 0]] = True
    return [int(j) for j in np.flatnonzero(~used)]


def effective_rank(codes: Matrix, D: Matrix) -> float:
    """Return the effective rank of the approximations ``codes @ D``.

    It is the exponential of the entropy of their normalized singular values (Roy and Vetterli
    2007): r if r of them are equal and the others zero, less if they differ in size.

    Parameters
    ----------
    codes : array or sparse array (n, k)
        One code per row.
    D : array (k, m)
        The dictionary, one atom per row.

    Returns
    -------
    float
        From 1 to the number of atoms; 0 if all codes are zero.

    See Also
    --------
    quality : All measures of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.choosing import effective_rank
    >>> round(effective_rank(np.eye(3), np.eye(3)), 6)
    3.0
    """
    C, D = _codes(codes).astype(np.float64), _dictionary(D)
    if C.shape[1] != len(D):
        message = f"codes {C.shape} and D {D.shape} do not fit together"
        raise ValueError(message)
    A, G = (C.T @ C).toarray(), D @ D.T
    values, vectors = np.linalg.eigh(A)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(root.T @ G @ root), 0.0))
    singular = singular[singular > 1e-7 * singular.max(initial=0.0)]
    if not len(singular):
        return 0.0
    shares = singular / singular.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def matched_similarity(D: Matrix, others: Sequence[Matrix]) -> Array:
    """Return how similar each atom is to its match in other dictionaries, on average.

    Parameters
    ----------
    D : array (k, m)
        The dictionary, one atom per row.
    others : sequence of arrays (k', m)
        Dictionaries of other starts, or of parts of the data. Atoms are matched one to one, such
        that the sum of absolute cosines is largest.

    Returns
    -------
    array (k,)
        Mean absolute cosine of each atom with its matches; 0 counts where it has none.

    See Also
    --------
    smalto.consensus : Many starts at once.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.choosing import matched_similarity
    >>> matched_similarity(np.eye(2), [np.array([[0.0, -2.0], [3.0, 0.0]])])
    array([1., 1.])
    """
    D = _dictionary(D)
    if not len(others):
        message = "others must have at least one dictionary, got none"
        raise ValueError(message)
    sums = np.zeros(len(D))
    for number, other in enumerate(others):
        E = _dictionary(other, f"others[{number}]")
        if E.shape[1] != D.shape[1]:
            message = f"others[{number}] has {E.shape[1]} features, D has {D.shape[1]}"
            raise ValueError(message)
        # Rows of zeros match what is left over if there are fewer atoms.
        wide = np.vstack([unit_atoms(E), np.zeros((max(0, len(D) - len(E)), D.shape[1]))])
        sums += np.abs(match(wide, unit_atoms(D))[1])
    return np.asarray(np.minimum(sums / len(others), 1.0))


def _cosines(D: Array) -> Array:
    """Return absolute cosines between atoms, with zeros on the diagonal."""
    units = unit_atoms(D)
    cosines: Array = np.abs(units @ units.T)
    np.fill_diagonal(cosines, 0.0)
    return cosines


def _dictionary(D: Matrix, name: str = "D") -> Array:
    D = as_rows(name, D)
    check_finite(name, D)
    return np.asarray(D.toarray() if scipy.sparse.issparse(D) else D, np.float64)


def _codes(codes: Matrix) -> Any:
    table = csr_rows("codes", codes)
    check_finite("codes", table)
    return table
