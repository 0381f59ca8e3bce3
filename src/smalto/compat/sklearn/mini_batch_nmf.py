"""`MiniBatchNMF`: NMF with a few samples in each step."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_non_negative

from smalto.checks import Array, Rows, check_integer, check_number
from smalto.compat.sklearn.nmf import _NMF, Start
from smalto.compat.sklearn.nmf_descent import Descent, exact_codes, start_codes
from smalto.compat.sklearn.nmf_start import Penalties, check_loss, first_factors
from smalto.compat.sklearn.reports import report
from smalto.compat.sklearn.stopping import Plateau
from smalto.threads import resolve_threads, single_threaded_blas


class MiniBatchNMF(_NMF):
    """Non-negative matrix factorization ``X ≈ W H`` with a few samples in each step.

    Minimizes the same as `NMF`. Each step finds the rows of W of a batch, adds them to the
    statistics of the past, and improves H.

    Parameters
    ----------
    n_components, init, beta_loss, alpha_W, alpha_H, l1_ratio, random_state
        As in `NMF`.
    batch_size : int, default 1024
        Number of samples in each step.
    tol : float, default 1e-4
        Stop when a step changes H by at most this share of its norm. 0 turns the test off.
    max_no_improvement : int or None, default 10
        Stop when the smoothed cost of batches has not fallen by 0.1 % in so many steps, and in
        so many tenths of a pass (of 100 steps, if it has more).
    max_iter : int, default 200
        Maximum number of passes; if it is reached there is a ConvergenceWarning.
    forget_factor : float, default 0.7
        How much a sample counts one pass later: 0 forgets all but the last batch, 1 nothing.
    fresh_restarts : bool, default False
        Whether the rows of W of a batch start anew in each step, instead of from the last pass.
    fresh_restarts_max_iter : int, default 30
        No effect: rows that start anew are solved to the accuracy of all others.
    transform_max_iter : int, optional
        No effect: `transform` is exact.
    verbose : int, default 0
        Whether to print a line in each step.

    Attributes
    ----------
    components_ : array (k, m)
        The matrix H.
    n_components_ : int
        Number k of components.
    reconstruction_err_ : float
        Frobenius norm of ``X − WH``.
    n_iter_ : int
        Number of passes over the data.
    n_steps_ : int
        Number of steps.
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    NMF : All samples in each iteration.
    smalto.NMF : The estimator of smalto, with `partial_fit` for streams.
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = "auto",
        *,
        init: Start = None,
        batch_size: int = 1024,
        beta_loss: float | str = "frobenius",
        tol: float = 1e-4,
        max_no_improvement: int | None = 10,
        max_iter: int = 200,
        alpha_W: float = 0.0,
        alpha_H: float | Literal["same"] = "same",
        l1_ratio: float = 0.0,
        forget_factor: float = 0.7,
        fresh_restarts: bool = False,
        fresh_restarts_max_iter: int = 30,
        transform_max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.batch_size = batch_size
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.max_iter = max_iter
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.forget_factor = forget_factor
        self.fresh_restarts = fresh_restarts
        self.fresh_restarts_max_iter = fresh_restarts_max_iter
        self.transform_max_iter = transform_max_iter
        self.random_state = random_state
        self.verbose = verbose

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
        n = X.shape[0]
        size, keep = self._pace(n)
        batches = list(gen_batches(n, size))
        n_steps = check_integer("max_iter", self.max_iter) * len(batches)
        plateau = Plateau.of(self, n, size)
        parts = [start_codes(X[rows], None if W is None else W[rows], H) for rows in batches]
        step = 0
        with single_threaded_blas():
            for step, codes in zip(range(1, n_steps + 1), itertools.cycle(parts), strict=False):
                before = self._descent.H.copy()
                if self.fresh_restarts:
                    codes.ahead[:] = 0
                fresh = self.fresh_restarts or (W is None and step <= len(parts))
                cost = self._descent.step(codes, fresh=fresh, keep=keep)[0] / codes.n
                report(self.verbose, f"step {step} of at most {n_steps}: cost {cost:.6g}")
                size_H = float(np.linalg.norm(self._descent.H))
                moved = float(np.linalg.norm(self._descent.H - before)) / (size_H or 1.0)
                if plateau.ends(codes.n, cost, moved):
                    break
        best = exact_codes(X, H, self._descent.penalties, None)
        self.n_steps_ = step
        self._set_result(X, best, H, math.ceil(step / len(batches)))
        return best

    def partial_fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Self:
        """Make one step, with all of X as one batch.

        Parameters
        ----------
        X : array or sparse array (n, m)
            New samples, one per row, without negative entries.
        y : ignored
        W, H : optional
            First factors, with ``init="custom"`` in the first call.

        Returns
        -------
        self
        """
        first = not hasattr(self, "components_")
        X = self._rows(X, reset=first)
        check_non_negative(X, "MiniBatchNMF (input X)")
        if first:
            W, self.components_ = self._start(X, W, H)
            self.n_steps_ = 0
        X = X.astype(self.components_.dtype, copy=False)
        H = self._descent.H
        codes = start_codes(X, None, H)
        with single_threaded_blas():
            self._descent.step(codes, fresh=True, keep=self._pace(X.shape[0])[1])
        self.components_ = H
        self.n_components_ = self._n_components = len(H)
        self.n_steps_ += 1
        return self

    def _start(self, X: Rows, W: Any, H: Any) -> tuple[Array | None, Array]:
        """Begin a descent; return the first factors."""
        check_loss(self.beta_loss)
        W, H = first_factors(X, self.n_components, self.init, W, H, self.random_state)
        self._descent = Descent(H, Penalties.of(self, X.shape[1]), resolve_threads(None))
        return W, H

    def _pace(self, n: int) -> tuple[int, float]:
        """Return the size of batches of n samples, and how much the past counts after one."""
        size = min(check_integer("batch_size", self.batch_size), n)
        factor = check_number("forget_factor", self.forget_factor, low=0, high=1)
        return size, factor ** (size / n)
