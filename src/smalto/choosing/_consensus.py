"""`consensus`: the atoms that many starts agree on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from smalto.checks import Array, Rows, check_integer, check_kind, check_number, float_dtype
from smalto.choosing.agreement import Agreement, Consensus
from smalto.choosing.grid import Grid, as_template
from smalto.choosing.lazy_data import cluster_of, computed
from smalto.choosing.matching import cluster, stability
from smalto.choosing.path import Shortened, comparable_cost, final_cost
from smalto.choosing.prediction import as_table, in_single
from smalto.choosing.progress import FitProgress
from smalto.estimators.base import Factorization
from smalto.estimators.nmf import NMF
from smalto.learning.initial_state import as_seed
from smalto.learning.stopping import deferred_interrupt
from smalto.sources import is_dask
from smalto.threads import resolve_threads, run_tasks
from smalto.warn import without_warnings

_AS_STABLE = 0.05  # below the highest stability; the largest number of atoms among these is chosen


class _Start(NamedTuple):
    """The atoms of one start, and what starts are compared by; see `comparable_cost`."""

    D: Array
    cost: float


def consensus(
    X: Any,
    n_atoms: Any,
    *,
    estimator: Any = None,
    n_starts: int = 50,
    min_similarity: float = 0.8,
    refit: bool = True,
    progress: bool = False,
    client: Any = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Consensus:
    """Fit a model from many starts, and return the atoms that they agree on.

    The atoms of all starts are matched one to one (by the Hungarian method), so that each cluster
    has one atom of every start. Atoms that are not similar to the others of their cluster are left
    out, and the median of the others is an atom of the consensus. What many starts find is in the
    data; what only one finds is in the start.

    Parameters
    ----------
    X : array, CSR array, memory map, data frame or Dask array (n, m)
        Samples, one per row: anything that the estimator takes. A Dask array is computed once,
        and the workers of its cluster make the fits; see `select`.
    n_atoms : int or sequence of int
        Number of atoms, or several of them, to compare how stable they are.
    estimator : estimator or class, default `NMF`
        What to fit: `NMF`, `DictionaryLearning` or `SparsePCA`, or one of them with parameters.
        Its ``n_components`` and ``random_state`` do not matter.
    n_starts : int, default 50
        Number of starts for each number of atoms.
    min_similarity : float in [0, 1], default 0.8
        Cosine between an atom and the center of its cluster below which it is left out. Signs do
        not matter.
    refit : bool, default True
        Whether to fit the estimator from the consensus of the number of atoms chosen: the largest
        one whose mean stability is at most 0.05 below the highest.
    progress : bool, default False
        Whether to show how many fits are done, and the time left.
    client : dask.distributed.Client, optional
        A cluster whose workers do the fits. By default that of a Dask array.
    n_threads : int, optional
        Number of threads; every available core by default. Starts are spread over them. The
        result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Determines all first atoms.

    Returns
    -------
    Consensus
        For each number of atoms the consensus and its stability in ``agreements``, a ``table``, a
        ``plot()``, and the ``best_model``. Ctrl-C ends it with the starts that are done.

    See Also
    --------
    smalto.select : The number of atoms by held-out entries.

    Notes
    -----
    The stability of an atom is the mean silhouette of its cluster, as in consensus NMF of single
    cells (Kotliar et al. 2019), which has k-means in place of matching.

    The starts are computed in float32, where X is an array in memory whose entries suit it: they
    differ from each other by much more than rounding. The last fit has the precision of X.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import consensus
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(0.5, size=(200, 4)) @ rng.gamma(0.3, size=(4, 30))
    >>> X = rng.gamma(X / 0.1 + 1e-6) * 0.1  # noise
    >>> found = consensus(X, 4, n_starts=10, random_state=0)
    >>> found.best.D.shape
    (4, 30)
    >>> bool(found.best.stability.min() > 0.9)
    True
    """
    grid = Grid.of(n_atoms, None, None)
    template = as_template(estimator, NMF)
    n_starts = check_integer("n_starts", n_starts, low=2)
    similarity = check_number("min_similarity", min_similarity, low=0, high=1)
    check_kind("refit", refit, bool | np.bool_, "True or False")
    check_kind("progress", progress, bool | np.bool_, "True or False")
    threads, seed = resolve_threads(n_threads), as_seed(random_state)
    client, given = cluster_of(X, client), computed(X, template)
    X = as_table(given)
    jobs = [(k, s) for k in reversed(grid.n_atoms) for s in range(n_starts)]
    with deferred_interrupt() as interrupted:
        starts = _all_starts(
            template, in_single(X), jobs, seed, progress, client, threads, interrupted
        )
        agreements = {}
        for k in grid.n_atoms:
            found = [starts[job] for job in jobs if job[0] == k and job in starts]
            if len(found) >= 2:
                agreements[k] = _agreement(found, similarity, float_dtype(X.dtype))
        if not agreements:
            raise KeyboardInterrupt
        best = _most_stable(agreements)
        model = None
        if refit and not interrupted():
            named = given if hasattr(given, "columns") else X
            model = _refitted(template, named, agreements[best], seed, threads, interrupted)
        stopped = "interrupt" if interrupted() else "done"
    return Consensus(
        agreements, {"n_components": best}, stopped, None if stopped == "interrupt" else model
    )


def _all_starts(
    template: Factorization,
    X: Rows,
    jobs: list[tuple[int, int]],
    seed: int,
    progress: bool,
    client: Any,
    threads: int,
    interrupted: Callable[[], bool],
) -> dict[tuple[int, int], _Start]:
    """Return the atoms of all starts that were not interrupted."""
    starts: dict[tuple[int, int], _Start] = {}
    work = float(sum(k for k, _ in jobs))
    with closing(FitProgress(len(jobs), work, "consensus")) as bar:
        bar.skip(0, 0.0)

        def keep(number: int, start: _Start | None) -> None:
            if start is not None:
                starts[jobs[number]] = start
                if progress:
                    bar.tell(jobs[number][0], f"{jobs[number][0]} atoms, cost {start.cost:.5g}")

        if is_dask(X):  # each fit uses the whole cluster
            for number, job in enumerate(jobs):
                keep(number, _fit(X, template, *job, seed, interrupted=interrupted))
        elif client is not None:
            from smalto import distributed

            arguments = [(template, *job, seed) for job in jobs]
            for number, start in distributed.each_on_workers(_fit, X, arguments, client):
                keep(number, start)
                if interrupted():
                    break
        else:
            each = max(1, threads // len(jobs))

            def task(number: int) -> None:
                start = _fit(X, template, *jobs[number], seed, each, interrupted)
                keep(number, start)

            run_tasks(task, len(jobs), threads)
    return starts


def _fit(
    X: Rows,
    template: Factorization,
    k: int,
    start: int,
    seed: int,
    n_threads: int = 1,
    interrupted: Callable[[], bool] = lambda: False,
) -> _Start | None:
    """Fit from one start; return None if that was interrupted."""
    if interrupted():
        return None
    own = np.random.SeedSequence([seed, 4, k, start]).generate_state(1, np.uint64)[0]
    model: Factorization = clone(template)
    model.set_params(
        n_components=k,
        n_threads=n_threads,
        random_state=int(own >> np.uint64(2)),
        callbacks=(Shortened(2.0, interrupted),),
    )
    with without_warnings():
        model.fit(X)
    if interrupted():
        return None
    return _Start(model.components_, comparable_cost(model, X, None, final_cost(model)))


def _agreement(starts: list[_Start], min_similarity: float, dtype: np.dtype[Any]) -> Agreement:
    """Return what the starts with one number of atoms agree on."""
    costs = np.array([start.cost for start in starts])
    clusters = cluster([start.D for start in starts], int(np.argmin(costs)), min_similarity)
    scores = stability(clusters)
    order = np.argsort(-scores, kind="stable")
    return Agreement(
        np.ascontiguousarray(clusters.centers[order], dtype),
        scores[order],
        clusters.kept.mean(axis=0)[order],
        costs,
        int(np.count_nonzero(~clusters.kept)),
    )


def _most_stable(agreements: dict[int, Agreement]) -> int:
    """Return the largest number of atoms that is about as stable as the most stable one."""
    means = {k: float(found.stability.mean()) for k, found in agreements.items()}
    highest = max(means.values())
    return max(k for k, mean in means.items() if mean >= highest - _AS_STABLE)


def _refitted(
    template: Factorization,
    X: Any,
    agreement: Agreement,
    seed: int,
    threads: int,
    interrupted: Callable[[], bool],
) -> Factorization:
    """Return the estimator, fitted to all of X from the consensus."""
    model: Factorization = clone(template)
    own = {name: getattr(model, name) for name in ("init", "n_threads", "random_state")}
    model.set_params(
        n_components=len(agreement.D),
        init=agreement.D,
        n_threads=threads,
        random_state=seed,
        callbacks=(*template.callbacks, lambda state, record: interrupted()),
    )
    model.fit(X)
    model.set_params(**own, callbacks=template.callbacks)
    return model
