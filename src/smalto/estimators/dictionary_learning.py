"""`DictionaryLearning`: `learn` and `encode` as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if

from smalto.coders.base import Coder
from smalto.coders.signals import Missing
from smalto.constraints import Constraint
from smalto.estimators.base import Factorization, takes_a_stream
from smalto.learning.callbacks.base import CallbackLike
from smalto.learning.learners.base import Learner
from smalto.learning.options import Continuation, Replacement


class DictionaryLearning(Factorization):
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

    _parts: ClassVar[tuple[str, ...]] = (*Factorization._parts, "continuation")
    _reads_sources: ClassVar[bool] = True
    _reads_dask: ClassVar[bool] = True

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
        callbacks: Sequence[CallbackLike] = (),
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
        return self._fit(
            X,
            sample_weight=sample_weight,
            mask=mask,
            groups=groups,
            validation=validation,
            validation_groups=validation_groups,
            validate_every=validate_every,
        )

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
        return self._partial_fit(X, sample_weight=sample_weight, mask=mask, groups=groups)

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
        return self._transform(X, mask, groups)

    def score(self, X: Any, y: Any = None, *, mask: Any = None, groups: Any = None) -> float:
        """Minus the mean of ``min_α ½‖x − αD‖² + ψ(α)`` over the rows x of X: higher is better.

        The cost depends on ψ: to choose between different ``lam`` another measure is needed.
        """
        return self._score(X, mask, groups)
