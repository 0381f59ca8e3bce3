"""`SparsePCA` and `MiniBatchSparsePCA`: dictionary learning of the transposed data."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import scipy
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from smalto.checks import Array, check_integer, check_number
from smalto.coders import Lasso, Ridge, encode
from smalto.compat.sklearn.dictionary_learning import METHODS, Method, dict_learning
from smalto.compat.sklearn.mini_batch import MiniBatchDictionaryLearning
from smalto.compat.sklearn.options import check_choice, n_threads


class _SparsePCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """What both estimators share: centering, the form of components, ridge regression."""

    n_components: int | None
    alpha: float
    ridge_alpha: float
    max_iter: int
    tol: float
    method: Method
    n_jobs: int | None
    verbose: bool | int
    random_state: Any

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn components from X.

        Parameters
        ----------
        X : array (n, m)
            Samples, one per row; they need not be centered.
        y : ignored

        Returns
        -------
        self
        """
        check_choice("method", self.method, METHODS)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        k = check_integer("n_components", self.n_components or X.shape[1])
        self.mean_ = X.mean(axis=0)
        columns = np.ascontiguousarray((X - self.mean_).T)
        if columns.any():
            self.components_ = _normed(self._learn(columns, k))
        else:  # samples that are all the same have no components
            self.components_, self.n_iter_ = np.zeros((k, X.shape[1]), X.dtype), 0
        self.n_components_ = k
        return self

    def transform(self, X: Any) -> Array:
        """Return the scores ``argmin_α ‖x − μ − αD‖² + ridge_alpha ‖α‖²`` of the rows x of X.

        Parameters
        ----------
        X : array (n, m)
            Samples, one per row; they need not be centered.

        Returns
        -------
        array (n, k)
            One row of scores per sample.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        lam = check_number("ridge_alpha", self.ridge_alpha, low=0)
        coder = Ridge(lam) if lam > 0 else Lasso(0.0)
        X = X - self.mean_.astype(X.dtype)
        if not self.components_.any():
            return np.zeros((len(X), len(self.components_)), X.dtype)
        codes = encode(X, self.components_, coder, n_threads=n_threads(self.n_jobs))
        return np.asarray(codes.toarray())

    def inverse_transform(self, X: Any) -> Array:
        """Return the samples ``αD + μ`` for scores α.

        Parameters
        ----------
        X : array (n, k)
            Scores, as returned by `transform`.

        Returns
        -------
        array (n, m)
            One sample per row.
        """
        check_is_fitted(self)
        return np.asarray(check_array(X) @ self.components_ + self.mean_)

    @abstractmethod
    def _learn(self, columns: Array, k: int) -> Array:
        """Return k components (k, m), of any norm, for the features (m, n) of centered samples."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class SparsePCA(_SparsePCA):
    """Sparse PCA: ``min ½‖X − μ − UV‖² + alpha ‖V‖₁``, columns of U of norm at most 1.

    Parameters
    ----------
    n_components : int, optional
        Number k of components; by default the number of features.
    alpha : float, default 1
        Penalty of the components V: the larger, the sparser.
    ridge_alpha : float, default 0.01
        Penalty of the scores in `transform`.
    max_iter : int, default 1000
        Maximum number of iterations.
    tol : float, default 1e-8
        Stop when an iteration lowers the cost by less than this share of it.
    method : {"lars", "cd"}
        Only checked: both are one exact method here.
    n_jobs : int, optional
        Number of threads; None and -1 stand for every core. Results do not depend on it.
    U_init : array (n, k), optional
        First scores. By default singular vectors of the centered data.
    V_init : array (k, m), optional
        First components. They are the result if ``max_iter=0``, and without effect otherwise:
        components are exact for given scores.
    verbose : bool or int, default False
        Whether to print a line in each iteration.
    random_state : int, RandomState or Generator, optional
        Determines the atoms that replace unused ones.

    Attributes
    ----------
    components_ : array (k, m)
        The components, of norm 1 (or zero), their largest entries positive.
    error_ : list of float
        The cost after each iteration.
    n_components_ : int
        Number k of components.
    n_iter_ : int
        Number of iterations.
    mean_ : array (m,)
        Mean of the samples.
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    smalto.SparsePCA : The estimator of smalto: components of a wanted density, for streams.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.compat.sklearn import SparsePCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2)) * [3, 2] @ np.kron(np.eye(2), np.ones(3))
    >>> SparsePCA(2, random_state=0).fit(X).components_.astype(bool).astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [0, 0, 0, 1, 1, 1]])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1,
        ridge_alpha: float = 0.01,
        max_iter: int = 1000,
        tol: float = 1e-8,
        method: Method = "lars",
        n_jobs: int | None = None,
        U_init: Any = None,
        V_init: Any = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.ridge_alpha = ridge_alpha
        self.max_iter = max_iter
        self.tol = tol
        self.method = method
        self.n_jobs = n_jobs
        self.U_init = U_init
        self.V_init = V_init
        self.verbose = verbose
        self.random_state = random_state

    def _learn(self, columns: Array, k: int) -> Array:
        codes, _, self.error_, self.n_iter_ = dict_learning(
            columns,
            k,
            alpha=self.alpha,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.n_jobs,
            dict_init=_singular(columns, k) if self.U_init is None else np.asarray(self.U_init).T,
            code_init=None if self.V_init is None else np.asarray(self.V_init).T,
            verbose=self.verbose,
            random_state=self.random_state,
            return_n_iter=True,
        )
        return np.array(codes.T)


class MiniBatchSparsePCA(_SparsePCA):
    """Sparse PCA by steps with a few features each: ``min ½‖X − μ − UV‖² + alpha ‖V‖₁``.

    Columns of U have norm at most 1. As in scikit-learn, batches are of features, not of samples.

    Parameters
    ----------
    n_components : int, optional
        Number k of components; by default the number of features.
    alpha : float, default 1
        Penalty of the components V: the larger, the sparser.
    ridge_alpha : float, default 0.01
        Penalty of the scores in `transform`.
    max_iter : int, default 1000
        Maximum number of passes over the features.
    callback : callable, optional
        Called after each step, as in `MiniBatchDictionaryLearning`.
    batch_size : int, default 3
        Number of features in each step.
    verbose : bool or int, default False
        Whether to print a line in each step.
    shuffle : bool, default True
        Whether features are drawn in random order.
    n_jobs : int, optional
        Number of threads; None and -1 stand for every core. Results do not depend on it.
    method : {"lars", "cd"}
        Only checked: both are one exact method here.
    random_state : int, RandomState or Generator, optional
        Determines the order of the features.
    tol : float, default 1e-3
        Stop when a step changes the scores U by at most this, in Frobenius norm divided by k.
        0 turns the test off.
    max_no_improvement : int or None, default 10
        Stop when the smoothed cost of batches has not fallen by 0.1 % in so many steps, and in
        so many tenths of a pass (of 100 steps, if it has more).

    Attributes
    ----------
    components_ : array (k, m)
        The components, of norm 1 (or zero), their largest entries positive.
    n_components_ : int
        Number k of components.
    n_iter_ : int
        Number of passes over the features.
    mean_ : array (m,)
        Mean of the samples.
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    SparsePCA : All features in each iteration.
    smalto.SparsePCA : The estimator of smalto, whose batches are of samples.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1,
        ridge_alpha: float = 0.01,
        max_iter: int = 1000,
        callback: Any = None,
        batch_size: int = 3,
        verbose: bool | int = False,
        shuffle: bool = True,
        n_jobs: int | None = None,
        method: Method = "lars",
        random_state: Any = None,
        tol: float = 1e-3,
        max_no_improvement: int | None = 10,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.ridge_alpha = ridge_alpha
        self.max_iter = max_iter
        self.callback = callback
        self.batch_size = batch_size
        self.verbose = verbose
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.method = method
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement

    def _learn(self, columns: Array, k: int) -> Array:
        model = MiniBatchDictionaryLearning(
            k,
            alpha=self.alpha,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            batch_size=self.batch_size,
            shuffle=self.shuffle,
            dict_init=_singular(columns, k),
            transform_algorithm="lasso_cd",
            verbose=self.verbose,
            random_state=self.random_state,
            callback=self.callback,
            tol=self.tol,
            max_no_improvement=self.max_no_improvement,
        ).set_output(transform="default")
        with warnings.catch_warnings():
            # A first batch of few features often is of no use, in a corner of pictures.
            warnings.filterwarnings("ignore", "every code is zero", UserWarning)
            model.fit(columns)
        codes = model.transform(columns)
        self.n_iter_ = model.n_iter_
        return np.array(codes.T)


def _normed(components: Array) -> Array:
    """Return components of norm 1, or zero, with the sign that makes the largest entry positive."""
    norms = np.linalg.norm(components, axis=1)
    largest = components[np.arange(len(components)), np.abs(components).argmax(axis=1)]
    sizes = np.where(norms > 0, np.copysign(norms, largest), 1).astype(components.dtype)
    return np.asarray(components / sizes[:, None] + 0)  # without −0


def _singular(columns: Array, k: int) -> Array:
    """Return up to k right singular vectors, those of the largest singular values first."""
    return np.asarray(scipy.linalg.svd(columns, full_matrices=False)[2][:k])
