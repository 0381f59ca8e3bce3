"""SPAMS's functions that learn a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.compat.spams.columns import refuse, required, signals
from smalto.compat.spams.decomposition import lasso
from smalto.compat.spams.modes import L2, PENALTY, atom_set, coder
from smalto.compat.spams.penalties import penalty_coder
from smalto.compat.spams.training import Schedule, factorize, train


def trainDL(
    X: Any,
    return_model: bool = False,
    model: Any = None,
    D: Any = None,
    numThreads: int = -1,
    batchsize: int = -1,
    K: int = -1,
    lambda1: Any = None,
    lambda2: float = 10e-10,
    iter: int = -1,
    t0: float = 1e-5,
    mode: int = PENALTY,
    posAlpha: bool = False,
    posD: bool = False,
    expand: bool = False,
    modeD: int = L2,
    whiten: bool = False,
    clean: bool = True,
    verbose: bool = True,
    gamma1: float = 0.0,
    gamma2: float = 0.0,
    rho: float = 1.0,
    iter_updateD: Any = None,
    stochastic_deprecated: bool = False,
    modeParam: int = 0,
    batch: bool = False,
    log_deprecated: bool = False,
    logName: str = "",
) -> Any:
    """Learn a dictionary for the columns of X, online.

    Parameters
    ----------
    X : array or csc_matrix (m, n)
        Samples, as columns.
    return_model : bool, default False
        Return also the statistics of the past.
    model : dict, optional
        Statistics to go on from, with D.
    D : array (m, K), optional
        The first dictionary; by default samples. It is not written to.
    numThreads : int, default -1
        Number of threads, -1 for every core; it does not change the result.
    batchsize : int, default -1
        Number of samples in a mini-batch; -1 means 512. (In SPAMS the default depends on the
        number of cores.)
    K : int, default -1
        Number of atoms; it must be given unless D is.
    lambda1 : float
        The parameter of the mode; it has no default.
    lambda2 : float, default 1e-9
        Weight of ``½‖α‖²`` in mode 2; other modes take nothing above the default.
    iter : int, default -1
        Number of mini-batches; if negative, of seconds.
    t0 : float, default 1e-5
        Weight of the first dictionary in the statistics.
    mode : int, default 2
        The codes: 0, 1, 2 as in `lasso`; 3 (SPARSITY): ``‖α‖₀ ≤ lambda1``; 4 (L2ERROR2): as few
        nonzeros as have ``‖x − Dα‖² ≤ lambda1``; 5 (PENALTY2): ``½‖x − Dα‖² + lambda1‖α‖₀``;
        3 to 5 greedily.
    posAlpha : bool, default False
        Require α ≥ 0, also in modes 3 to 5 (where SPAMS ignores it).
    posD : bool, default False
        Require D ≥ 0.
    modeD : {0, 1, 2, 3}, default 0
        The atoms: 0: ``‖d‖² ≤ 1``; 1: ``‖d‖² + gamma1‖d‖₁ ≤ 1``;
        2: ``‖d‖² + gamma1‖d‖₁ + gamma2 FL(d) ≤ 1`` with ``FL(d) = Σ|d_(i+1) − d_i|``;
        3: ``(1 − gamma1)‖d‖² + gamma1‖d‖₁ ≤ 1``.
    whiten : bool, default False
        Subtract its mean from each sample.
    clean : bool, default True
        Replace atoms that are unused or alike.
    gamma1, gamma2 : float, default 0
        The parameters of ``modeD``.
    rho : float, default 1
        With ``modeParam=1``: a sample of step i has the weight ``(i/t)^rho`` at step t, as in the
        paper (SPAMS's own formula has the wrong sign). With ``stochastic_deprecated``: the rate of
        a step is ``rho/(t0 + samples)``.
    iter_updateD : int, optional
        Number of passes over the atoms in an update: 1, or 5 with ``batch``.
    stochastic_deprecated : bool, default False
        Use stochastic gradient descent.
    modeParam : {0, 1}, default 0
        How the past is forgotten: 1 by ``rho``, 0 as with ``rho=3``. 2 is not available.
    batch : bool, default False
        Use all samples in every step.
    log_deprecated : bool, default False
        True is not available.
    expand, verbose, logName
        No effect: SPAMS does not use the first, and nothing is printed or written.

    Returns
    -------
    D : array (m, K)
        The atoms, as columns, in Fortran order.
    model : dict
        If asked for: "A" (K, K), "B" (m, K) and "iter".
    """
    if log_deprecated:
        refuse("log_deprecated=True", "use smalto.learn with validation= or callbacks=")
    within = atom_set(modeD, gamma1, gamma2, posD)
    schedule = Schedule(
        batchsize, iter, t0, rho, modeParam, iter_updateD, batch, stochastic_deprecated, clean
    )
    problem = coder(mode, required("lambda1", lambda1), lambda2, posAlpha)
    return train(X, problem, within, schedule, D, K, model, return_model, whiten, numThreads)


def structTrainDL(
    X: Any,
    return_model: bool = False,
    model: Any = None,
    D: Any = None,
    graph: Any = None,
    tree: Any = None,
    numThreads: int = -1,
    tol: float = 0.000001,
    fixed_step: bool = True,
    ista: bool = False,
    batchsize: int = -1,
    K: int = -1,
    lambda1: Any = None,
    lambda2: float = 10e-10,
    lambda3: float = 0.0,
    iter: int = -1,
    t0: float = 1e-5,
    regul: Any = "none",
    posAlpha: bool = False,
    posD: bool = False,
    expand: bool = False,
    modeD: int = L2,
    whiten: bool = False,
    clean: bool = True,
    verbose: bool = True,
    gamma1: float = 0.0,
    gamma2: float = 0.0,
    rho: float = 1.0,
    iter_updateD: Any = None,
    stochastic_deprecated: bool = False,
    modeParam: int = 0,
    batch: bool = False,
    log_deprecated: bool = False,
    logName: str = "",
) -> Any:
    """Learn a dictionary for the columns of X, online, with a penalty on codes by its name.

    Parameters
    ----------
    regul : str, default "none"
        "l0" (greedily), "l1", "l2" (the norm, not its square, as in SPAMS's function),
        "elastic-net", "tree-l2" or "none". Others are not available.
    lambda1, lambda2 : float
        Weights of the penalty, as in `fistaFlat`; the first has no default.
    tree : dict, optional
        The groups of atoms for "tree-l2", as in `fistaTree`.
    graph : dict, optional
        Not available.
    tol, fixed_step, ista, lambda3
        No effect: codes are exact, and the last belongs to a penalty that is not available.
    X, return_model, model, D, numThreads, batchsize, K, iter, t0, posAlpha, posD, expand, modeD, \
whiten, clean, verbose, gamma1, gamma2, rho, iter_updateD, stochastic_deprecated, modeParam, batch, \
log_deprecated, logName
        As in `trainDL`.

    Returns
    -------
    D : array (m, K)
        The atoms, as columns, in Fortran order.
    model : dict
        If asked for: as in `trainDL`.
    """
    if log_deprecated:
        refuse("log_deprecated=True", "use smalto.learn with validation= or callbacks=")
    if tree is not None and graph is not None:
        message = "give either tree or graph, not both"
        raise ValueError(message)
    if graph is not None or str(regul).startswith("graph"):
        refuse("a graph of groups", "use tree for groups that are nested or disjoint")
    n_atoms = K if D is None or 0 in np.shape(D) else np.shape(D)[1]
    name = {None: "none", "l2": "l2-not-squared"}.get(regul, regul)
    problem = penalty_coder(
        name, required("lambda1", lambda1), lambda2, posAlpha, np.zeros(max(n_atoms, 1), int), tree
    )
    within = atom_set(modeD, gamma1, gamma2, posD)
    schedule = Schedule(
        batchsize, iter, t0, rho, modeParam, iter_updateD, batch, stochastic_deprecated, clean
    )
    return train(X, problem, within, schedule, D, K, model, return_model, whiten, numThreads)


def trainDL_Memory(
    X: Any,
    D: Any = None,
    numThreads: int = -1,
    batchsize: int = -1,
    K: int = -1,
    lambda1: Any = None,
    iter: int = -1,
    t0: float = 1e-5,
    mode: int = PENALTY,
    posD: bool = False,
    expand: bool = False,
    modeD: int = L2,
    whiten: bool = False,
    clean: bool = True,
    gamma1: float = 0.0,
    gamma2: float = 0.0,
    rho: float = 1.0,
    iter_updateD: int = 1,
    stochastic_deprecated: bool = False,
    modeParam: int = 0,
    batch: bool = False,
    log_deprecated: bool = False,
    logName: str = "",
) -> Array:
    """Learn a dictionary for the columns of X, with the last code of every sample in memory.

    The contribution of a sample to the statistics is replaced when it is seen again, exactly.

    Parameters
    ----------
    X, D, numThreads, batchsize, K, lambda1, iter, t0, mode, posD, expand, modeD, whiten, clean, \
gamma1, gamma2, rho, iter_updateD, stochastic_deprecated, batch, log_deprecated, logName
        As in `trainDL`.
    modeParam : {0}
        Others are not available: nothing is forgotten.

    Returns
    -------
    array (m, K)
        The atoms, as columns, in Fortran order.
    """
    if log_deprecated:
        refuse("log_deprecated=True", "use smalto.learn with validation= or callbacks=")
    within = atom_set(modeD, gamma1, gamma2, posD)
    schedule = Schedule(
        batchsize, iter, t0, rho, modeParam, iter_updateD, batch, stochastic_deprecated, clean, True
    )
    problem = coder(mode, required("lambda1", lambda1), 0.0, False)
    found: Array = train(X, problem, within, schedule, D, K, None, False, whiten, numThreads)
    return found


def nmf(
    X: Any,
    return_lasso: bool = False,
    model: Any = None,
    numThreads: int = -1,
    batchsize: int = -1,
    K: int = -1,
    iter: int = -1,
    t0: float = 1e-5,
    clean: bool = True,
    rho: float = 1.0,
    modeParam: int = 0,
    batch: bool = False,
) -> Any:
    """Factorize X into non-negative matrices.

    If nothing but ``batchsize``, ``K``, ``iter`` and ``numThreads`` differs from the defaults, and
    X has no negative entries, this is `smalto.NMF`, with as many passes over the data as ``iter``
    mini-batches make. It comes closer to the minimum than online learning, which is used otherwise.

    Parameters
    ----------
    X : array or csc_matrix (m, n)
        Samples, as columns.
    return_lasso : bool, default False
        Return also the codes.
    model : None
        Not available (SPAMS ignores it): use `trainDL`.
    numThreads, batchsize, K, iter, t0, clean, rho, modeParam, batch
        As in `trainDL`.

    Returns
    -------
    U : array (m, K)
        The atoms, non-negative, as columns, in Fortran order.
    V : csc_matrix (K, n)
        If asked for: the non-negative codes.
    """
    options = (numThreads, batchsize, K, iter, t0, clean, rho, modeParam, batch)
    return _nonnegative(X, 0.0, return_lasso, model, *options)


def nnsc(
    X: Any,
    return_lasso: bool = False,
    model: Any = None,
    lambda1: Any = None,
    numThreads: int = -1,
    batchsize: int = -1,
    K: int = -1,
    iter: int = -1,
    t0: float = 1e-5,
    clean: bool = True,
    rho: float = 1.0,
    modeParam: int = 0,
    batch: bool = False,
) -> Any:
    """Factorize X by non-negative sparse coding; the method is that of `nmf`.

    Parameters
    ----------
    X : array or csc_matrix (m, n)
        Samples, as columns.
    return_lasso : bool, default False
        Return also the codes.
    model : None
        Not available (SPAMS ignores it): use `trainDL`.
    lambda1 : float
        Weight of the ℓ1 norm of the codes; it has no default.
    numThreads, batchsize, K, iter, t0, clean, rho, modeParam, batch
        As in `trainDL`.

    Returns
    -------
    U : array (m, K)
        The atoms, non-negative, as columns, in Fortran order.
    V : csc_matrix (K, n)
        If asked for: the non-negative codes (those of SPAMS may be negative).
    """
    options = (numThreads, batchsize, K, iter, t0, clean, rho, modeParam, batch)
    return _nonnegative(X, required("lambda1", lambda1), return_lasso, model, *options)


def _nonnegative(
    X: Any,
    lambda1: float,
    return_lasso: bool,
    model: Any,
    numThreads: int,
    batchsize: int,
    K: int,
    iter: int,
    t0: float,
    clean: bool,
    rho: float,
    modeParam: int,
    batch: bool,
) -> Any:
    if model is not None:
        refuse("model", "use trainDL(X, D=D, model=model, posAlpha=True, posD=True, lambda1=...)")
    plain = (t0, clean, rho, modeParam, batch) == (1e-5, True, 1.0, 0, False)
    x = signals("X", X)
    if plain and x.min() >= 0:
        U = factorize(x, lambda1, K, batchsize, iter, numThreads)
    else:
        U = trainDL(
            X, numThreads=numThreads, batchsize=batchsize, K=K, lambda1=lambda1, iter=iter, t0=t0,
            posAlpha=True, posD=True, clean=clean, rho=rho, modeParam=modeParam, batch=batch,
        )  # fmt: skip
    if not return_lasso:
        return U
    return U, lasso(X, U, lambda1=lambda1, pos=True, numThreads=numThreads)
