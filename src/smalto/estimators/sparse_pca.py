"""`SparsePCA`: principal components with few nonzero entries, from a stream of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from smalto.checks import (
    Array,
    Rows,
    check_finite,
    check_not_masked,
    check_number,
    float_dtype,
    named,
)
from smalto.coders.base import Coder
from smalto.coders.lasso import Lasso
from smalto.constraints import Constraint, ElasticNetBall, FusedLassoBall
from smalto.constraints.density import density
from smalto.estimators.base import Factorization, Problem, takes_a_stream
from smalto.estimators.centering import CenteredSource, centered, column_means, column_sums, rows_of
from smalto.estimators.sklearn_callbacks import with_callbacks
from smalto.estimators.variance import (
    adjusted_variances,
    principal_components,
    score_moments,
)
from smalto.learning.callbacks.base import Callback, CallbackLike
from smalto.learning.learners.base import Learner
from smalto.learning.learners.online import Online
from smalto.learning.memory.state import State
from smalto.learning.options import Continuation, Replacement
from smalto.sources import Source

DEFAULT_DENSITY = 0.3
# Measured on faces and patches: see benchmarks/peers/sparse_pca.py.
DEFAULT_LAM = 0.4
DEFAULT_RHO = 2.0
ENOUGH_STEPS = 100  # in a pass over many samples; more take time and gain nothing
MOST_ROWS = 4096  # in one step
_SAMPLE_ROWS = 2048  # samples from which the first components are computed
_HELD_ROWS = 512  # samples from which on the first components get their full weight t0


class SparsePCA(Factorization):
    """Sparse PCA: ``min_D Σ_x min_α ½‖x − μ − αD‖² + lam ‖α‖₁``, with sparse components.

    μ is the mean of the samples. Each component d (row of D) satisfies ``‖d‖₂² + gamma ‖d‖₁ ≤ 1``
    (Section 5.4 of the paper) or, with ``fused``,
    ``‖d‖₂² + gamma ‖d‖₁ + fused Σ|d_i − d_(i−1)| ≤ 1``.

    Parameters
    ----------
    n_components : int
        Number k of components.
    gamma : float, optional
        The larger, the sparser the components.
    density : float in (0, 1], optional
        Share of nonzero entries in the components, instead of ``gamma``, which is then adapted
        during learning. The default is 0.3 if neither is given.
    lam : float, optional
        Weight of the ℓ1 norm of the codes, above 0. (With 0 components could shrink at no cost
        until they satisfy any constraint.) By default 0.4/√m times the root mean square norm of
        the centered samples.
    mean_nonzeros : float, optional
        Mean number of components per sample, instead of ``lam``, which is then chosen from the
        data.
    fused : float, optional
        Weight of the differences between neighboring entries of a component, for ordered
        features; the larger, the fewer jumps.
    coder : coder, optional
        Another sparse coding problem, instead of ``lam`` or ``mean_nonzeros``.
    constraint : constraint, optional
        Another set for the components, instead of ``gamma``, ``density`` and ``fused``.
    learner : learner, optional
        The learning algorithm, by default ``Online(rho=2, t0=v)``. Here v is the total variance
        of the samples, which keeps the first components in place until their density has
        settled; it is less for fewer than 512 samples, and 0 if ``init`` is given. For large
        data `fit` uses batches of a hundredth of the samples, at most 4096.
    init : array (k, m), optional
        The first components. By default principal components of 2048 samples, or of the first
        batch given to `partial_fit`; if there are too few samples for that, samples.
    max_epochs, max_steps, max_seconds, continuation, replacement, callbacks, n_threads, \
