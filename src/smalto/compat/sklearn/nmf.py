"""`NMF` and `non_negative_factorization`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from smalto.checks import Array, Rows, as_table, check_integer, check_number
from smalto.compat.sklearn.nmf_descent import Descent, error, exact_codes, start_codes
from smalto.compat.sklearn.nmf_start import (
    Penalties,
    check_loss,
    first_factors,
    given_components,
)
from smalto.compat.sklearn.options import check_choice
from smalto.compat.sklearn.reports import report
from smalto.threads import resolve_threads, single_threaded_blas
from smalto.warn import warn

Start = Literal["random", "nndsvd", "nndsvda", "nndsvdar", "custom"] | None


class _NMF(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """What both estimators share."""

    n_components: Any
    init: Start
    max_iter: int
    tol: float

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Factorize X, discarding any previous result.

        Parameters
        ----------
        X : array or sparse array (n, m)
            Samples, one per row, without negative entries.
        y : ignored
        **params
            ``W`` and ``H``, as for `fit_transform`.

        Returns
        -------
        self
        """
        self.fit_transform(X, **params)
        return self

    @abstractmethod
    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Array:
        """Factorize X, and return W."""

    def transform(self, X: Any) -> Array:
        """Return the best W for ``components_``: exact, and the same row by row.

        Parameters
        ----------
        X : array or sparse array (n, m)
            Samples, one per row, without negative entries.

        Returns
        -------
        array (n, k)
            One row of W per sample.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        check_non_negative(X, f"{type(self).__name__} (input X)")
        penalties = Penalties.of(self, X.shape[1])
        return exact_codes(X, self.components_.astype(X.dtype, copy=False), penalties, None)

    def inverse_transform(self, X: Any) -> Array:
        """Return ``W H`` for rows of W.

        Parameters
        ----------
        X : array or sparse array (n, k)
            Rows of W, as returned by `transform`.

        Returns
        -------
        array (n, m)
            One sample per row.
        """
        check_is_fitted(self)
        return np.asarray(as_table("X", X) @ self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        return validate_data(
            self,
            as_table("X", X),
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
        )

    def _set_result(self, X: Rows, W: Array, H: Array, n_iter: int) -> None:
        self.components_, self.n_iter_ = H, n_iter
        self.n_components_ = self._n_components = len(H)
        self.reconstruction_err_ = error(X, W, H)
        if n_iter >= self.max_iter and self.tol > 0:
            message = (
                f"Maximum number of iterations {self.max_iter} reached. "
                "Increase it to improve convergence."
            )
            warn(message, ConvergenceWarning)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class NMF(_NMF):
    """Non-negative matrix factorization ``X ≈ W H``, with scikit-learn's penalties.

    Minimizes ``½‖X − WH‖² + m alpha_W P(W) + n alpha_H P(H)`` over W ≥ 0 and H ≥ 0, with
    ``P(A) = l1_ratio ‖A‖₁ + (1 − l1_ratio)/2 ‖A‖²``, by alternating descent with smalto's kernels.

    Parameters
    ----------
    n_components : int, "auto" or None, default "auto"
        Number k of components; by default that of ``H`` with ``init="custom"``, else of features.
    init : {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}, optional
        The first H: random numbers, or non-negative parts of singular vectors, whose zeros are
        kept, or filled with the mean of X, or with small random numbers; "custom" takes ``W`` and
        ``H``. By default "nndsvda", or "random" for more components than samples or features.
        Unless it is given, W begins with what is best for H.
    solver : {"cd", "mu"}
        Only checked: both are one method here, which minimizes the squared error.
    beta_loss : 2 or "frobenius"
        Other losses raise NotImplementedError: use scikit-learn's own estimator.
    tol : float, default 1e-4
        Stop when the gradient with respect to H has become this share of the first one.
    max_iter : int, default 200
        Maximum number of iterations; if it is reached there is a ConvergenceWarning.
    random_state : int or RandomState, optional
        Determines the first H.
    alpha_W : float, default 0
        Penalty of W, times the number of features.
    alpha_H : float or "same"
        Penalty of H, times the number of samples.
    l1_ratio : float, default 0
        Share of the ℓ1 norm in both penalties.
    verbose : int, default 0
        Whether to print a line in each iteration.
    shuffle : bool, default False
        No effect: the order in which coordinates are updated is fixed, which is part of what makes
        the kernels fast.

    Attributes
    ----------
    components_ : array (k, m)
        The matrix H.
    n_components_ : int
        Number k of components.
    reconstruction_err_ : float
        Frobenius norm of ``X − WH``.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    MiniBatchNMF : A few samples in each step.
    smalto.NMF : The estimator of smalto: missing entries, sparse codes, constraints on atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.compat.sklearn import NMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((50, 3)) @ rng.random((3, 20))
    >>> model = NMF(3, max_iter=2000, random_state=0)
    >>> W = model.fit_transform(X)
    >>> bool(np.abs(X - W @ model.components_).max() < 0.01)
    True
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = "auto",
        *,
        init: Start = None,
        solver: Literal["cd", "mu"] = "cd",
        beta_loss: float | str = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
        alpha_W: float = 0.0,
        alpha_H: float | Literal["same"] = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.verbose = verbose
        self.shuffle = shuffle

    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Array:
        """Factorize X, and return W, as `transform` would.

        Parameters
        ----------
        X : array or sparse array (n, m)
            Samples, one per row, without negative entries. float32 is computed in float32,
            everything else in float64.
        y : ignored
        W : array (n, k), optional
            First W, with ``init="custom"``.
        H : array (k, m), optional
            First H, with ``init="custom"``.

        Returns
        -------
        array (n, k)
            The matrix W.
        """
        X = self._rows(X, reset=True)
        W, H = self._start(X, W, H)
        return self._descend(X, W, H)

    def _start(self, X: Rows, W: Any, H: Any) -> tuple[Array | None, Array]:
        check_choice("solver", self.solver, ("cd", "mu"))
        check_loss(self.beta_loss, self.solver)
        return first_factors(X, self.n_components, self.init, W, H, self.random_state)

    def _descend(self, X: Rows, W: Array | None, H: Array) -> Array:
        """Improve W and H until nothing more is gained; return the best W for the last H."""
        limit = check_integer("max_iter", self.max_iter)
        tol = check_number("tol", self.tol, low=0)
        penalties, threads = Penalties.of(self, X.shape[1]), resolve_threads(None)
        descent, codes = Descent(H, penalties, threads), start_codes(X, W, H)
        first, n_iter = 0.0, 0
        with single_threaded_blas():
            for n_iter in range(1, limit + 1):
                cost, violation = descent.step(codes, fresh=n_iter == 1 and W is None)
                report(self.verbose, f"iteration {n_iter}: cost {cost:.6g}")
                first = first or violation
                if violation <= tol * first:
                    break
        W = exact_codes(X, H, penalties, None)
        self._set_result(X, W, H, n_iter)
        return W


