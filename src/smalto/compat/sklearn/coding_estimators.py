"""Estimators whose `transform` codes signals over a dictionary, and `SparseCoder`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from smalto.checks import Array
from smalto.compat.sklearn.sparse_coding import Algorithm, sparse_encode


class CodingEstimator(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Abstract estimator with the parameters ``transform_*``, ``split_sign`` and their meaning."""

    transform_algorithm: Algorithm
    transform_n_nonzero_coefs: int | None
    transform_alpha: float | None
    split_sign: bool
    n_jobs: int | None
    positive_code: bool
    transform_max_iter: int

    def transform(self, X: Any) -> Array:
        """Return codes of the rows of X, by ``transform_algorithm``.

        Parameters
        ----------
        X : array (n, m)
            Signals, one per row.

        Returns
        -------
        array (n, k), or (n, 2k) if ``split_sign``
            One code per row: with ``split_sign`` its positive part, then its negative part.
        """
        check_is_fitted(self)
        return self._split(self._codes(X, self.transform_algorithm))

    def inverse_transform(self, X: Any) -> Array:
        """Return the signals ``αD`` for codes α.

        Parameters
        ----------
        X : array (n, k), or (n, 2k) if ``split_sign``
            Codes, as returned by `transform`.

        Returns
        -------
        array (n, m)
            One signal per row.
        """
        check_is_fitted(self)
        D = self._atoms()
        codes = check_array(X, dtype=[np.float64, np.float32])
        width = len(D) * (2 if self.split_sign else 1)
        if codes.shape[1] != width:
            message = (
                "X must have one column for each component"
                f"{' and sign' if self.split_sign else ''}. Expected {width}, got {codes.shape[1]}."
            )
            raise ValueError(message)
        if self.split_sign:
            codes = codes[:, : len(D)] - codes[:, len(D) :]
        return np.asarray(codes @ D)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _atoms(self) -> Array:
        """Return the dictionary."""
        return self.components_  # type: ignore[no-any-return]

    def _penalty(self) -> float | None:
        """Return the penalty of codes."""
        return self.transform_alpha

    def _codes(self, X: Any, algorithm: Algorithm, alpha: float | None = None) -> Array:
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return sparse_encode(
            X,
            self._atoms(),
            algorithm=algorithm,
            n_nonzero_coefs=self.transform_n_nonzero_coefs,
            alpha=self._penalty() if alpha is None else alpha,
            max_iter=self.transform_max_iter,
            n_jobs=self.n_jobs,
            positive=self.positive_code,
        )

    def _split(self, codes: Array) -> Array:
        if not self.split_sign:
            return codes
        return np.hstack([np.maximum(codes, 0), np.maximum(-codes, 0)])

    @property
    def _n_features_out(self) -> int:
        return len(self._atoms())


class SparseCoder(CodingEstimator):
    """Codes of signals over a fixed dictionary, as an estimator.

    Parameters
    ----------
    dictionary : array (k, m)
        Atoms, one per row.
    transform_algorithm : {"omp", "lasso_lars", "lasso_cd", "lars", "threshold"}
        The problem, see `sparse_encode`.
    transform_n_nonzero_coefs : int, optional
        Number of nonzeros of "omp" and "lars"; by default a tenth of the features, at least 1.
    transform_alpha : float, optional
        Penalty of the lassos, and threshold; by default 1.
    split_sign : bool, default False
        Whether codes are split into their positive and their negative parts.
    n_jobs : int, optional
        Number of threads; None and -1 stand for every core. The codes do not depend on it.
    positive_code : bool, default False
        Whether codes must not be negative; not for "lars" and "omp".
    transform_max_iter : int, default 1000
        Rounds of a lasso after which there is a warning; it is solved exactly in any case.

    Attributes
    ----------
    n_components_ : int
        Number k of atoms.
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    sparse_encode : The same as a function.
    smalto.encode : The function of smalto, with sparse codes.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.compat.sklearn import SparseCoder
    >>> SparseCoder(np.eye(3), transform_n_nonzero_coefs=1).fit_transform([[1.0, -3.0, 2.0]])
    array([[ 0., -3.,  0.]])
    """

    def __init__(
        self,
        dictionary: Any,
        *,
        transform_algorithm: Algorithm = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        split_sign: bool = False,
        n_jobs: int | None = None,
        positive_code: bool = False,
        transform_max_iter: int = 1000,
    ) -> None:
        self.dictionary = dictionary
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.split_sign = split_sign
        self.n_jobs = n_jobs
        self.positive_code = positive_code
        self.transform_max_iter = transform_max_iter

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that X has as many features as the dictionary; nothing is learned.

        Parameters
        ----------
        X : array (n, m)
            Signals, one per row.
        y : ignored

        Returns
        -------
        self
        """
        X = validate_data(self, X)
        n_features = self._atoms().shape[1]
        if X.shape[1] != n_features:
            message = (
                "Dictionary and X have different numbers of features: "
                f"{n_features} and {X.shape[1]}"
            )
            raise ValueError(message)
        return self

    @property
    def n_components_(self) -> int:
        """Number of atoms."""
        return len(self._atoms())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _atoms(self) -> Array:
        return np.asarray(check_array(self.dictionary, dtype=[np.float64, np.float32]))
