"""`SparseCCA`: correlate a few columns of X with stretches of the columns of Y."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import _get_feature_names, check_array, check_is_fitted, validate_data

from smalto.checks import (
    Array,
    as_table,
    check_finite,
    check_integer,
    check_kind,
    check_number,
    check_scale,
    float_dtype,
)
from smalto.coders.base import Coder, check_coder
from smalto.coders.scaling import largest_entry, shifted
from smalto.constraints import Constraint, FusedLassoBall
from smalto.constraints.base import check_constraint, project_checked
from smalto.estimators.all_or_nothing import all_or_nothing
from smalto.estimators.nested_parameters import NestedParameters
from smalto.estimators.rank_one import Pair, Side, codes_of, find_pair, keep_largest
from smalto.estimators.weight_table import weight_table
from smalto.threads import single_threaded_blas
from smalto.warn import warn

DEFAULT_NONZEROS = 25
DEFAULT_GAMMA = 1.0
_SHARE = 4  # one in so many columns, at most, has a weight by default
_ORDINARY = 8  # exponents of the largest entries of blocks, at most, that are left alone


class SparseCCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    MultiOutputMixin,  # type: ignore[misc]
    NestedParameters,
):
    """Sparse CCA: ``min_{u,v} ½‖YᵀX − v uᵀ‖² + λ‖u‖₁`` with v in a fused-lasso set.

    The set is ``‖v‖₂² + gamma1 ‖v‖₁ + gamma2 Σ|v_i − v_(i−1)| ≤ 1`` (Section 6.3 of the paper,
    with the ℓ1 norm of u, and covariances within each block treated as diagonal). X and Y are
    two blocks of variables of the same samples, such as gene expressions and copy numbers along
    a chromosome. A few columns of X (weights u) are found that correlate with stretches of
    neighboring columns of Y (weights v), by alternating minimization from the leading singular
    vectors. YᵀX is never formed.

    Parameters
    ----------
    n_components : int, default 1
        Number of pairs (u, v). After each pair, X is deflated by the score ``Xu``, and Y by
        ``Yv``: the scores of the deflated blocks are orthogonal, as the paper wants them
        (footnote of Section 6.3). Those of X and Y themselves, which `transform` returns, need
        not be: weights for which they are would be combinations of several pairs, and less sparse.
    max_nonzeros_x : int, optional
        Number of nonzero weights of X, by default a quarter of the columns that vary, rounded
        up, and at most 25; λ is chosen accordingly. Tied columns, such as copies, are kept or
        left out together: there are fewer then, or more, with a warning, if the best ones are
        tied. The number may also change after iteration 64, when λ is fixed so that the
        iteration converges. If all columns are kept, λ is zero, and ``gamma1`` and ``gamma2``
        have no effect, which is warned of.
    gamma1 : float, default 1
        The larger, the fewer nonzero weights of Y.
    gamma2 : float, default 1
        The larger, the fewer jumps between the weights of neighboring columns of Y.
    ordered : {"y", "x"}
        The block whose columns are ordered, and whose weights are in the fused-lasso set. With
        "x" the blocks exchange their roles.
    max_nonzeros_y : int, optional
        Number of nonzero weights of Y if ``ordered="x"``, where ``max_nonzeros_x`` is another
        name for it: give only one of them.
    coder : coder, optional
        Another penalty for the unordered block, such as ``Lasso(lam, positive=True)``, instead
        of ``max_nonzeros_x`` or ``max_nonzeros_y``. Its signals are the columns of YᵀX.
    constraint : constraint, optional
        Another set for the ordered block, instead of that of ``gamma1`` and ``gamma2``.
    scale : bool, default True
        Whether to divide each column by its standard deviation. Columns are always centered.
    max_iter : int, default 500
        Maximum number of iterations for each pair.
    tol : float, default 1e-6
        Stop when an iteration changes v by at most this share of its norm.

    Attributes
    ----------
    x_weights_ : array (p, n_components)
        The vectors u, of norm 1, for centered and scaled columns.
    y_weights_ : array (q, n_components)
        The vectors v, of norm 1. The largest weight in magnitude, in the ordered block, is
        positive, unless the weights of a block all have one sign.
    correlations_ : array (n_components,)
        Correlation of ``Xu`` with ``Yv`` over the samples of `fit`.
    lam_ : array (n_components,)
        The final λ, in units of YᵀX; NaN for coders without λ.
    x_mean_, x_scale_, y_mean_, y_scale_ : arrays
        Mean and scale of the columns. The scale of a constant column is 1; its weight is zero.
    n_iter_ : int
        Number of iterations of the slowest pair.
    n_features_in_ : int
        Number p of columns of X.
    feature_names_in_ : array (p,)
        Names of the columns of X, if they are all strings.
    target_names_in_ : array (q,)
        Names of the columns of y, if they are all strings.

    See Also
    --------
    sklearn.cross_decomposition.CCA : Dense weights, for more samples than columns.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import SparseCCA
    >>> rng = np.random.default_rng(2)
    >>> X, Y, hidden = *rng.standard_normal((2, 100, 40)), rng.standard_normal((100, 1))
    >>> X[:, 3:6] += 2 * hidden  # a few columns of X ...
    >>> Y[:, 10:15] += 2 * hidden  # ... correlate with a stretch of Y
    >>> model = SparseCCA(max_nonzeros_x=3).fit(X, Y)
    >>> np.flatnonzero(model.x_weights_)
    array([3, 4, 5])
    >>> np.flatnonzero(model.y_weights_)
    array([10, 11, 12, 13, 14])
    >>> model.score(X, Y) > 0.9
    True
    """

    _parts: ClassVar[tuple[str, ...]] = ("coder", "constraint")

    _doc_page = "factorizations.md#sparse-cca"

    def __init__(
        self,
        n_components: int = 1,
        *,
        max_nonzeros_x: int | None = None,
        gamma1: float = DEFAULT_GAMMA,
        gamma2: float = DEFAULT_GAMMA,
        ordered: Literal["y", "x"] = "y",
        max_nonzeros_y: int | None = None,
        coder: Coder | None = None,
        constraint: Constraint | None = None,
        scale: bool = True,
        max_iter: int = 500,
        tol: float = 1e-6,
    ) -> None:
        self.n_components = n_components
        self.max_nonzeros_x = max_nonzeros_x
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.ordered = ordered
        self.max_nonzeros_y = max_nonzeros_y
        self.coder = coder
        self.constraint = constraint
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def _default_part(self, name: str) -> Any:
        return FusedLassoBall(self.gamma1, self.gamma2) if name == "constraint" else None

    def _set_part(self, name: str, part: Any) -> None:
        if name == "constraint":  # these parameters are in the part now
            self.gamma1 = self.gamma2 = DEFAULT_GAMMA
        super()._set_part(name, part)

    def fit(self, X: Any, y: Any) -> Self:
        """Find pairs of weights.

        Parameters
        ----------
        X : array or data frame (n, p)
            One block of variables, one sample per row. float32 is computed in float32,
            everything else in float64.
        y : array or data frame (n, q) or (n,)
            The other block, of the same samples.

        Returns
        -------
        self
        """
        count, constraint = self._check_settings()
        with all_or_nothing(self):
            X, Y = self._blocks(X, y, reset=True)
            self._fit(X, Y, count, constraint)
        return self

    def _fit(self, X: Array, Y: Array, count: int | None, constraint: Constraint) -> None:
        self.x_mean_, self.x_scale_, x_constant = _moments("X", X, self.scale)
        self.y_mean_, self.y_scale_, y_constant = _moments("y", Y, self.scale)
        X, Y = (X - self.x_mean_) / self.x_scale_, (Y - self.y_mean_) / self.y_scale_
        X[:, x_constant], Y[:, y_constant] = 0, 0  # not only up to the rounding of the mean
        X, Y, coder, unit = _of_size_one(X, Y, self.coder)
        swapped = self.ordered == "x"
        blocks = (Y, X) if swapped else (X, Y)
        if count is None:
            varying = np.count_nonzero(blocks[0].any(axis=0))
            count = min(DEFAULT_NONZEROS, math.ceil(varying / _SHARE))
        if coder is None and count > blocks[0].shape[1]:
            name, block = ("max_nonzeros_y", "y") if swapped else ("max_nonzeros_x", "X")
            message = (
                f"{name}={count} exceeds the columns of {block}: n_features={blocks[0].shape[1]}"
            )
            raise ValueError(message)
        nothing = np.zeros((len(X), 0), X.dtype)
        coded, ordered = (Side(block, nothing) for block in blocks)
        pairs: list[Pair] = []
        with single_threaded_blas():
            for _ in range(self.n_components):
                codes = keep_largest(count) if coder is None else codes_of(coder, coded, ordered)
                pair = find_pair(coded, ordered, codes, constraint, self.max_iter, self.tol)
                pairs.append(pair)
                coded = coded.without(coded.X @ pair.u)
                ordered = ordered.without(ordered.X @ pair.v)
        self._warn(pairs, constraint)
        varies = blocks[1].any(axis=0)  # fusion gives constant columns the weight of others
        signed = [_signed(pair.u, pair.v * varies) for pair in pairs]
        u, v = (np.column_stack([pair[i] for pair in signed]) for i in (0, 1))
        self.x_weights_, self.y_weights_ = (v, u) if swapped else (u, v)
        self.lam_ = unit * np.array([np.nan if pair.lam is None else pair.lam for pair in pairs])
        self.n_iter_ = max(pair.n_iter for pair in pairs)
        self.correlations_ = _correlations(X @ self.x_weights_, Y @ self.y_weights_)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return the scores ``Xu`` of the samples, and also ``Yv`` if y is given.

        ``fit_transform(X, y)`` returns the scores of X alone, as pipelines require.

        Parameters
        ----------
        X : array or data frame (n, p)
            One block of variables, one sample per row.
        y : array or data frame (n, q), optional
            The other block, of the same samples.

        Returns
        -------
        array (n, n_components), or a pair of such arrays
            The scores.
        """
        check_is_fitted(self, "x_weights_")
        if y is None:
            _check_not_masked(X)
            X = validate_data(
                self, as_table("X", X), reset=False, dtype="numeric", ensure_all_finite=False
            )
            check_finite("X", X)
            return self._scores(X, "x")
        X, Y = self._blocks(X, y, reset=False)
        # scikit-learn gives the first of a tuple the wanted container, and leaves the others.
        second = _wrap_data_with_container("transform", self._scores(Y, "y"), y, self)
        return self._scores(X, "x"), second

    def weights_table(self, block: Literal["x", "y"] | None = None) -> Any:
        """Return the nonzero weights as a data frame of pandas, the largest of each pair first.

        Parameters
        ----------
        block : {"x", "y"}, optional
            The block of variables; by default both, one after the other.

        Returns
        -------
        pandas.DataFrame
            One row per weight, with the columns "block" (if both are asked for), "pair", "column"
            (its number), "name" (if the columns had names in `fit`) and "weight".
        """
        check_is_fitted(self, "x_weights_")
        if block not in ("x", "y", None):
            message = f'block must be "x", "y" or None for both, got {block!r}'
            raise ValueError(message)
        blocks = {
            "x": (self.x_weights_, vars(self).get("feature_names_in_")),
            "y": (self.y_weights_, vars(self).get("target_names_in_")),
        }
        return weight_table(blocks if block is None else blocks[block])

    def score(self, X: Any, y: Any) -> float:
        """Return the mean correlation of ``Xu`` with ``Yv`` over the pairs; 0 if one is constant."""
        check_is_fitted(self, "x_weights_")
        X, Y = self._blocks(X, y, reset=False)
        scores = self._scores(X, "x"), self._scores(Y, "y")
        if len(scores[0]) < 2:
            message = f"a correlation needs at least two samples, got {len(scores[0])} sample"
            raise ValueError(message)
        return float(np.mean(_correlations(*scores)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.x_weights_.shape[1])

    def _blocks(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        """Return both blocks, checked, in the dtype of X."""
        if y is None:
            message = "SparseCCA requires y to be passed, but the target y is None"
            raise ValueError(message)
        _check_not_masked(X)
        _check_not_masked(y)
        X, y = as_table("X", X), as_table("y", y)
        least = 2 if reset else 1
        settings = {"dtype": "numeric", "ensure_all_finite": False}
        X = validate_data(self, X, reset=reset, ensure_min_samples=least, **settings)
        names = _get_feature_names(y)
        Y = check_array(y, ensure_2d=False, input_name="y", **settings)
        if reset:
            self.__dict__.pop("target_names_in_", None)
            if names is not None:
                self.target_names_in_ = names
        Y = Y[:, None] if Y.ndim == 1 else Y
        if len(X) != len(Y):
            message = f"X and y must have the same samples, got {len(X)} in X and {len(Y)} in y"
            raise ValueError(message)
        if not reset and Y.shape[1] != len(self.y_weights_):
            message = (
                f"y must have the {len(self.y_weights_)} columns it had in fit, got {Y.shape[1]}"
            )
            raise ValueError(message)
        check_finite("X", X)
        check_finite("y", Y)
        dtype = float_dtype(X.dtype)
        check_scale("X", X, dtype)
        check_scale("y", Y, dtype)
        return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)

    def _scores(self, block: Array, side: str) -> Array:
        """Return the scores of a block, in its dtype."""
        dtype = float_dtype(block.dtype)
        names = (f"{side}_{name}_" for name in ("mean", "scale", "weights"))
        mean, scale, weights = (getattr(self, name).astype(dtype, copy=False) for name in names)
        return np.asarray(((block - mean) / scale) @ weights)

    def _check_settings(self) -> tuple[int | None, Constraint]:
        """Return the number of nonzeros of the unordered block, and the set of the ordered one."""
        check_integer("n_components", self.n_components)
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol, low=0)
        check_kind("scale", self.scale, bool | np.bool_, "True or False")
        if self.ordered not in ("x", "y"):
            message = f'ordered must be "y" or "x", got {self.ordered!r}'
            raise ValueError(message)
        count = self._count()
        if self.constraint is None:
            return count, FusedLassoBall(self.gamma1, self.gamma2)
        for name in ("gamma1", "gamma2"):
            gamma = check_number(name, getattr(self, name), low=0)
            if gamma != DEFAULT_GAMMA:
                message = (
                    f"{name}={gamma:g} and constraint exclude each other: the constraint alone "
                    "defines the set of the ordered block"
                )
                raise ValueError(message)
        return count, check_constraint(self.constraint)

    def _count(self) -> int | None:
        """Return the number of nonzeros of the unordered block that is given, if any."""
        names = ("max_nonzeros_x", "max_nonzeros_y")
        given = {
            name: check_integer(name, getattr(self, name))
            for name in names
            if getattr(self, name) is not None
        }
        if self.ordered == "y" and "max_nonzeros_y" in given:
            message = (
                f"max_nonzeros_y={self.max_nonzeros_y} needs ordered='x': if y is ordered, "
                "gamma1 and gamma2 determine how many weights are nonzero"
            )
            raise ValueError(message)
        if len(given) > 1:
            message = (
                f"max_nonzeros_x={self.max_nonzeros_x} and max_nonzeros_y={self.max_nonzeros_y} "
                "exclude each other: if x is ordered, gamma1 and gamma2 determine how many of its "
                "weights are nonzero. Give max_nonzeros_y alone"
            )
            raise ValueError(message)
        if self.coder is not None:
            check_coder(self.coder)
        if self.coder is not None and given:
            name = next(iter(given))
            message = (
                f"{name}={given[name]} and coder exclude each other: the coder alone determines "
                "how many weights are nonzero"
            )
            raise ValueError(message)
        return next(iter(given.values()), None)

    def _warn(self, pairs: list[Pair], constraint: Constraint) -> None:
        late = [number for number, pair in enumerate(pairs) if not pair.converged]
        if late:
            message = (
                f"pairs {late} have not converged to tol={self.tol} in max_iter={self.max_iter} "
                "iterations: increase one of them"
            )
            warn(message, ConvergenceWarning)
        empty = [number for number, pair in enumerate(pairs) if not pair.u.any()]
        if empty:
            reason = "" if self.coder is None else ", or the penalty of the coder is too large"
            warn(f"pairs {empty} are zero: X and y have no correlation left{reason}")
        self._warn_of_ties(pairs)
        self._warn_of_no_penalty(pairs, constraint)

    def _warn_of_ties(self, pairs: list[Pair]) -> None:
        """Warn if there are more nonzeros than were asked for."""
        for name in ("max_nonzeros_x", "max_nonzeros_y"):
            count = getattr(self, name)
            tied = [] if count is None else [i for i, p in enumerate(pairs) if _ties(p.u) > count]
            if tied:
                message = (
                    f"pairs {tied} have more nonzero weights than {name}={count}: the best "
                    "columns are tied, perhaps copies of each other, and are all kept"
                )
                warn(message)

    def _warn_of_no_penalty(self, pairs: list[Pair], constraint: Constraint) -> None:
        """Warn if the set of the ordered block has no effect.

        The product v uᵀ stays the same if v is divided by a number and u is multiplied by it.
        Without a penalty that costs nothing: any v is in the set if it is made small enough.
        """
        loose = [i for i, p in enumerate(pairs) if not p.penalized and _bends(constraint, p.v)]
        if not loose:
            return
        coded, ordered = ("y", "X") if self.ordered == "x" else ("X", "y")
        what, dense = "the constraint has", "an L2Ball instead"
        if self.constraint is None:
            what = f"gamma1={self.gamma1:g} and gamma2={self.gamma2:g} have"
            dense = "gamma1=gamma2=0"
        remedy = "give the coder a larger penalty"
        if self.coder is None:
            remedy = (
                f"give a smaller max_nonzeros_{coded.lower()}, or coder=Lasso(lam) with lam > 0"
            )
        message = (
            f"without a penalty on the weights of {coded}, {what} no effect on the sparsity of those "
            f"of {ordered}, in pairs {loose}: {remedy}, or {dense} if dense weights are meant"
        )
        warn(message)


