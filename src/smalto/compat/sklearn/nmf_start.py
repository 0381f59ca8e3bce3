"""The first W and H of NMF: scikit-learn's names, the checks of what is given, and penalties."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_non_negative

from smalto.checks import Array, Rows, check_number
from smalto.coders import Lasso
from smalto.compat.sklearn.options import check_choice, refuse
from smalto.estimators.nndsvd import nndsvd
from smalto.warn import warn

STARTS = (None, "random", "nndsvd", "nndsvda", "nndsvdar", "custom")
SMALL = 0.01  # of the mean of X: "nndsvdar" fills zeros with random numbers of this size
ROUNDING = 1e-6  # singular vectors below this share of the largest entry are taken for zero


class Penalties(NamedTuple):
    """The problems of the rows of W, and of the columns of H for each sample that counts."""

    W: Lasso
    l1_H: float
    l2_H: float

    @classmethod
    def of(cls, model: Any, n_features: int) -> Penalties:
        """Return what ``alpha_W``, ``alpha_H`` and ``l1_ratio`` of an estimator mean."""
        share = check_number("l1_ratio", model.l1_ratio, low=0, high=1)
        alpha_W = check_number("alpha_W", model.alpha_W, low=0)
        alpha_H = alpha_W
        if model.alpha_H != "same":
            alpha_H = check_number("alpha_H", model.alpha_H, low=0)
        size = n_features * alpha_W
        rows = Lasso(size * share, ridge=size * (1 - share), positive=True)
        return cls(rows, alpha_H * share, alpha_H * (1 - share))


def check_loss(beta_loss: Any, solver: str = "mu") -> None:
    """Raise unless the loss is the squared error."""
    known = {"frobenius": 2, "kullback-leibler": 1, "itakura-saito": 0}
    beta = known.get(beta_loss, beta_loss)
    if beta_loss not in known:
        beta = check_number("beta_loss", beta_loss)
    if beta == 2:
        return
    if solver == "cd":
        message = (
            f"Invalid beta_loss parameter: solver 'cd' does not handle beta_loss = {beta_loss!r}"
        )
        raise ValueError(message)
    refuse(f"beta_loss={beta_loss!r}", "use sklearn.decomposition, smalto has the squared error")


def wanted_components(n_components: Any, X: Rows, H: Any = None) -> int:
    """Return the number of components: that of H, or by default the number of features."""
    if n_components == "auto" and H is not None:
        return len(H)
    if n_components is None or n_components == "auto":
        return int(X.shape[1])
    return int(check_number("n_components", n_components, low=1))


def first_factors(
    X: Rows, n_components: Any, init: str | None, W: Any, H: Any, random_state: Any
) -> tuple[Array | None, Array]:
    """Return the first W, None to begin with the best one for H, and the first H, a copy."""
    check_choice("init", init, STARTS)
    check_non_negative(X, "NMF initialization")
    if init == "custom":
        _check(H, (n_components, X.shape[1]), "NMF (input H)")
        _check(W, (X.shape[0], n_components), "NMF (input W)")
        if H.dtype != X.dtype or W.dtype != X.dtype:
            message = (
                f"H and W should have the same dtype as X, {X.dtype}, not {H.dtype}, {W.dtype}"
            )
            raise TypeError(message)
        return np.array(W), np.array(H)
    if W is not None or H is not None:
        message = "When init!='custom', provided W or H are ignored: set init='custom' to use them"
        warn(message, RuntimeWarning)
    k = wanted_components(n_components, X)
    return None, _first_components(X, k, init, check_random_state(random_state))


def given_components(X: Rows, n_components: Any, W: Any, H: Any) -> Array:
    """Return the components that are given and stay as they are."""
    if W is not None:
        warn("When update_H=False, the provided initial W is not used.", RuntimeWarning)
    _check(H, (n_components, X.shape[1]), "NMF (input H)")
    if H.dtype != X.dtype:
        message = f"H should have the same dtype as X, {X.dtype}, not {H.dtype}"
        raise TypeError(message)
    return np.asarray(H)


def _first_components(X: Rows, k: int, init: str | None, rng: np.random.RandomState) -> Array:
    few = k <= min(X.shape)
    if init not in (None, "random") and not few:
        message = (
            f"init = '{init}' can only be used when n_components <= min(n_samples, n_features)"
        )
        raise ValueError(message)
    mean = float(X.mean())
    if init == "random" or not few:
        H = np.abs(rng.standard_normal((k, X.shape[1]))) * math.sqrt(mean / k)
        return np.ascontiguousarray(H, dtype=X.dtype)
    H = nndsvd(X, k, rng, fill=False)
    H = np.where(ROUNDING * float(H.max()) < H, H, 0)
    if init == "nndsvdar":
        H = np.where(H > 0, H, np.abs(rng.standard_normal(H.shape)) * SMALL * mean)
    elif init != "nndsvd":
        H[H == 0] = mean
    return np.ascontiguousarray(H, dtype=X.dtype)


def _check(given: Any, shape: tuple[Any, int] | tuple[int, Any], name: str) -> None:
    """Raise unless a given factor has the right shape, no negative entries, and others than 0."""
    array = check_array(given)
    for which, size, wanted in zip(("first", "second"), array.shape, shape, strict=True):
        if wanted not in ("auto", None, size):
            message = (
                f"Array with wrong {which} dimension passed to {name}: got {size}, "
                f"expected {wanted}"
            )
            raise ValueError(message)
    check_non_negative(array, name)
    if not array.any():
        message = f"Array passed to {name} is full of zeros"
        raise ValueError(message)
