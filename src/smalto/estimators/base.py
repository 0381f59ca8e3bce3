"""The abstract base of `DictionaryLearning`, `NMF` and `SparsePCA`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from smalto.checks import (
    Array,
    Rows,
    as_floats,
    as_rows,
    as_table,
    check_integer,
    check_kind,
    check_scale,
    float_dtype,
)
from smalto.coders._encode import encode_signals
from smalto.coders.base import Coder, check_takes
from smalto.coders.coding import mean_cost
from smalto.coders.lasso import Lasso
from smalto.coders.signals import (
    Missing,
    Signals,
    as_signals,
    check_missing,
    in_groups,
    without_mask,
)
from smalto.constraints import Constraint, L2Ball
from smalto.data_frames import check_columns
from smalto.estimators.all_or_nothing import all_or_nothing
from smalto.estimators.nested_parameters import NestedParameters
from smalto.estimators.sklearn_callbacks import CallbackSupportMixin, tasks_of
from smalto.learning._learn import learn
from smalto.learning.batches.convert import as_batches
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.callbacks.base import CallbackLike, Callbacks
from smalto.learning.clock import on_the_clock
from smalto.learning.dictionary.wanted_density import feasible
from smalto.learning.initial_state import initial_state
from smalto.learning.learners.base import Learner
from smalto.learning.learners.online import Online, go_online
from smalto.learning.memory.state import State
from smalto.learning.options import Continuation, Replacement
from smalto.learning.reported import Reported
from smalto.learning.run import Run
from smalto.learning.run_settings import RunSettings
from smalto.learning.step import step
from smalto.sources import as_source, is_dask, lies_elsewhere
from smalto.threads import resolve_threads, single_threaded_blas


def takes_a_stream(model: Factorization) -> bool:
    """Return True if the learner supports `partial_fit`; raise AttributeError if not."""
    if isinstance(model.learner, Learner):
        refusal = model.learner.refusal(stream=True, missing=False)
        if refusal is not None:
            raise AttributeError(refusal)
    return True


class Problem(NamedTuple):
    """The coder, constraint and learner of an estimator; None stands for the default of `learn`."""

    coder: Coder | None
    constraint: Constraint | None
    learner: Learner | None


class Factorization(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    NestedParameters,
    CallbackSupportMixin,  # type: ignore[misc, valid-type]
    Reported,
    ABC,
):
    """Abstract scikit-learn estimator of a factorization ``X ≈ C D`` (codes C, dictionary D).

    A subclass defines the public methods, with the parameters that make sense for it, and
    overrides the methods at the end of this class where it differs from dictionary learning.
    """

    _reads_sources: ClassVar[bool] = False  # whether `fit` takes files and streams
    _reads_dask: ClassVar[bool] = False  # whether `fit` and `transform` take Dask arrays

    # Parameters of every subclass.
    n_components: int
    coder: Coder | None
    constraint: Constraint | None
    learner: Learner | None
    init: Any
    max_epochs: int | None
    max_seconds: float | None
    replacement: Replacement | None
    callbacks: Sequence[CallbackLike]
    n_threads: int | None
    random_state: Any
    sparse_output: bool

    # Parameters of some subclasses.
    max_steps: int | None = None
    continuation: Continuation | None = None
    missing: Missing = None

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a dictionary from X, discarding any previous result."""

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Return the codes of the rows of X."""

    def inverse_transform(self, X: Any) -> Array:
        """Return the signals ``αD`` for codes α.

        Parameters
        ----------
        X : array or sparse array (n, k)
            Codes, one per row, as returned by `transform`.

        Returns
        -------
        array (n, m)
            One signal per row.
        """
        check_is_fitted(self, "components_")
        codes = check_array(as_table("X", X), accept_sparse="csr", dtype=[np.float64, np.float32])
        if codes.shape[1] != len(self.components_):
            message = (
                f"X must have one column for each of the {len(self.components_)} atoms, "
                f"got shape {codes.shape}"
            )
            raise ValueError(message)
        return np.asarray(codes @ self.components_.astype(codes.dtype, copy=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "nan"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def sparse_components_(self) -> scipy.sparse.csr_array:
        """The dictionary as a csr_array (k, m), useful if atoms are sparse."""
        check_is_fitted(self, "components_")
        return scipy.sparse.csr_array(self.components_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _atoms(self) -> Array:
        check_is_fitted(self, "components_")
        return self.components_

    def _names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        return vars(self).get("feature_names_in_") if names is None else names

    def _small_report(self) -> str:
        return Reported._repr_html_(self) if "state_" in vars(self) else ""

    # Learning and coding.

    def _fit(
        self,
        X: Any,
        *,
        mask: Any = None,
        validation: Any = None,
        checked: bool = False,
        **options: Any,
    ) -> Self:
        """Learn a dictionary from X; ``options`` are passed to `smalto.learn`."""
        if not checked:
            self._check_settings()
        with all_or_nothing(self):
            watchers = tasks_of(self, X)
            X = self._rows(X, reset=True)
            self._check_values(X, mask)
            source = self._source(X)
            problem = self._problem()
            if validation is not None:
                check_columns("validation", validation, self._names(None), "the data")
                if not isinstance(validation, np.ma.MaskedArray):
                    validation = as_rows("validation", validation)
                validation = self._signals(validation)
            run = _on_cluster() if is_dask(X) else learn
            result = run(
                source,
                self.n_components,
                *problem,
                init=self._first_atoms(source, mask),
                max_epochs=self._max_epochs(),
                max_steps=self.max_steps,
                max_seconds=self.max_seconds,
                mask=mask,
                missing=self.missing,
                validation=validation,
                replacement=self.replacement,
                continuation=self.continuation,
                callbacks=[*self.callbacks, *watchers],
                n_threads=self.n_threads,
                random_state=self.random_state,
                **options,
            )
            self.stopped_ = result.stopped
            self.n_features_in_ = result.D.shape[1]
            self._set_result(result.state, X)
        return self

    def _partial_fit(
        self, X: Any, *, sample_weight: Any = None, mask: Any = None, groups: Any = None
    ) -> Self:
        """Update the dictionary once, with all of X as one batch."""
        self._check_settings()
        threads = resolve_threads(self.n_threads)
        first = not hasattr(self, "state_")
        if not first:
            self._check_unchanged()
        if is_dask(X) or lies_elsewhere(X):
            message = f"partial_fit takes one batch in memory, got {X!r:.60}: use fit"
            raise TypeError(message)
        with Run(threads, self.callbacks, ends=False) as run, all_or_nothing(self):
            X = self._rows(X, reset=first)
            self._check_values(X, mask)
            X, mask = without_mask(X, mask)  # which `as_floats` would drop
            dtype = float_dtype(X.dtype) if first else self.state_.D.dtype
            if mask is None and self.missing is None:
                check_scale("X", X, dtype, may_vanish=True)
            X = as_floats(X, dtype)
            # A copy, so that the model stays as it is if the step fails.
            state = None if first else self.state_.copy()
            if state is not None and self.learner is None and state.learner.whole_data:
                go_online(state)
            rows = self._batch(X, state)
            problem = self._problem()
            about = (mask, self.missing, sample_weight, groups)
            batches = as_batches(rows, *about, Lasso() if problem.coder is None else problem.coder)
            assert isinstance(batches, DatasetBatches)
            if state is None:
                settings = self._run_settings()
                init = self._first_atoms(rows, mask)
                state = initial_state(
                    batches,
                    self.n_components,
                    settings,
                    init,
                    self.random_state,
                    threads,
                    stream=True,
                )
            with on_the_clock(state):
                record = step(state, batches.whole(state.place), threads)
            self._set_result(state, X)
            run.after_step(state, record)
        if run.interrupted():
            raise KeyboardInterrupt
        return self

    def _transform(self, X: Any, mask: Any = None, groups: Any = None) -> Any:
        """Return sparse codes of the rows of X, by the coder used in learning."""
        check_is_fitted(self, "components_")
        X = self._rows(X, reset=False)
        self._check_values(X, mask)
        X = self._signals(X)
        if is_dask(X):
            return self._lazy_codes(X, mask, groups)
        signals = self._checked_signals(X, mask, groups)
        D = np.ascontiguousarray(self.components_, float_dtype(signals.X.dtype))
        with single_threaded_blas():
            csr, _, _ = encode_signals(
                signals, D, self.coder_, groups, n_threads=resolve_threads(self.n_threads)
            )
        return csr if self.sparse_output else csr.toarray()

    def _score(self, X: Any, mask: Any = None, groups: Any = None) -> float:
        """Return minus the mean cost of the rows of X."""
        check_is_fitted(self, "components_")
        X = self._rows(X, reset=False)
        self._check_values(X, mask)
        signals = self._checked_signals(self._signals(X), mask, groups)
        signals, _ = in_groups(signals, groups, self.coder_)
        D = np.ascontiguousarray(self.components_, float_dtype(signals.X.dtype))
        with single_threaded_blas():
            return -mean_cost(signals, D, self.coder_, resolve_threads(self.n_threads))

    def _checked_signals(self, X: Rows, mask: Any, groups: Any) -> Signals:
        signals = as_signals("X", X, mask, self.missing)
        check_takes(self.coder_, mask=signals.missing, groups=groups)
        return signals

    def _lazy_codes(self, X: Any, mask: Any, groups: Any) -> Any:
        from smalto import distributed

        if mask is not None or groups is not None or self.missing is not None:
            message = "mask, missing and groups are not supported for Dask arrays"
            raise ValueError(message)
        D = np.ascontiguousarray(self.components_, float_dtype(X.dtype))
        return distributed.encode(X, D, self.coder_, sparse_output=self.sparse_output)

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        """Return X after scikit-learn's checks, without reading all of it, and without a copy."""
        dask = is_dask(X)
        elsewhere = dask or (reset and lies_elsewhere(X))
        if elsewhere and not (self._reads_dask if dask else self._reads_sources):
            message = f"{type(self).__name__} takes arrays in memory and memory maps, got {X!r:.60}: give np.load(path, mmap_mode='r'), or batch after batch to partial_fit"
            raise TypeError(message)
        if dask:
            return self._lazy_rows(X, reset)
        if elsewhere:
            source = as_source(X, nan=self.missing == "nan")
            self.n_features_in_ = source.n_features
            return source
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn would drop the mask
            validate_data(self, X.data, reset=reset, skip_check_array=True)
            return X
        X = as_table("X", X)
        checked = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        if isinstance(X, np.memmap):
            return X
        if reset:  # later X are checked where they are coded
            check_scale("X", checked, float_dtype(checked.dtype))
        return checked

    def _lazy_rows(self, X: Any, reset: bool) -> Any:
        """Return a Dask collection after checking its number of features, if known."""
        width = X.shape[1] if getattr(X, "ndim", 0) == 2 else None
        if reset and width is not None:
            self.n_features_in_ = width
        elif not reset and width != self.n_features_in_:
            message = f"X has {width} features, but the model was fitted with {self.n_features_in_}"
            raise ValueError(message)
        return X

    # Methods that a subclass overrides for its problem.

    def _problem(self) -> Problem:
        """Return the coder, the constraint and the learner that the parameters define."""
        return Problem(self.coder, self.constraint, self.learner)

    def _default_part(self, name: str) -> Any:
        defaults: dict[str, type] = {
            "coder": Lasso,
            "constraint": L2Ball,
            "learner": Online,
            "replacement": Replacement,
        }
        return defaults[name]() if name in defaults else None

    def _max_epochs(self) -> int | None:
        """Return the maximum number of passes of `fit` over the data."""
        return self.max_epochs

    def _check_values(self, X: Rows, mask: Any) -> None:
        """Raise ValueError for values that the problem does not allow."""

    def _source(self, X: Rows) -> Any:
        """Return the source that `fit` learns from."""
        return X

    def _first_atoms(self, data: Any, mask: Any = None) -> Any:
        """Return the first dictionary; None to take samples."""
        return self.init

    def _batch(self, X: Rows, state: State | None) -> Rows:
        """Return the rows that `partial_fit` learns from; ``state`` is None in the first call."""
        return X

    def _signals(self, X: Rows) -> Rows:
        """Return the signals to code for rows given to `transform`."""
        return X

    def _set_result(self, state: State, X: Rows) -> None:
        """Set the fitted attributes after learning from the rows X."""
        self.components_ = feasible(state, resolve_threads(self.n_threads)).D
        self.coder_ = state.coder.fixed()
        self.state_ = state
        self.history_ = state.history
        self.n_iter_ = state.step
        self._began_with = self._run_settings()

    def _run_settings(self) -> RunSettings:
        return RunSettings.of(*self._problem(), self.replacement, self.continuation)

    def _check_settings(self) -> None:
        """Raise for invalid parameters that `learn` does not check, or knows by another name."""
        check_integer("n_components", self.n_components)
        RunSettings.of(
            self.coder, self.constraint, self.learner, self.replacement, self.continuation
        )
        check_kind("sparse_output", self.sparse_output, bool | np.bool_, "True or False")
        check_missing(self.missing)
        check_kind(
            "callbacks",
            self.callbacks,
            list | tuple,
            "a list or tuple of callables, such as [Progress()]",
        )
        Callbacks(self.callbacks)

    def _check_unchanged(self) -> None:
        """Raise ValueError if the problem or the learner has changed since learning began."""
        if self.n_components != len(self.state_.D):
            message = (
                f"n_components was {len(self.state_.D)} when learning began and is "
                f"{self.n_components} now: partial_fit cannot change it, call fit to start again"
            )
            raise ValueError(message)
        settings = zip(RunSettings._fields, self._began_with, self._run_settings(), strict=True)
        for name, had, now in settings:
            if now is not had and now != had:
                message = (
                    f"{name} was {had} when learning began and is {now} now: partial_fit "
                    f"cannot change it, call fit to start again"
                )
                raise ValueError(message)


def _on_cluster() -> Any:
    """Return `distributed.learn`; imported here so that Dask is loaded only if it is used."""
    from smalto import distributed

    return distributed.learn