def _of_size_one(
    X: Array, Y: Array, coder: Coder | None
) -> tuple[Array, Array, Coder | None, float]:
    """Return blocks whose fourth powers fit into their dtype, the problem for them, and its unit.

    They are divided by powers of two, whose product is the unit: that of ``ZᵧᵀZₓ``, and of lam.
    """
    exponents = [math.frexp(largest_entry(block))[1] for block in (X, Y)]
    if max(map(abs, exponents)) <= _ORDINARY:
        return X, Y, coder, 1.0
    unit, problem = 2.0 ** sum(exponents), coder
    if coder is not None and not coder.undecided:
        problem = coder.rescaled(1.0 / unit, 1.0)
        if problem is None:
            return X, Y, coder, 1.0
    return shifted(X, -exponents[0]), shifted(Y, -exponents[1]), problem, unit


def _moments(name: str, block: Array, scale: bool) -> tuple[Array, Array, Array]:
    """Return mean and scale of the columns, and which are constant: the scale of these is 1."""
    mean = block.mean(axis=0, dtype=np.float64)
    deviation = block.std(axis=0, ddof=1, dtype=np.float64)
    # The range too: with many samples the rounding of the mean makes the deviation larger.
    rounding = 10 * np.finfo(block.dtype).eps * np.abs(block).max(axis=0)
    constant = (deviation <= rounding) | (np.ptp(block, axis=0) <= rounding)
    if constant.all():
        message = f"every column of {name} is constant: there is nothing to correlate"
        raise ValueError(message)
    scales = np.where(constant | (not scale), 1.0, deviation)
    return mean.astype(block.dtype), scales.astype(block.dtype), constant


