"""`DictionaryLearning`: `learn` and `encode` as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from smalto.checks import (
    Array,
    Rows,
    as_floats,
    as_rows,
    check_integer,
    check_kind,
    float_dtype,
)
from smalto.coders.base import Coder, fixed
from smalto.coders.coding import encode_signals, mean_cost
from smalto.coders.lasso import Lasso
from smalto.coders.signals import Missing, as_signals, check_missing, in_groups
from smalto.constraints import Constraint
from smalto.estimators.base import all_or_nothing
from smalto.learning.batches.samples import as_sample_set
from smalto.learning.initial import begin
from smalto.learning.learners.base import Learner
from smalto.learning.learners.online import Online
from smalto.learning.loop import Callback, check_callbacks, learn
from smalto.learning.memory.state import Record, State
from smalto.learning.options import Continuation, Replacement
from smalto.learning.step import step_on
from smalto.sources import as_source, is_dask, lies_elsewhere
from smalto.threads import resolve_threads, single_threaded_blas


def takes_a_stream(model: DictionaryLearning) -> bool:
    """Whether `partial_fit` has a meaning; the reason is the cause of the AttributeError."""
    learner = model.learner
    if isinstance(learner, Online) and learner.memory == "replace":
        message = "memory='replace' needs a fixed data set: it has no meaning for a stream"
        raise AttributeError(message)
    return True


class DictionaryLearning(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Learn a dictionary: ``min_D Σ_x min_α ½‖x − αD‖² + ψ(α)``, every atom in a convex set.

    Each sample x (a row of X) is to be a combination αD of a few atoms (rows of D). The coder
    says what ψ is, the constraint which set, the learner how to get there. `transform` solves
    the inner problem, the very one that D was learned with.

    Parameters
    ----------
    n_components : int
        Number k of atoms.
    coder : coder, default ``Lasso()``
        The sparse coding problem. What it leaves open, such as ``lam``, is decided from the
        data given to `fit` or from the first batches given to `partial_fit`.
    constraint : constraint, default ``L2Ball()``
        The set in which each atom lives.
    learner : learner, default ``Online()``
        How the dictionary follows from the data.
    max_epochs : int or None, default 1
        Passes over the data.
    max_steps, max_seconds : optional
        End earlier: after so many updates, or so many seconds of learning. To go by these
        alone, let ``max_epochs`` be None.
    init : array (k, m), optional
        The first dictionary; by default distinct random samples, scaled to norm 1.
    continuation : Continuation, optional
        Begin with a smaller λ.
    replacement : Replacement, optional
        When atoms that are unused or duplicates are replaced.
    callbacks : tuple or list of callables
        Each is called after every update as ``callback(state, record)``; a true result ends
        `fit`. The state is the live one: copy what you keep.
    n_threads : int, optional
        Threads to use; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Decides the first dictionary and the order of the samples.
    sparse_output : bool, default False
        Let `transform` return a SciPy CSR array instead of a dense array.
    missing : {None, "nan"}
        With "nan", NaN in X means that the entry is missing: what is minimised is the cost over
        the known entries. By default NaN is an error.

    Attributes
    ----------
    components_ : array (k, m)
        The dictionary, one atom per row.
    coder_ : coder
        The coder with everything decided: ``encode(X, components_, coder_)`` is `transform`.
    state_ : State
        Everything needed to go on learning.
    history_ : list of Record
        One line per update, with costs, times and counts.
    n_iter_ : int
        Updates done.
    stopped_ : str
        Why `fit` ended: "epochs", "steps", "seconds", "callback" or "interrupt".
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X had any, all strings.

    See Also
    --------
    smalto.learn : the same as a function, which can resume from a state.
    smalto.encode : sparse codes over any dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.coders import Lasso
    >>> from smalto.estimators import DictionaryLearning
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> model = DictionaryLearning(32, coder=Lasso(lam=0.5), max_epochs=2, random_state=0).fit(X)
    >>> model.components_.shape
    (32, 16)
    >>> codes = model.transform(X)
    >>> codes.shape
    (1000, 32)
    >>> bool(np.mean((X - model.inverse_transform(codes)) ** 2) < 0.2 * np.mean(X**2))
    True
    """

    def __init__(
        self,
        n_components: int,
        *,
        coder: Coder | None = None,
        constraint: Constraint | None = None,
        learner: Learner | None = None,
        max_epochs: int | None = 1,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        init: Any = None,
        continuation: Continuation | None = None,
        replacement: Replacement | None = None,
        callbacks: Sequence[Callback] = (),
        n_threads: int | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
        missing: Missing = None,
    ) -> None:
        self.n_components = n_components
        self.coder = coder
        self.constraint = constraint
        self.learner = learner
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.max_seconds = max_seconds
        self.init = init
        self.continuation = continuation
        self.replacement = replacement
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.sparse_output = sparse_output
        self.missing = missing

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
        """Learn a dictionary from X, afresh.

        Parameters
        ----------
        X : array, memory map, CSR array, data frame, file or stream
            Training samples, one per row, at least as many as atoms; whatever `smalto.learn`
            learns from. float32 is learned from in float32, everything else in float64. Only
            what an update draws is copied. A Dask array is learned from on its cluster.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the samples in the cost, at least zero.
        mask : array of bool (n, m), optional
            True where an entry of X is missing; what stands there is ignored.
        groups : array (n,), optional
            For coders of several samples at once: a label for each sample.
        validation : array or CSR array, optional
            Held-out samples whose mean cost is recorded in ``history_`` now and then.
        validation_groups : array, optional
            The groups of held-out samples.
        validate_every : int or sequence of int, optional
            At every so many updates, or after these; by default ever more rarely.

        Returns
        -------
        self
        """
        self._check_settings()
        with all_or_nothing(self):
            X = self._rows(X, reset=True)
            source = self._source(X)
            coder, constraint, learner = self._problem()
            if validation is not None:
                validation = self._signals(as_rows("validation", validation))
            run = _on_cluster() if is_dask(X) else learn
            result = run(
                source,
                self.n_components,
                coder,
                constraint,
                learner,
                init=self._first_atoms(source),
                max_epochs=self._max_epochs(),
                max_steps=self.max_steps,
                max_seconds=self.max_seconds,
                sample_weight=sample_weight,
                mask=mask,
                missing=self.missing,
                groups=groups,
                validation=validation,
                validation_groups=validation_groups,
                validate_every=validate_every,
                replacement=self.replacement,
                continuation=self.continuation,
                callbacks=self.callbacks,
                n_threads=self.n_threads,
                random_state=self.random_state,
            )
            self.stopped_ = result.stopped
            self.n_features_in_ = result.D.shape[1]
            self._set_result(result.state, result.history, X)
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
        """Update the dictionary once, with all of X as one batch.

        Goes on from the state that `fit` or the last `partial_fit` left. The first batch of a
        stream may be smaller than the number of atoms. Batches may differ in size: the past is
        weighted sample by sample.

        Parameters
        ----------
        X : array, CSR array or data frame (n, m)
            New samples, in the precision of the first ones.
        y : ignored
        sample_weight, mask, groups : optional
            As for `fit`.

        Returns
        -------
        self
        """
        self._check_settings()
        threads = resolve_threads(self.n_threads)
        first = not hasattr(self, "state_")
        if not first:
            self._refuse_changes()
        if is_dask(X) or lies_elsewhere(X):
            message = f"partial_fit takes one batch, a table in memory, got {X!r:.60}: see fit"
            raise TypeError(message)
        with all_or_nothing(self), single_threaded_blas():
            X = self._rows(X, reset=first)
            X = as_floats(X, float_dtype(X.dtype) if first else self.state_.D.dtype)
            batch = self._batch(X, None if first else self.state_)
            coder, constraint, learner = self._problem()
            samples = as_sample_set(
                batch, mask, self.missing, sample_weight, groups, coder or Lasso()
            )
            state = self.state_ if not first else begin(
                samples, self.n_components, coder, constraint, learner,
                self._first_atoms(batch), self.random_state, threads, stream=True,
            )  # fmt: skip
            record = step_on(state, samples.whole(), self.replacement, self.continuation, threads)
            self._set_result(state, [] if first else self.history_, X)
            self.history_.append(record)
        for callback in self.callbacks:
            callback(state, record)
        return self

    def transform(self, X: Any, *, mask: Any = None, groups: Any = None) -> Any:
        """Sparse codes: ``argmin_α ½‖x − αD‖² + ψ(α)`` for each row x of X, as in learning.

        Parameters
        ----------
        X : array, memory map, CSR array or data frame (n, m)
            Signals. float32 is coded in float32, everything else in float64.
        mask : array of bool (n, m), optional
            True where an entry of X is missing.
        groups : array (n,), optional
            For coders of several signals at once: a label for each signal.

        Returns
        -------
        array (n, k), or csr_array with ``sparse_output``
            One code per row. Of a Dask array: a lazy Dask array, coded block by block.
        """
        check_is_fitted(self, "components_")
        X = self._signals(self._rows(X, reset=False))
        if is_dask(X):
            return self._lazy_codes(X, mask, groups)
        signals = as_signals("X", X, mask, self.missing)
        D = np.ascontiguousarray(self.components_, float_dtype(signals.X.dtype))
        with single_threaded_blas():
            csr, _, _ = encode_signals(
                signals, D, self.coder_, groups, n_threads=resolve_threads(self.n_threads)
            )
        return csr if self.sparse_output else csr.toarray()

    def _lazy_codes(self, X: Any, mask: Any, groups: Any) -> Any:
        from smalto import distributed

        if mask is not None or groups is not None or self.missing is not None:
            message = "a Dask array cannot have a mask, missing entries or groups"
            raise ValueError(message)
        D = np.ascontiguousarray(self.components_, float_dtype(X.dtype))
        return distributed.encode(X, D, self.coder_, sparse_output=self.sparse_output)

    def inverse_transform(self, X: Any) -> Array:
        """Signals ``αD`` from codes α.

        Parameters
        ----------
        X : array or sparse array (n, k)
            Codes, one per row, such as `transform` returns.

        Returns
        -------
        array (n, m)
            One signal per row.
        """
        check_is_fitted(self, "components_")
        codes = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if codes.shape[1] != len(self.components_):
            message = (
                f"codes must have one column for each of the {len(self.components_)} atoms, "
                f"got shape {codes.shape}"
            )
            raise ValueError(message)
        return np.asarray(codes @ self.components_.astype(codes.dtype, copy=False))

    def score(self, X: Any, y: Any = None, *, mask: Any = None, groups: Any = None) -> float:
        """Minus the mean of ``min_α ½‖x − αD‖² + ψ(α)`` over the rows x of X: higher is better.

        The cost depends on ψ: to choose between different ``lam`` another measure is needed.
        """
        check_is_fitted(self, "components_")
        signals = as_signals("X", self._signals(self._rows(X, reset=False)), mask, self.missing)
        signals, _ = in_groups(signals, groups, self.coder_)
        D = np.ascontiguousarray(self.components_, float_dtype(signals.X.dtype))
        with single_threaded_blas():
            return -mean_cost(signals, D, self.coder_, resolve_threads(self.n_threads))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "nan"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def sparse_components_(self) -> Any:
        """The dictionary as a csr_array (k, m): what counts where atoms are sparse."""
        check_is_fitted(self, "components_")
        return sparse.csr_array(self.components_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        """X as scikit-learn wants it checked, but neither copied nor read: that comes later."""
        elsewhere = is_dask(X) or (reset and lies_elsewhere(X))
        own = (type(self).fit, type(self)._source, type(self)._signals)
        base = (DictionaryLearning.fit, DictionaryLearning._source, DictionaryLearning._signals)
        if elsewhere and own != base:
            message = (
                f"{type(self).__name__} learns from tables in memory and memory maps, got {X!r:.60}"
            )
            raise TypeError(message)
        if is_dask(X):
            return self._lazy_rows(X, reset)
        if elsewhere:
            source = as_source(X, nan=self.missing == "nan")
            self.n_features_in_ = source.n_features
            return source
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn would drop the mask
            validate_data(self, X.data, reset=reset, skip_check_array=True)
            return X
        checked = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        return X if isinstance(X, np.memmap) else checked

    def _lazy_rows(self, X: Any, reset: bool) -> Any:
        """A Dask collection; of arrays the number of features is known."""
        width = X.shape[1] if getattr(X, "ndim", 0) == 2 else None
        if reset and width is not None:
            self.n_features_in_ = width
        elif not reset and width != self.n_features_in_:
            message = f"X has {width} features, learned was with {self.n_features_in_}"
            raise ValueError(message)
        return X

    # What an estimator for a special problem overrides.

    def _problem(self) -> tuple[Coder | None, Constraint | None, Learner | None]:
        """The coder, the constraint and the learner that the settings ask for."""
        return self.coder, self.constraint, self.learner

    def _max_epochs(self) -> int | None:
        """Passes over the data, of `fit`."""
        return self.max_epochs

    def _source(self, X: Rows) -> Any:
        """What `fit` learns from: the rows as they are."""
        return X

    def _first_atoms(self, data: Any) -> Any:
        """The first dictionary, from what is learned from; None: samples."""
        return self.init

    def _batch(self, X: Rows, state: State | None) -> Rows:
        """What `partial_fit` learns from; the state is what came before, if anything did."""
        return X

    def _signals(self, X: Rows) -> Rows:
        """What is coded of rows given to `transform`."""
        return X

    def _set_result(self, state: State, history: list[Record], X: Rows) -> None:
        """Keep what has been learned from the rows X."""
        self.components_ = state.feasible_D()
        self.coder_ = fixed(state.coder)
        self.state_ = state
        self.history_ = history
        self.n_iter_ = state.step
        self._began_with = self._problem()

    def _check_settings(self) -> None:
        """Refuse settings that `learn` does not look at, and name others as they are here."""
        check_integer("n_components", self.n_components)
        check_kind(
            "continuation", self.continuation, Continuation | None, "None or Continuation(...)"
        )
        check_kind("replacement", self.replacement, Replacement | None, "None or Replacement(...)")
        check_kind("sparse_output", self.sparse_output, bool | np.bool_, "True or False")
        check_missing(self.missing)
        check_kind("callbacks", self.callbacks, list | tuple, "a list or tuple of callables")
        check_callbacks(self.callbacks)

    def _refuse_changes(self) -> None:
        """Go on only with the problem and the learner that the state was made with."""
        if self.n_components != len(self.state_.D):
            message = (
                f"n_components was {len(self.state_.D)} when learning began and is "
                f"{self.n_components} now: partial_fit cannot change it, fit begins afresh"
            )
            raise ValueError(message)
        names = ("coder", "constraint", "learner")
        for name, had, now in zip(names, self._began_with, self._problem(), strict=True):
            if now is not had and now != had:
                message = (
                    f"{name} was {had} when learning began and is {now} now: partial_fit "
                    f"cannot change it, fit begins afresh"
                )
                raise ValueError(message)


def _on_cluster() -> Any:
    """`learn` on a cluster: Dask is imported only by those who use it."""
    from smalto import distributed

    return distributed.learn