random_state, sparse_output
        As in `DictionaryLearning`.

    Attributes
    ----------
    components_ : array (k, m)
        One component per row: first the one that explains most variance, then the one that adds
        most to it, and so on. The entry of largest magnitude is positive, unless signs are
        constrained. Components satisfy the constraint, so their norm is at most 1.
    mean_ : array (m,)
        Mean of the samples: of all of X in `fit`, of all samples so far in `partial_fit`.
    n_samples_seen_ : int
        Number of samples that ``mean_`` is the mean of, each counted once, however many epochs
        `fit` has made.
    explained_variance_ : array (k,)
        Variance explained by each component beyond those before it, from the QR decomposition of
        the scores, since components are not orthogonal (Zou, Hastie and Tibshirani 2006). It is
        computed on all of X in `fit`, and on the batch in `partial_fit`.
    explained_variance_ratio_ : array (k,)
        The same as a share of the variance of these samples around ``mean_``.
    density_ : float
        Share of nonzero entries in the components.
    coder_, state_, history_, n_iter_, stopped_, n_features_in_, feature_names_in_
        As in `DictionaryLearning`; the atoms of ``state_`` are not reordered.

    See Also
    --------
    smalto.DictionaryLearning : The same with any coder and constraint.
    smalto.constraints.ElasticNetBall : The set that makes components sparse.

    Notes
    -----
    `fit` first reads X once for its mean. `partial_fit` centers a batch by the mean of all samples
    up to and including it. When the mean changes, the statistics of the past are corrected
    exactly: they become those of samples centered by the new mean, with their old codes. Batches
    of a sparse X are made dense, one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import SparsePCA
    >>> rng = np.random.default_rng(0)
    >>> blocks = np.kron(np.eye(3), np.ones(4))  # three groups of four features
    >>> X = rng.standard_normal((500, 3)) * [4, 3, 2] @ blocks + 5.0
    >>> model = SparsePCA(3, density=1 / 3, max_epochs=20, random_state=0)
    >>> model.fit(X + 0.1 * rng.standard_normal(X.shape)).components_.astype(bool).astype(int)
    array([[1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
           [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0],
           [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]])
    >>> bool(model.explained_variance_ratio_.sum() > 0.99)
    True
    """

    _parts: ClassVar[tuple[str, ...]] = (*Factorization._parts, "continuation")
    _reads_sources: ClassVar[bool] = True

    _doc_page = "factorizations.md#sparse-pca"

    def __init__(
        self,
        n_components: int,
        *,
        gamma: float | None = None,
        density: float | None = None,
        lam: float | None = None,
        mean_nonzeros: float | None = None,
        fused: float | None = None,
        coder: Coder | None = None,
        constraint: Constraint | None = None,
        learner: Learner | None = None,
        max_epochs: int | None = 1,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        init: Any = None,
        continuation: Continuation | None = None,
        replacement: Replacement | None = None,
        callbacks: Sequence[CallbackLike] = (),
        n_threads: int | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
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
        self.gamma = gamma
        self.density = density
        self.lam = lam
        self.mean_nonzeros = mean_nonzeros
        self.fused = fused

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        validation: Any = None,
        validate_every: int | Sequence[int] | None = None,
    ) -> Self:
        """Learn components from X, discarding any previous result.

        Parameters
        ----------
        X : array, memory map, CSR array, data frame or file (n, m)
            Training samples, one per row; they need not be centered. float32 is computed in float32,
            everything else in float64. X is read once for the mean, once per epoch, and once for
            the explained variance; use `partial_fit` for a stream.
        y : ignored
        validation, validate_every : optional
            As for `DictionaryLearning`.

        Returns
        -------
        self
        """
        return self._fit(X, validation=validation, validate_every=validate_every)

    @available_if(takes_a_stream)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the components once, with all of X as one batch.

        Learning continues from the state after `fit` or the last `partial_fit`; the mean is that
        of all samples so far. Batches may differ in size. The first batch needs two different
        samples, because a single one equals its mean.

        Parameters
        ----------
        X : array, CSR array or data frame (n, m)
            New samples, converted to the dtype of the first ones; they need not be centered.
        y : ignored

        Returns
        -------
        self
        """
        return self._partial_fit(X)

    def transform(self, X: Any) -> Any:
        """Return the sparse codes ``argmin_α ½‖x − μ − αD‖² + lam ‖α‖₁`` of the rows x of X.

        Parameters
        ----------
        X : array, memory map, CSR array or data frame (n, m)
            Samples, one per row; they need not be centered.

        Returns
        -------
        array (n, k), or csr_array if ``sparse_output``
            One code per row.
        """
        return self._transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean of ``min_α ½‖x − μ − αD‖² + lam ‖α‖₁`` over the rows x of X."""
        return self._score(X)

    def inverse_transform(self, X: Any) -> Array:
        """Return the signals ``αD + μ`` for codes α.

        Parameters
        ----------
        X : array or sparse array (n, k)
            Codes, one per row, as returned by `transform`.

        Returns
        -------
        array (n, m)
            One signal per row.
        """
        signals = super().inverse_transform(X)
        return np.asarray(signals + self.mean_.astype(signals.dtype))

    def _problem(self) -> Problem:
        learner = self.learner
        if learner is None:
            learner = Online(self._rows_per_step, rho=DEFAULT_RHO, t0=self._held)
        return Problem(self._codes(), self._set(), learner)

    def _default_part(self, name: str) -> Any:
        if name == "coder":
            return Lasso(self.lam, mean_nonzeros=self.mean_nonzeros)
        if name == "constraint":
            wanted = self.density if self.gamma is not None else self.density or DEFAULT_DENSITY
            if self.fused is None:
                return ElasticNetBall(self.gamma, density=wanted)
            return FusedLassoBall(self.gamma, self.fused, density=wanted)
        return Online(rho=DEFAULT_RHO) if name == "learner" else super()._default_part(name)

    def _set_part(self, name: str, part: Any) -> None:
        if name == "coder":  # these parameters are in the part now
            self.lam = self.mean_nonzeros = None
        if name == "constraint":
            self.gamma = self.density = self.fused = None
        super()._set_part(name, part)

    def _codes(self) -> Coder:
        given = _given(self, "lam", "mean_nonzeros", "coder")
        if len(given) > 1:
            message = f"give one of lam, mean_nonzeros and coder, got {given}"
            raise ValueError(message)
        coder = (
            Lasso(self.lam, mean_nonzeros=self.mean_nonzeros) if self.coder is None else self.coder
        )
        if self.lam is not None:
            check_number("lam", self.lam, low=0, strict=True)
        if isinstance(coder, Lasso) and coder.lam is None and coder.mean_nonzeros is None:
            lam = DEFAULT_LAM * math.sqrt(self._total_variance / self.n_features_in_)
            return replace(coder, lam=lam)
        return coder

    def _set(self) -> Constraint:
        given = _given(self, "gamma", "density", "constraint")
        if len(given) > 1 or (self.constraint is not None and self.fused is not None):
            message = (
                f"give one of gamma, density and constraint, and fused only without a constraint, "
                f"got {_given(self, 'gamma', 'density', 'fused', 'constraint')}"
            )
            raise ValueError(message)
        if self.constraint is not None:
            return self.constraint
        if self.density is not None:
            check_number("density", self.density, low=0, high=1, strict=True)
        wanted = self.density if given else DEFAULT_DENSITY
        if self.fused is None:
            return ElasticNetBall(self.gamma, density=wanted)
        return FusedLassoBall(self.gamma, check_number("fused", self.fused, low=0), density=wanted)

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        if isinstance(X, np.ma.MaskedArray):
            message = "SparsePCA needs samples without missing entries, got a masked array"
            raise TypeError(message)
        return super()._rows(X, reset=reset)

    def _source(self, X: Rows) -> Source:
        source = rows_of(X)
        self.mean_, self.n_samples_seen_ = column_means(source), source.n_rows
        self._tell_the_mean()
        rest = CenteredSource(source, self.mean_)
        usual = Online().resolve(self.n_components, source.n_rows).rows_per_step(source.n_rows)
        self._rows_per_step: int | None = max(usual, min(source.n_rows // ENOUGH_STEPS, MOST_ROWS))
        self._look_at(_sample(rest))
        return rest

    def _batch(self, X: Rows, state: State | None) -> Rows:
        check_finite("X", X)
        n = X.shape[0]
        if state is None:
            before, seen = np.zeros(X.shape[1]), 0
        else:  # whose count of samples has each one once per epoch
            before, seen = self.mean_, self.n_samples_seen_
        self.n_samples_seen_ = seen + n
        self.mean_ = before + (column_sums(X) - n * before) / self.n_samples_seen_
        self._tell_the_mean()
        rest = centered(X, self.mean_, X.dtype)
        if state is None:
            self._rows_per_step = None
            self._look_at(rest[:_SAMPLE_ROWS])
        else:
            state.move_origin(self.mean_ - before)
        return rest

    def _tell_the_mean(self) -> None:
        """Tell callbacks what is subtracted from the samples."""
        for callback in self.callbacks:
            if isinstance(callback, Callback):
                callback.center(self.mean_)

    def _look_at(self, rows: Array) -> None:
        """Compute the total variance and the first components from centered rows."""
        n = len(rows)
        self._total_variance = float(np.einsum("ij,ij->", rows, rows, dtype=np.float64)) / n
        rounding = n * np.finfo(np.float64).eps * float(np.linalg.norm(self.mean_))  # of the mean
        if not self._total_variance > rounding**2:
            message = (
                f"all of the {n} samples looked at are the same (or only 1 sample is given): "
                "after centering there is nothing to learn from"
            )
            raise ValueError(message)
        self._start = None
        if self.init is None:
            self._start = principal_components(rows, self.n_components)
        # Components of few samples get less weight.
        share = 0.0 if self._start is None else min(1.0, n / _HELD_ROWS)
        self._held = share * self._total_variance

    def _first_atoms(self, data: Any, mask: Any = None) -> Any:
        return self.init if self._start is None else self._start

    def _signals(self, X: Rows) -> Rows:
        check_not_masked("validation", X)
        return centered(X, self.mean_, float_dtype(X.dtype))

    def _set_result(self, state: State, X: Rows) -> None:
        super()._set_result(state, X)
        self._start = None  # no longer needed
        moments, total = score_moments(X, self.components_, self.mean_)
        order, variances = adjusted_variances(moments)
        may_flip = not state.coder.positive  # codes change sign with the components
        self.components_ = _signed(self.components_[order], state.constraint, may_flip)
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / total if total > 0 else 0.0 * variances
        self.density_ = density(self.components_)


def _sample(source: Source) -> Array:
    """Return up to `_SAMPLE_ROWS` rows, evenly spread."""
    numbers = np.linspace(0, source.n_rows - 1, min(source.n_rows, _SAMPLE_ROWS))
    return source.rows(np.unique(numbers.astype(np.intp)))  # type: ignore[no-any-return]


def _given(model: Any, *names: str) -> dict[str, Any]:
    """Return those of these parameters that are not None."""
    values = {name: getattr(model, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _signed(D: Array, constraint: Constraint, may_flip: bool) -> Array:
    """Return atoms with the sign that makes the largest entry positive, where allowed."""
    D = np.ascontiguousarray(D)
    for atom in D:
        if may_flip and atom[np.argmax(np.abs(atom))] < 0:
            flipped = 0 - atom  # without −0
            with named(constraint, "gauge"):
                may_stay = constraint.gauge(flipped) <= 1.0 + 1e-3
            if may_stay:
                atom[:] = flipped
    return D