def _ties(u: Array) -> int:
    """Return the number of nonzero weights if they all have one size, otherwise 0."""
    size = np.abs(u[u != 0])
    return len(size) if len(size) and np.ptp(size) <= 1e-3 * size.max() else 0


def _bends(constraint: Constraint, v: Array) -> bool:
    """Return whether the set, if it has an effect, makes another direction of that of v."""
    direction = v / v.dtype.type(np.linalg.norm(v))
    large = 1000 * direction
    project_checked(constraint.begun(direction[None]), large)
    large /= v.dtype.type(np.linalg.norm(large)) or 1
    return bool(np.linalg.norm(large - direction) > 1e-3)


def _signed(u: Array, v: Array) -> tuple[Array, Array]:
    """Return both scaled to norm 1, with the sign that makes the largest weight in v positive.

    If u or v has no negative weight, the sign is kept: it may be a constraint.
    """
    u, v = (w / (w.dtype.type(np.linalg.norm(w)) or 1) for w in (u, v))
    if (u >= 0).all() or (v >= 0).all() or v[np.argmax(np.abs(v))] > 0:
        return u, v
    return -u, -v


def _correlations(a: Array, b: Array) -> Array:
    """Return the correlation of each column of a with that of b; 0 if one is constant."""
    a, b = (np.asarray(s, np.float64) - s.mean(axis=0, dtype=np.float64) for s in (a, b))
    norms = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    products = np.einsum("ij,ij->j", a, b)
    return np.asarray(np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0))


def _check_not_masked(X: Any) -> None:
    """Raise TypeError for a masked array."""
    if isinstance(X, np.ma.MaskedArray):  # scikit-learn would drop the mask
        message = "SparseCCA needs samples without missing entries, got a masked array"
        raise TypeError(message)
