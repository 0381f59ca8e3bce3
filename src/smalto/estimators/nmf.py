"""`NMF`: non-negative matrix factorization and non-negative sparse coding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from smalto.checks import Array, Rows, as_floats, as_rows, check_finite, check_number, float_dtype
from smalto.coders.base import Coder
from smalto.coders.coding import ROWS_AT_ONCE, code_rows, mean_cost
from smalto.coders.lasso import Lasso
from smalto.coders.preparing import prepare
from smalto.coders.scaling import largest_entry, number_exponent, shifted
from smalto.coders.signals import Missing, as_mask, as_signals, blocks, in_groups
from smalto.constraints import Constraint, ElasticNetBall, FusedLassoBall, L2Ball
from smalto.constraints.density import missed
from smalto.data_frames import check_columns
from smalto.estimators.all_or_nothing import all_or_nothing
from smalto.estimators.base import Factorization, Problem, takes_a_stream
from smalto.estimators.incomplete import (
    check_nonnegative,
    default_ridge,
    filled_samples,
    is_complete,
    missing_entries,
)
from smalto.estimators.nndsvd import nndsvd
from smalto.estimators.sklearn_callbacks import tasks_of, with_callbacks
from smalto.learning.alternating.descent import alternate, stages
from smalto.learning.alternating.variables import is_free
from smalto.learning.batches.convert import as_batches
from smalto.learning.batches.samples import as_sample_weight
from smalto.learning.callbacks.base import CallbackLike
from smalto.learning.dictionary.wanted_density import feasible, wants_density
from smalto.learning.initial_state import as_seed, initial_state
from smalto.learning.learners.base import Learner
from smalto.learning.learners.online import Online
from smalto.learning.memory.atom_order import by_energy, reorder
from smalto.learning.options import Replacement
from smalto.learning.run import Run
from smalto.learning.run_settings import RunSettings
from smalto.learning.stopping import Limits
from smalto.learning.validation import Validation
from smalto.threads import resolve_threads, single_threaded_blas
from smalto.warn import warn

EPOCHS = 200  # default limit for alternating descent
LEARNER_EPOCHS = 10  # default limit for a learner
FIRST_EPOCHS = 2  # of a learner, before alternating descent without sketches
_STARTS = ("samples", "random", "nndsvd", "nndsvda")


class NMF(Factorization):
    """Non-negative matrix factorization: ``min ½‖X − C D‖² + lam Σ C`` over C ≥ 0 and D ≥ 0.

    Each sample x (a row of X, without negative entries) is approximated by a sum of parts (rows
    of D) that only add, never cancel. With ``lam > 0`` this is non-negative sparse coding
    (Section 5.3 of the paper), with few parts per sample. Atoms have norm at most 1, which is no
    restriction if ``lam=0``. `transform` computes the exact codes of new samples.

    Parameters
    ----------
    n_components : int
        Number k of atoms.
    lam : float, default 0
        Weight of the ℓ1 norm of the codes. The paper uses 1/√m for samples of norm 1. If it is 0
        and entries are missing, codes get a small squared penalty instead, ``r/2 ‖α‖²`` with
        r = 0.1 p (1 − p)² for a share p of known entries: without it, samples with few known
        entries would have arbitrary codes.
    init : {"samples", "random", "nndsvd", "nndsvda"} or array (k, m), default "samples"
        The first atoms: distinct random samples (whose missing entries are filled with the means
        of their features), random numbers, or the non-negative parts of
        singular vectors. "nndsvd" keeps their zeros; "nndsvda" replaces zeros by
        ``√(mean(X)/k)``. The result depends on ``random_state``, hardly if it starts from singular
        vectors: there can be several local minima.
    coder : coder, optional
        A non-negative coder, instead of ``Lasso(lam, positive=True)``.
    constraint : constraint, default ``L2Ball(positive=True)``
        The set that contains each atom, such as ``FusedLassoBall(0.1, 0.1, positive=True)``. It
        shapes the atoms only if ``lam > 0``: otherwise any atom fits in when made short enough,
        and the longer codes cost nothing.
    learner : learner, optional
        By default `fit` alternates between codes and atoms, to high accuracy. It keeps all codes
        in memory and reads the data many times. With a learner such as ``Online()``, `fit` works
        as in `DictionaryLearning`. `partial_fit` always uses a learner, ``Online()`` by default;
        so does `fit` with weights, missing entries, groups, a wanted density of the atoms, or a coder
        other than a plain `Lasso`.
    max_epochs : int, optional
        Maximum number of passes of `fit` over the data. The default is 200, or 10 with a learner,
        and no limit if ``max_seconds`` is given.
    tol : float, default 1e-3
        Stop when ten passes have lowered the cost by less than this share of it. Not used by
        learners.
    max_seconds : float, optional
        Maximum number of seconds that `fit` learns.
    replacement : Replacement, optional
        When a learner replaces unused and duplicate atoms.
    callbacks : tuple or list of callables
        Each is called after every update of whole atoms as ``callback(state, record)``. If one
        returns a true value, `fit` stops.
    n_threads : int, optional
        Number of threads; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Determines the first atoms and the order of the samples.
    sparse_output : bool, default False
        Whether `transform` returns a SciPy CSR array instead of a dense array.
    missing : {None, "nan"}
        With "nan", NaN in the data marks a missing entry. By default NaN is an error.

    Attributes
    ----------
    components_ : array (k, m)
        The atoms, non-negative; after `fit` in descending order of their energy in the data.
    reconstruction_err_ : float
        Frobenius norm of ``X − C D`` for the data given to `fit`.
    coder_, state_, history_, n_iter_, stopped_, n_features_in_, feature_names_in_
        As in `DictionaryLearning`; ``stopped_`` may also be "tol".

    See Also
    --------
    DictionaryLearning : Atoms and codes of either sign.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import NMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 3)) @ rng.random((3, 20))
    >>> model = NMF(3, tol=1e-6, random_state=0)
    >>> C = model.fit_transform(X)
    >>> bool(np.abs(X - C @ model.components_).max() < 1e-2), bool(C.min() >= 0)
    (True, True)

    Smooth, sparse, non-negative parts:

    >>> from smalto.constraints import FusedLassoBall
    >>> smooth = NMF(3, lam=0.1, constraint=FusedLassoBall(0.1, 0.1, positive=True), random_state=0)
    >>> smooth.fit(X).components_.shape
    (3, 20)
    """

    _doc_page = "factorizations.md#non-negative-matrix-factorization"

    def __init__(
        self,
        n_components: int,
        *,
        lam: float = 0.0,
        init: Literal["samples", "random", "nndsvd", "nndsvda"] | Any = "samples",
        coder: Coder | None = None,
        constraint: Constraint | None = None,
        learner: Learner | None = None,
        max_epochs: int | None = None,
        tol: float = 1e-3,
        max_seconds: float | None = None,
        replacement: Replacement | None = None,
        callbacks: Sequence[CallbackLike] = (),
        n_threads: int | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
        missing: Missing = None,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.init = init
        self.coder = coder
        self.constraint = constraint
        self.learner = learner
        self.max_epochs = max_epochs
        self.tol = tol
        self.max_seconds = max_seconds
        self.replacement = replacement
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.sparse_output = sparse_output
        self.missing = missing

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
        groups: Any = None,
        validation: Any = None,
        validation_groups: Any = None,
        validate_every: int | Sequence[int] | None = None,
    ) -> Self:
        """Factorize X, discarding any previous result.

        Parameters
        ----------
        X : array, memory map, CSR array or data frame (n, m)
            Samples, one per row, without negative entries. float32 is computed in float32,
            everything else in float64.
        y : ignored
        sample_weight, mask, groups : optional
            As for `DictionaryLearning`; with any of them a learner is used, see ``learner``.
        validation, validation_groups, validate_every : optional
            As for `DictionaryLearning`.

        Returns
        -------
        self
        """
        self._check_settings()
        coder, constraint, _ = self._problem()
        assert constraint is not None
        if isinstance(X, np.ma.MaskedArray) and not np.ma.is_masked(X):
            X = X.data
        mask, sample_weight = _needed_mask(mask, X), _needed_weights(sample_weight, X)
        missing = self.missing if self.missing is None or not is_complete(X) else None
        with all_or_nothing(self):
            self._ridge = default_ridge(missing_entries(X, mask, missing))
            about = (sample_weight, mask, groups, missing, self.learner)
            plain = all(part is None for part in about) and not isinstance(X, np.ma.MaskedArray)
            plain = plain and constraint.density is None  # which learners look for step by step
            squares = None
            if plain and isinstance(coder, Lasso) and coder.penalty_weights is None:
                squares = self._alternate(X, validation, validation_groups, validate_every)
            else:
                self._fit(
                    X,
                    sample_weight=sample_weight,
                    mask=mask,
                    groups=groups,
                    validation=validation,
                    validation_groups=validation_groups,
                    validate_every=validate_every,
                    checked=True,
                )
            reorder(self.state_, by_energy(self.state_))
            self.components_ = feasible(self.state_, resolve_threads(self.n_threads)).D
            if validation is not None and wants_density(constraint):  # it depends on the order
                self._measure_again(validation, validation_groups)
            if squares is None:
                squares = self._squared_error(X, mask, groups)
            self.reconstruction_err_ = math.sqrt(squares)
        return self

    @available_if(takes_a_stream)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
        groups: Any = None,
    ) -> Self:
        """Update the atoms once, with all of X as one batch, as in `DictionaryLearning`."""
        if not hasattr(self, "state_"):
            self._ridge = default_ridge(missing_entries(X, mask, self.missing))
        return self._partial_fit(X, sample_weight=sample_weight, mask=mask, groups=groups)

    def transform(self, X: Any, *, mask: Any = None, groups: Any = None) -> Any:
        """Return the non-negative codes of the rows of X, as in `DictionaryLearning`."""
        return self._transform(X, mask, groups)

    def score(self, X: Any, y: Any = None, *, mask: Any = None, groups: Any = None) -> float:
        """Return minus the mean cost of the rows of X, as in `DictionaryLearning`."""
        return self._score(X, mask, groups)

    def _alternate(self, X: Any, validation: Any, groups: Any, validate_every: Any) -> float:
        """Learn by alternating descent; return the final squared error."""
        threads = resolve_threads(self.n_threads)
        watchers = tasks_of(self, X, counted=False)
        X = self._rows(X, reset=True)
        self._check_values(X, None)
        problem = self._problem()
        coder = problem.coder
        assert isinstance(coder, Lasso)
        batches = as_batches(X, None, None, None, None, coder)
        check_columns("validation", validation, self._names(None), "the data")
        held_out = Validation.of(validation, groups, validate_every, batches, self.missing, coder)
        max_epochs = self.max_epochs
        if max_epochs is None and self.max_seconds is None:
            max_epochs = EPOCHS
        limits = Limits.of(max_epochs, None, self.max_seconds)
        settings = RunSettings.of(*problem, self.replacement)
        sketches, squares = self._sketches_help(X, problem), None
        with closing(batches), Run(threads, [*self.callbacks, *watchers], held_out) as run:
            init = self._first_atoms(X)
            state = initial_state(
                batches, self.n_components, settings, init, self.random_state, threads
            )
            run.begin(state, limits, batches.n_rows)
            stopped = None
            if not sketches:
                first = replace(limits, epochs=min(FIRST_EPOCHS, limits.epochs))
                stopped = run.loop(batches, state, first)
            if stopped in (None, "epochs"):
                stopped = limits.reached(state)
            if stopped is None:
                stopped, squares = alternate(run, state, X, limits, self.tol, sketches=sketches)
            run.finish(state, stopped)
        self.stopped_ = stopped
        self._set_result(state, X)
        if (shortfall := missed(self.components_, state.constraint.density)) is not None:
            warn(shortfall)
        return self._squared_error(X, None, None) if squares is None else squares

    def _sketches_help(self, X: Rows, problem: Problem) -> bool:
        """Return whether to begin with parts of the data instead of passes by the learner.

        A learner gains most if codes are sparse, because it computes them exactly. Dense codes
        and atoms with many entries take many iterations, which are cheaper on parts of the data.
        """
        coder, constraint, _ = problem
        assert coder is not None
        assert constraint is not None
        sizes = stages(self.n_components, X.shape[1], X.shape[0], constraint)
        return is_free(coder, constraint) or any(m < X.shape[1] for _, m in sizes)

    def _squared_error(self, X: Any, mask: Any, groups: Any) -> float:
        """Return ``Σ ‖x − αD‖²`` over the rows x of X, with their exact codes, at known entries."""
        signals = as_signals("X", self._rows(X, reset=False), mask, self.missing)
        signals, _ = in_groups(signals, groups, self.coder_)
        threads = resolve_threads(self.n_threads)
        total = 0.0
        with single_threaded_blas():
            prepared = prepare(self.components_, self.coder_, threads)
            for rows in blocks(len(signals), ROWS_AT_ONCE, signals.groups):
                coded = code_rows(signals.part(rows), prepared, None, threads)
                total += 2.0 * float(coded.fit.sum())
        return total

    def _measure_again(self, validation: Any, groups: Any) -> None:
        """Give the last record the mean cost of held-out samples over the components."""
        D = self.components_
        signals = as_signals("validation", validation, None, self.missing)
        signals, _ = in_groups(signals, groups, self.coder_)
        signals = replace(signals, X=as_floats(signals.X, D.dtype))
        with single_threaded_blas():
            cost = mean_cost(signals, D, self.coder_, resolve_threads(self.n_threads))
        self.history_[-1] = replace(self.history_[-1], test_cost=cost)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _problem(self) -> Problem:
        lam = check_number("lam", self.lam, low=0)
        coder = self.coder
        if coder is None:
            ridge = 0.0 if lam > 0 else vars(self).get("_ridge", 0.0)
            coder = Lasso(lam, ridge=ridge, positive=True)
        constraint = L2Ball(positive=True) if self.constraint is None else self.constraint
        if self.coder is not None and lam > 0:
            message = f"lam={lam:g} and coder exclude each other: pass lam to the coder"
            raise ValueError(message)
        # Parts without a known sign (user-defined ones) are trusted to be non-negative.
        for name, part in (("coder", coder), ("constraint", constraint)):
            if part.positive is False:
                message = (
                    f"NMF needs a non-negative {name}, such as one with positive=True, got {part}"
                )
                raise ValueError(message)
        return Problem(coder, constraint, Online() if self.learner is None else self.learner)

    def _default_part(self, name: str) -> Any:
        if name == "coder":
            return Lasso(self.lam, positive=True)
        return L2Ball(positive=True) if name == "constraint" else super()._default_part(name)

    def _set_part(self, name: str, part: Any) -> None:
        if name == "coder":
            self.lam = 0.0  # it is in the coder now
        super()._set_part(name, part)

    def _check_settings(self) -> None:
        super()._check_settings()
        if isinstance(self.constraint, ElasticNetBall | FusedLassoBall) and (
            self.coder is None and not self.lam
        ):
            message = (
                f"with lam=0 {self.constraint} does not shape the atoms: it contains short atoms "
                "of any shape, and long codes cost nothing. Set lam > 0"
            )
            warn(message)
        check_number("tol", self.tol, low=0)
        if isinstance(self.init, str) and self.init not in _STARTS:
            message = f"init must be an array or one of {', '.join(_STARTS)}, got {self.init!r}"
            raise ValueError(message)

    def _check_values(self, X: Rows, mask: Any) -> None:
        check_nonnegative(X, mask)

    def _max_epochs(self) -> int | None:
        no_limit = self.max_epochs is None and self.max_seconds is None
        return LEARNER_EPOCHS if no_limit else self.max_epochs

    def _first_atoms(self, X: Rows, mask: Any = None) -> Any:
        if not isinstance(self.init, str):
            if self.init is not None:
                check_nonnegative(np.asarray(self.init), None, "init")
            return self.init
        if self.init == "samples":
            holes = missing_entries(X, mask, self.missing)
            if holes is None or len(holes) < self.n_components:
                return None
            return filled_samples(X, holes, self.n_components, as_seed(self.random_state))
        check_finite("X", X)
        X = as_floats(X, float_dtype(X.dtype))
        X = shifted(X, -number_exponent(largest_entry(X)))  # the same start at any size
        rng = np.random.RandomState(as_seed(self.random_state) % (1 << 32))
        if self.init == "random":
            return rng.uniform(size=(self.n_components, X.shape[1])) * float(X.mean())
        return nndsvd(X, self.n_components, rng, fill=self.init == "nndsvda")


def _needed_mask(mask: Any, X: Any) -> Array | None:
    """Return the mask, checked; None if it hides nothing."""
    if mask is None:
        return None
    holes = as_mask(mask, as_rows("X", X.data if isinstance(X, np.ma.MaskedArray) else X))
    return holes if holes.any() else None


def _needed_weights(sample_weight: Any, X: Any) -> Array | None:
    """Return the weights, checked; None if all are equal, which is the same."""
    if sample_weight is None:
        return None
    weights = as_sample_weight(sample_weight, _num_samples(X))
    return None if (weights == weights[0]).all() else weights