def non_negative_factorization(
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: int | Literal["auto"] | None = "auto",
    *,
    init: Start = None,
    update_H: bool = True,
    solver: Literal["cd", "mu"] = "cd",
    beta_loss: float | str = "frobenius",
    tol: float = 1e-4,
    max_iter: int = 200,
    alpha_W: float = 0.0,
    alpha_H: float | Literal["same"] = "same",
    l1_ratio: float = 0.0,
    random_state: Any = None,
    verbose: int = 0,
    shuffle: bool = False,
) -> tuple[Array, Array, int]:
    """Factorize ``X ≈ W H``, or find W for a given H.

    Parameters
    ----------
    X : array or sparse array (n, m)
        Samples, one per row, without negative entries.
    W : array (n, k), optional
        First W, with ``init="custom"``.
    H : array (k, m), optional
        First H, with ``init="custom"``; the H to keep, with ``update_H=False``.
    n_components, init, solver, beta_loss, tol, max_iter, alpha_W, alpha_H, l1_ratio, \
random_state, verbose, shuffle
        As in `NMF`.
    update_H : bool, default True
        Whether to find H too. If not, W is exact.

    Returns
    -------
    W : array (n, k)
        Rows of W, one per sample.
    H : array (k, m)
        The components.
    n_iter : int
        Number of iterations.

    See Also
    --------
    NMF : The same as an estimator.
    """
    model = NMF(
        n_components,
        init=init,
        solver=solver,
        beta_loss=beta_loss,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        alpha_W=alpha_W,
        alpha_H=alpha_H,
        l1_ratio=l1_ratio,
        verbose=verbose,
        shuffle=shuffle,
    )
    X = check_array(as_table("X", X), accept_sparse="csr", dtype=[np.float64, np.float32])
    if update_H:
        found = model.set_output(transform="default").fit_transform(X, W=W, H=H)
        return found, model.components_, model.n_iter_
    check_choice("solver", solver, ("cd", "mu"))
    check_loss(beta_loss, solver)
    H = given_components(X, n_components, W, H)
    check_non_negative(X, "NMF (input X)")
    return exact_codes(X, H, Penalties.of(model, X.shape[1]), None), H, 1
