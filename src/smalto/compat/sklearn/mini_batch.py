"""`MiniBatchDictionaryLearning` and `dict_learning_online`: a few samples in each step."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import validate_data

from smalto.checks import Array, check_integer, check_number
from smalto.coders import Lasso
from smalto.compat.sklearn.coding_estimators import CodingEstimator
from smalto.compat.sklearn.dictionary_learning import METHODS, Method, first_atoms
from smalto.compat.sklearn.options import check_choice, check_positive_codes, n_threads
from smalto.compat.sklearn.reports import observers
from smalto.compat.sklearn.sparse_coding import Algorithm
from smalto.compat.sklearn.stopping import AtomsAtRest, Plateau
from smalto.constraints import L2Ball
from smalto.estimators import DictionaryLearning
from smalto.learners import Online
from smalto.learning import Record, State
from smalto.learning.initial_state import as_seed
from smalto.sources import Stream


class MiniBatchDictionaryLearning(CodingEstimator):
    """Dictionary learning with a few samples in each step.

    Minimizes ``½‖X − CD‖² + alpha ‖C‖₁`` over codes C and atoms D of norm at most 1, by
    `smalto.DictionaryLearning` with `Online`.

    Parameters
    ----------
    n_components : int, optional
        Number k of atoms; by default the number of features.
    alpha : float, default 1
        Penalty of the codes, smalto's ``lam``.
    max_iter : int, default 1000
        Maximum number of passes over the data.
    fit_algorithm : {"lars", "cd"}
        Only checked: both are one exact method here. As in scikit-learn, "lars" has no
        non-negative codes.
    n_jobs : int, optional
        Number of threads; None and -1 stand for every core. Results do not depend on it.
    batch_size : int, default 256
        Number of samples in each step.
    shuffle : bool, default True
        Whether samples are put into random order before the first pass; then the last two passes
        count. If False, they are taken as they lie, and all passes count, as if each batch were
        given to `partial_fit`.
    dict_init : array (k, m), optional
        First dictionary, whose atoms are made shorter if their norm exceeds 1. By default
        distinct random samples.
    transform_algorithm : {"omp", "lasso_lars", "lasso_cd", "lars", "threshold"}
        The problem that `transform` solves, see `sparse_encode`.
    transform_n_nonzero_coefs : int, optional
        Number of nonzeros of "omp" and "lars"; by default a tenth of the features, at least 1.
    transform_alpha : float, optional
        Penalty of codes in `transform`; by default ``alpha``.
    verbose : bool or int, default False
        Whether to print a line in each step.
    split_sign : bool, default False
        Whether `transform` splits codes into their positive and their negative parts.
    random_state : int, RandomState or Generator, optional
        Determines the first dictionary and the order of the samples.
    positive_code : bool, default False
        Whether codes must not be negative.
    positive_dict : bool, default False
        Whether atoms must not be negative.
    transform_max_iter : int, default 1000
        Rounds of a lasso in `transform` after which there is a warning; codes are exact.
    callback : callable, optional
        Called after each step with a dictionary: ``i``, the number of the step from 0;
        ``n_steps``, their largest number; ``dictionary``, a copy; and ``batch_cost``.
    tol : float, default 1e-3
        Stop when a step changes the dictionary by at most this, in Frobenius norm divided by the
        number of atoms. 0 turns the test off.
    max_no_improvement : int or None, default 10
        Stop when the smoothed cost of batches has not fallen by 0.1 % in so many steps, and in
        so many tenths of a pass (of 100 steps, if it has more).

    Attributes
    ----------
    components_ : array (k, m)
        The dictionary, one atom per row.
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
    DictionaryLearning : All samples in each iteration.
    smalto.DictionaryLearning : The estimator of smalto, whose `transform` solves the same problem
        as its `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.compat.sklearn import MiniBatchDictionaryLearning
    >>> X = np.random.default_rng(0).standard_normal((2000, 16))
    >>> model = MiniBatchDictionaryLearning(20, transform_algorithm="lasso_lars", random_state=0)
    >>> model.fit(X).transform(X).shape
    (2000, 20)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1,
        max_iter: int = 1000,
        fit_algorithm: Method = "lars",
        n_jobs: int | None = None,
        batch_size: int = 256,
        shuffle: bool = True,
        dict_init: Any = None,
        transform_algorithm: Algorithm = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        verbose: bool | int = False,
        split_sign: bool = False,
        random_state: Any = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        transform_max_iter: int = 1000,
        callback: Any = None,
        tol: float = 1e-3,
        max_no_improvement: int | None = 10,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.fit_algorithm = fit_algorithm
        self.n_jobs = n_jobs
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.dict_init = dict_init
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.verbose = verbose
        self.split_sign = split_sign
        self.random_state = random_state
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.transform_max_iter = transform_max_iter
        self.callback = callback
        self.tol = tol
        self.max_no_improvement = max_no_improvement

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a dictionary from X, discarding any previous result.

        Parameters
        ----------
        X : array (n, m)
            Samples, one per row. float32 is computed in float32, everything else in float64.
        y : ignored

        Returns
        -------
        self
        """
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        n = len(X)
        size = min(check_integer("batch_size", self.batch_size), n)
        steps_per_pass = math.ceil(n / size)
        n_steps = check_integer("max_iter", self.max_iter, low=0) * steps_per_pass

        def values(state: State, record: Record) -> dict[str, Any]:
            return {
                "i": record.step - 1,
                "n_steps": n_steps,
                "dictionary": state.D.copy(),
                "batch_cost": record.batch_cost,
            }

        watching = observers(self.verbose, self.callback, n_steps, values)
        learner = Online(size, memory="two-epochs" if self.shuffle else "all")
        self._model = self._new_model(X, learner).set_params(
            max_steps=n_steps, callbacks=[*watching, AtomsAtRest(Plateau.of(self, n, size))]
        )
        if self.shuffle:
            X = X[np.random.default_rng(as_seed(self.random_state)).permutation(n)]
        batches = [X[rows] for rows in gen_batches(n, size)]
        self._set_result(self._model.fit(Stream(batches, read_ahead=0)))
        self._model.callbacks = []
        if n_steps == 0 and self.dict_init is not None:
            self.components_ = self._model.init  # as it was given, of any norm
        self.n_iter_ = math.ceil(self.n_steps_ / steps_per_pass)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Make one step, with all of X as one batch.

        Parameters
        ----------
        X : array (n, m)
            New samples, one per row.
        y : ignored

        Returns
        -------
        self
        """
        first = not hasattr(self, "components_")
        X = validate_data(self, X, reset=first, dtype=[np.float64, np.float32])
        if first:
            self._model = self._new_model(X, Online(len(X)))
        self._set_result(self._model.partial_fit(X))
        return self

    def _new_model(self, X: Array, learner: Online) -> DictionaryLearning:
        """Return smalto's estimator for this problem."""
        check_choice("fit_algorithm", self.fit_algorithm, METHODS)
        check_positive_codes(self.fit_algorithm, self.positive_code)
        k = X.shape[1] if self.n_components is None else self.n_components
        k = check_integer("n_components", k)
        return DictionaryLearning(
            k,
            coder=Lasso(
                check_number("alpha", self.alpha, low=0), positive=bool(self.positive_code)
            ),
            constraint=L2Ball(positive=bool(self.positive_dict)),
            learner=learner,
            init=None if self.dict_init is None else first_atoms(self.dict_init, k, X),
            n_threads=n_threads(self.n_jobs),
            random_state=self.random_state,
        )

    def _set_result(self, model: DictionaryLearning) -> None:
        self.components_ = model.components_
        self.n_steps_ = model.state_.step

    def _penalty(self) -> float | None:
        return self.alpha if self.transform_alpha is None else self.transform_alpha

    @property
    def _A(self) -> Array:
        """The statistics Σ αᵀα of the codes so far, weighted."""
        parts = self._model.state_.stats
        return sum(part.scale * part.A for part in parts).astype(self.components_.dtype)  # type: ignore[union-attr]

    @property
    def _B(self) -> Array:
        """The statistics Σ xᵀα of the samples and codes so far, weighted."""
        parts = self._model.state_.stats
        return sum(part.scale * part.B for part in parts).T.astype(self.components_.dtype)  # type: ignore[union-attr]


def dict_learning_online(
    X: Any,
    n_components: int | None = 2,
    *,
    alpha: float = 1,
    max_iter: int = 100,
    return_code: bool = True,
    dict_init: Any = None,
    callback: Any = None,
    batch_size: int = 256,
    verbose: bool = False,
    shuffle: bool = True,
    n_jobs: int | None = None,
    method: Method = "lars",
    random_state: Any = None,
    positive_dict: bool = False,
    positive_code: bool = False,
    method_max_iter: int = 1000,
    tol: float = 1e-3,
    max_no_improvement: int | None = 10,
) -> Any:
    """Learn a dictionary with a few samples in each step; return codes and dictionary.

    Parameters
    ----------
    X : array (n, m)
        Samples, one per row.
    n_components : int or None, default 2
        Number k of atoms; None for the number of features.
    alpha, max_iter, dict_init, callback, batch_size, verbose, shuffle, n_jobs, random_state, \
positive_dict, positive_code, tol, max_no_improvement
        As in `MiniBatchDictionaryLearning`.
    return_code : bool, default True
        Whether to return the codes.
    method : {"lars", "cd"}
        As ``fit_algorithm`` there.
    method_max_iter : int, default 1000
        As ``transform_max_iter`` there.

    Returns
    -------
    code : array (n, k)
        The codes, unless ``return_code=False``: then only the dictionary is returned.
    dictionary : array (k, m)
        The atoms, one per row.

    See Also
    --------
    MiniBatchDictionaryLearning : The same as an estimator.
    smalto.learn : The function of smalto.
    """
    model = MiniBatchDictionaryLearning(
        n_components,
        alpha=alpha,
        max_iter=max_iter,
        fit_algorithm=method,
        n_jobs=n_jobs,
        batch_size=batch_size,
        shuffle=shuffle,
        dict_init=dict_init,
        transform_algorithm="lasso_cd",
        verbose=verbose,
        random_state=random_state,
        positive_code=positive_code,
        positive_dict=positive_dict,
        transform_max_iter=method_max_iter,
        callback=callback,
        tol=tol,
        max_no_improvement=max_no_improvement,
    ).set_output(transform="default")
    model.fit(X)
    return (model.transform(X), model.components_) if return_code else model.components_
