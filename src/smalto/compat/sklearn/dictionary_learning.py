"""`DictionaryLearning` and `dict_learning`: all samples in each iteration."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from smalto.checks import Array, check_integer, check_number
from smalto.coders import Lasso
from smalto.compat.sklearn.coding_estimators import CodingEstimator
from smalto.compat.sklearn.options import check_choice, check_positive_codes, n_threads
from smalto.compat.sklearn.reports import observers
from smalto.compat.sklearn.sparse_coding import Algorithm
from smalto.compat.sklearn.stopping import SmallGain
from smalto.constraints import L2Ball
from smalto.learners import Batch
from smalto.learning import Record, State, learn

Method = Literal["lars", "cd"]
METHODS = ("lars", "cd")
REPORT_EVERY = 5  # iterations between two calls of the user's function


class Learned(NamedTuple):
    """What `learn_all` returns."""

    D: Array
    costs: list[float]
    n_iter: int


class DictionaryLearning(CodingEstimator):
    """Dictionary learning with all samples in each iteration.

    Minimizes ``½‖X − CD‖² + alpha ‖C‖₁`` over codes C and atoms D of norm at most 1, by
    `smalto.learn` with `Batch`.

    Parameters
    ----------
    n_components : int, optional
        Number k of atoms; by default the number of features.
    alpha : float, default 1
        Penalty of the codes, smalto's ``lam``.
    max_iter : int, default 1000
        Maximum number of iterations.
    tol : float, default 1e-8
        Stop when an iteration lowers the cost by less than this share of it.
    fit_algorithm : {"lars", "cd"}
        Only checked: both are one exact method here. As in scikit-learn, "lars" has no
        non-negative codes.
    transform_algorithm : {"omp", "lasso_lars", "lasso_cd", "lars", "threshold"}
        The problem that `transform` solves, see `sparse_encode`.
    transform_n_nonzero_coefs : int, optional
        Number of nonzeros of "omp" and "lars"; by default a tenth of the features, at least 1.
    transform_alpha : float, optional
        Penalty of codes in `transform`; by default ``alpha``.
    n_jobs : int, optional
        Number of threads; None and -1 stand for every core. Results do not depend on it.
    code_init : array (n, k), optional
        First codes. They are returned if ``max_iter=0``, and without effect otherwise: codes are
        exact.
    dict_init : array (k, m), optional
        First dictionary, also without ``code_init``; its atoms are made shorter if their norm
        exceeds 1. By default distinct random samples.
    callback : callable, optional
        Called in every fifth iteration with a dictionary: ``ii``, the number of the iteration
        from 0; ``dictionary``, a copy; ``current_cost`` and the list ``errors`` of all costs.
    verbose : bool or int, default False
        Whether to print a line in each iteration.
    split_sign : bool, default False
        Whether `transform` splits codes into their positive and their negative parts.
    random_state : int, RandomState or Generator, optional
        Determines the first dictionary.
    positive_code : bool, default False
        Whether codes must not be negative.
    positive_dict : bool, default False
        Whether atoms must not be negative.
    transform_max_iter : int, default 1000
        Rounds of a lasso in `transform` after which there is a warning; codes are exact.

    Attributes
    ----------
    components_ : array (k, m)
        The dictionary, one atom per row.
    error_ : list of float
        The cost of all samples after each iteration.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    MiniBatchDictionaryLearning : Many small steps, for more samples.
    smalto.DictionaryLearning : The estimator of smalto, whose `transform` solves the same problem
        as its `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.compat.sklearn import DictionaryLearning
    >>> X = np.random.default_rng(0).standard_normal((200, 16))
    >>> model = DictionaryLearning(20, transform_algorithm="lasso_lars", random_state=0)
    >>> model.fit(X).transform(X).shape
    (200, 20)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1,
        max_iter: int = 1000,
        tol: float = 1e-8,
        fit_algorithm: Method = "lars",
        transform_algorithm: Algorithm = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        n_jobs: int | None = None,
        code_init: Any = None,
        dict_init: Any = None,
        callback: Any = None,
        verbose: bool | int = False,
        split_sign: bool = False,
        random_state: Any = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        transform_max_iter: int = 1000,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.fit_algorithm = fit_algorithm
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.n_jobs = n_jobs
        self.code_init = code_init
        self.dict_init = dict_init
        self.callback = callback
        self.verbose = verbose
        self.split_sign = split_sign
        self.random_state = random_state
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.transform_max_iter = transform_max_iter

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a dictionary from X.

        Parameters
        ----------
        X : array (n, m)
            Samples, one per row. float32 is computed in float32, everything else in float64.
        y : ignored

        Returns
        -------
        self
        """
        check_choice("fit_algorithm", self.fit_algorithm, METHODS)
        check_positive_codes(self.fit_algorithm, self.positive_code)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        learned = learn_all(
            X,
            X.shape[1] if self.n_components is None else self.n_components,
            self.alpha,
            first=self.dict_init,
            max_iter=self.max_iter,
            tol=self.tol,
            positive_code=self.positive_code,
            positive_dict=self.positive_dict,
            callback=self.callback,
            verbose=self.verbose,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        self.components_, self.error_, self.n_iter_ = learned
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Learn a dictionary from X, and return the codes of learning.

        They solve the lasso, whatever ``transform_algorithm`` is, and are not split.

        Parameters
        ----------
        X : array (n, m)
            Samples, one per row.
        y : ignored

        Returns
        -------
        array (n, k)
            One code per row.
        """
        self.fit(X)
        if self.max_iter == 0 and self.code_init is not None:
            given = check_array(self.code_init, dtype=self.components_.dtype, copy=True)
            return np.asarray(given)
        return self._codes(X, "lasso_cd", self.alpha)

    def _penalty(self) -> float | None:
        return self.alpha if self.transform_alpha is None else self.transform_alpha


def dict_learning(
    X: Any,
    n_components: int,
    *,
    alpha: float,
    max_iter: int = 100,
    tol: float = 1e-8,
    method: Method = "lars",
    n_jobs: int | None = None,
    dict_init: Any = None,
    code_init: Any = None,
    callback: Any = None,
    verbose: bool | int = False,
    random_state: Any = None,
    return_n_iter: bool = False,
    positive_dict: bool = False,
    positive_code: bool = False,
    method_max_iter: int = 1000,
) -> Any:
    """Learn a dictionary with all samples in each iteration; return codes and dictionary.

    Parameters
    ----------
    X : array (n, m)
        Samples, one per row.
    n_components : int or None
        Number k of atoms.
    alpha, max_iter, tol, n_jobs, dict_init, code_init, callback, verbose, random_state, \
positive_dict, positive_code
        As in `DictionaryLearning`.
    method : {"lars", "cd"}
        As ``fit_algorithm`` there.
    return_n_iter : bool, default False
        Whether to return also the number of iterations.
    method_max_iter : int, default 1000
        As ``transform_max_iter`` there.

    Returns
    -------
    code : array (n, k)
        The codes.
    dictionary : array (k, m)
        The atoms, one per row.
    errors : list of float
        The cost of all samples after each iteration.
    n_iter : int
        If asked for: the number of iterations.

    See Also
    --------
    DictionaryLearning : The same as an estimator.
    smalto.learn : The function of smalto.
    """
    model = DictionaryLearning(
        n_components,
        alpha=alpha,
        max_iter=max_iter,
        tol=tol,
        fit_algorithm=method,
        n_jobs=n_jobs,
        dict_init=dict_init,
        code_init=code_init,
        callback=callback,
        verbose=verbose,
        random_state=random_state,
        positive_dict=positive_dict,
        positive_code=positive_code,
        transform_max_iter=method_max_iter,
    ).set_output(transform="default")
    found = (model.fit_transform(X), model.components_, model.error_)
    return (*found, model.n_iter_) if return_n_iter else found


def learn_all(
    X: Array,
    n_atoms: int,
    alpha: float,
    *,
    first: Any,
    max_iter: int,
    tol: float,
    positive_code: bool = False,
    positive_dict: bool = False,
    callback: Any = None,
    verbose: Any = False,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Learned:
    """Return the dictionary that batch learning finds, the costs and the number of iterations."""
    n_atoms = check_integer("n_components", n_atoms)
    coder = Lasso(check_number("alpha", alpha, low=0), positive=bool(positive_code))
    steps = check_integer("max_iter", max_iter, low=0)
    gain = SmallGain(check_number("tol", tol, low=0))

    def values(state: State, record: Record) -> dict[str, Any]:
        return {
            "ii": record.step - 1,
            "dictionary": state.D.copy(),
            "current_cost": gain.costs[-1],
            "errors": gain.costs,
        }

    if callback is not None:
        callback = _every_fifth(callback)
    init = None if first is None else first_atoms(first, n_atoms, X)
    if steps == 0 and init is not None:
        return Learned(init, [], 0)  # as it was given, of any norm
    result = learn(
        X,
        n_atoms,
        coder,
        L2Ball(positive=bool(positive_dict)),
        Batch(),
        init=init,
        max_steps=steps,
        callbacks=[gain, *observers(verbose, callback, steps, values)],
        n_threads=n_threads(n_jobs),
        random_state=random_state,
    )
    return Learned(result.D, gain.costs, len(gain.costs))


def first_atoms(first: Any, n_atoms: int, X: Array) -> Array:
    """Return ``dict_init`` with as many atoms as wanted: without the last ones, or with samples."""
    given = check_array(first, dtype=X.dtype)
    if given.shape[1] != X.shape[1]:
        message = f"dict_init has {given.shape[1]} features, expected {X.shape[1]} as in X"
        raise ValueError(message)
    more = X[np.arange(max(0, n_atoms - len(given))) % len(X)]
    return np.vstack([given[:n_atoms], more])


def _every_fifth(callback: Any) -> Any:
    def call(values: dict[str, Any]) -> None:
        if values["ii"] % REPORT_EVERY == 0:
            callback(values)

    return call
