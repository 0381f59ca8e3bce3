"""`DictionaryLearning`: `learn` and `encode` as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if

from smalto.coders.base import Coder
from smalto.coders.signals import Missing
from smalto.constraints import Constraint
from smalto.estimators.base import Factorization, takes_a_stream
from smalto.estimators.sklearn_callbacks import with_callbacks
from smalto.learning.callbacks.base import CallbackLike
from smalto.learning.learners.base import Learner
from smalto.learning.options import Continuation, Replacement


class DictionaryLearning(Factorization):
    """Learn a dictionary: ``min_D Σ_x min_α ½‖x − αD‖² + ψ(α)``, every atom in a convex set.

    Each sample x (a row of X) is approximated by a combination αD of a few atoms (rows of D).
    The coder defines the penalty ψ, the constraint defines the set, and the learner is the
    algorithm. `transform` solves the inner problem, with the same coder as in learning.

    Parameters
    ----------
    n_components : int
        Number k of atoms.
    coder : coder, default ``Lasso()``
        The sparse coding problem. Parameters that it leaves open, such as ``lam``, are chosen
        from the data given to `fit`, or from the first batches given to `partial_fit`.
    constraint : constraint, default ``L2Ball()``
        The convex set that contains each atom.
    learner : learner, optional
        The learning algorithm: by default ``Online()``, or ``Batch()`` in `fit` for at most 4096
        samples in memory if no limit is given either. `partial_fit` goes on with ``Online()``.
    max_epochs : int, optional
        Maximum number of passes of `fit` over the data. If neither this nor ``max_steps`` or
        ``max_seconds`` is given, it is 1, or 50 if the learner is ``Batch()`` by default.
    max_steps : int, optional
        Maximum number of updates in `fit`.
    max_seconds : float, optional
        Maximum number of seconds that `fit` learns.
    init : array (k, m), optional
        The first dictionary. By default it consists of distinct random samples, scaled to norm 1.
    continuation : Continuation, optional
        Start with a smaller λ and increase it during the first updates.
    replacement : Replacement, optional
        When to replace unused and duplicate atoms.
    callbacks : tuple or list of callables
        Each is called after every update as ``callback(state, record)``. If one returns a true
        value, `fit` stops. The state changes with the next update: copy what you keep.
    n_threads : int, optional
        Number of threads; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Determines the first dictionary and the order of the samples.
    sparse_output : bool, default False
        Whether `transform` returns a SciPy CSR array instead of a dense array.
    missing : {None, "nan"}
        With "nan", NaN in X marks a missing entry, and the cost is that of the known entries. By
        default NaN is an error.

    Attributes
    ----------
    components_ : array (k, m)
        The dictionary, one atom per row.
    coder_ : coder
        The coder with all parameters chosen: ``encode(X, components_, coder_)`` returns the codes
        that `transform` returns.
    state_ : State
        Everything needed to continue learning.
    history_ : list of Record
        One record per update, with costs, times and counts.
    n_iter_ : int
        Number of updates made.
    stopped_ : str
        Why `fit` stopped: "epochs", "steps", "seconds", "callback", "interrupt", or "source" if
        a stream ended that cannot restart.
    n_features_in_ : int
        Number m of features.
    feature_names_in_ : array (m,)
        Names of the features, if X has column names that are all strings.

    See Also
    --------
    smalto.learn : The same as a function, which can resume from a state.
    smalto.encode : Sparse codes over any dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.coders import Lasso
    >>> from smalto import DictionaryLearning
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

    _doc_page = "learning.md"

    def __init__(
        self,
        n_components: int,
        *,
        coder: Coder | None = None,
        constraint: Constraint | None = None,
        learner: Learner | None = None,
        max_epochs: int | None = None,
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
        """Learn a dictionary from X, discarding any previous result.

        Parameters
        ----------
        X : array, memory map, CSR array, data frame, file or stream
            Training samples, one per row: anything that `smalto.learn` takes. float32 is computed in float32,
            everything else in float64. Only the rows that an update draws are copied. A Dask
            array is learned from on its cluster.
        y : ignored
        sample_weight : array (n,), optional
            Nonnegative weights of the samples in the cost.
        mask : array of bool (n, m), optional
            True where an entry of X is missing; its value is ignored.
        groups : array (n,), optional
            Group label of each sample, for coders that code a group at once, such as `JointOMP`.
        validation : array or CSR array, optional
            Held-out samples, whose mean cost is recorded in ``history_`` before the first update,
            after the last one, and at those given by ``validate_every``.
        validation_groups : array, optional
            Group labels of the held-out samples.
        validate_every : int or sequence of int, optional
            Validate every this many updates, or after the updates listed. By default after
            updates 1, 2, 3, 4, 6, 8, 12, 16, ...

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

        Learning continues from the state after `fit` or the last `partial_fit`. The first batch
        may have fewer samples than atoms. Batches may differ in size: the past is weighted sample
        by sample.

        Parameters
        ----------
        X : array, CSR array or data frame (n, m)
            New samples, converted to the dtype of the first ones.
        y : ignored
        sample_weight, mask, groups : optional
            As for `fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X, sample_weight=sample_weight, mask=mask, groups=groups)

    def transform(self, X: Any, *, mask: Any = None, groups: Any = None) -> Any:
        """Return the sparse codes ``argmin_α ½‖x − αD‖² + ψ(α)`` of the rows x of X.

        Parameters
        ----------
        X : array, memory map, CSR array, data frame or Dask array (n, m)
            Signals, one per row. float32 is coded in float32, everything else in float64.
        mask : array of bool (n, m), optional
            True where an entry of X is missing.
        groups : array (n,), optional
            Group label of each signal, for coders that code a group at once. Without labels such
            a coder codes all signals as one group.

        Returns
        -------
        array (n, k), or csr_array if ``sparse_output``
            One code per row. For a Dask array, a lazy Dask array that is coded block by block.
        """
        return self._transform(X, mask, groups)

    def score(self, X: Any, y: Any = None, *, mask: Any = None, groups: Any = None) -> float:
        """Return minus the mean of ``min_α ½‖x − αD‖² + ψ(α)`` over the rows x of X.

        Higher is better. The cost depends on ψ: do not use it to compare different ``lam``.
        """
        return self._score(X, mask, groups)
