"""`select`: the number of atoms and the penalty that predict held-out entries best."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from smalto.checks import Rows, check_finite, check_integer, check_kind, check_number
from smalto.choosing.grid import Grid, Point, as_template, doubling
from smalto.choosing.held_out import Blocks, HeldOut
from smalto.choosing.lazy_data import cluster_of, computed
from smalto.choosing.one_standard_error import choose, standard_errors
from smalto.choosing.path import Fit, Job, Problem, fit_whole
from smalto.choosing.penalties import leaves_open, usual_lams
from smalto.choosing.prediction import as_table
from smalto.choosing.progress import FitProgress
from smalto.choosing.selection import Selection
from smalto.choosing.store import Store, about
from smalto.estimators.base import Factorization
from smalto.estimators.dictionary_learning import DictionaryLearning
from smalto.learning.initial_state import as_seed
from smalto.learning.stopping import deferred_interrupt
from smalto.sources import is_dask
from smalto.threads import resolve_threads, run_tasks


def select(
    X: Any,
    n_atoms: Any = None,
    *,
    lam: Any = None,
    coder: Any = None,
    estimator: Any = None,
    held_out: HeldOut | None = None,
    n_starts: int = 1,
    n_standard_errors: float = 1.0,
    warm_effort: float = 0.2,
    refit: bool = True,
    store: Any = None,
    progress: bool = False,
    client: Any = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Selection:
    """Choose the number of atoms and the penalty by how well held-out entries are predicted.

    Each round holds out entries of X and learns from the others. Samples are then coded from the
    entries that are known, and the code predicts those that are not: ``αD``. More atoms always fit
    better what they have seen; what they have not seen they predict worse when they are too many.
    Of all settings whose error is within one standard error of the lowest, the one with the
    fewest atoms is chosen, and of these the one with the fewest nonzeros.

    Parameters
    ----------
    X : array, CSR array, memory map, data frame or Dask array (n, m)
        Samples, one per row. Entries may be missing, if the estimator says so
        (``missing="nan"``). A Dask array is computed once, and the workers of its cluster make
        the fits, one path each. One of more than 2 GiB is learned from block by block on its
        cluster, if the estimator is `DictionaryLearning`.
    n_atoms : int or sequence of int, optional
        Numbers of atoms to choose from. By default 2, 4, 8 and so on, up to half the number of
        samples or features, whichever is smaller. Where many more atoms than features are
        wanted, as for patches of pictures, give them.
    lam : float or sequence of float, optional
        Penalties to choose from. By default that of the estimator, if it has one; for a
        `DictionaryLearning` without, its default, a quarter and a sixteenth of that: more atoms
        than needed can make up for a penalty that is too large. A single one, such as
        ``lam=0.5``, is about half the work.
    coder : coder or sequence of coders, optional
        Coders to choose from, instead of ``lam``. Neighbors should be similar: each starts from
        the atoms of the one before.
    estimator : estimator or class, default `DictionaryLearning`
        What to fit: `DictionaryLearning`, `NMF` or `SparsePCA`, or one of them with parameters.
        Its ``n_components`` and ``random_state`` do not matter.
    held_out : Blocks or Entries, default ``Blocks()``
        Which entries are held out, and in how many rounds.
    n_starts : int, default 1
        Number of starts in each round, from different first atoms. Of each setting the start
        with the lowest cost counts; with the lowest squared error, where each start has its own
        ``lam`` (``mean_nonzeros``).
    n_standard_errors : float, default 1
        How near to the lowest error a simpler setting must be to be preferred; 0 chooses the
        lowest.
    warm_effort : float in (0, 1], default 0.2
        All fits of a path but the first start from the atoms of a neighboring setting, and end
        after at most this share of the epochs, steps or seconds that the first one took. If a
        density of the atoms is wanted, as in `SparsePCA`, they are not shortened: the set with
        this density is another one for each setting.
    refit : bool, default True
        Whether to fit the settings chosen to all of X: from the first atoms that the fit of the
        first round had, and without shortened limits. Its cost is about that in the table, or
        a little lower.
    store : path, optional
        A folder that keeps each fit when it is done. If it has some already, as after Ctrl-C or
        a crash, these are not made again, and the result has the same bits. Later calls may ask
        for more numbers of atoms, penalties or starts: only what is new is fitted, from the
        atoms of neighbors that are there.
    progress : bool, default False
        Whether to show how many fits are done, and the time left.
    client : dask.distributed.Client, optional
        A cluster whose workers do the fits, one path each. By default that of a Dask array.
    n_threads : int, optional
        Number of threads; every available core by default. Paths are spread over them. The
        result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Determines what is held out, and all first atoms.

    Returns
    -------
    Selection
        The ``table`` of errors, its ``plot()``, ``best_params`` and ``best_model``. Ctrl-C ends
        it with the settings that are done, without a model.

    See Also
    --------
    smalto.consensus : How stable atoms are, over many starts.
    smalto.quality : Many measures of one fitted model.

    Notes
    -----
    The first fit of a path has the most atoms. From there on pairs of atoms are merged, those first
    that lose least by it, and all are learned again: needed atoms are found more easily among too
    many. Paths of other penalties begin with the most atoms as well, from the largest λ on.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import NMF, select
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(0.5, size=(300, 4)) @ rng.gamma(0.5, size=(4, 40))
    >>> X *= rng.gamma(20, size=X.shape) / 20  # noise
    >>> choice = select(X, [2, 3, 4, 5, 6], estimator=NMF, random_state=0)
    >>> choice.best_params
    {'n_components': 4}
    >>> choice.best_model.components_.shape
    (4, 40)
    """
    template = as_template(estimator, DictionaryLearning)
    client, given = cluster_of(X, client), computed(X, template)
    atoms = doubling(given) if n_atoms is None else n_atoms
    grid = Grid.of(atoms, lam, coder)
    held_out = Blocks() if held_out is None else held_out
    check_kind("held_out", held_out, HeldOut, "such as Blocks() or Entries(0.1)")
    n_starts = check_integer("n_starts", n_starts)
    check_number("n_standard_errors", n_standard_errors, low=0)
    effort = check_number("warm_effort", warm_effort, low=0, high=1, strict=True)
    check_kind("refit", refit, bool | np.bool_, "True or False")
    check_kind("progress", progress, bool | np.bool_, "True or False")
    threads = resolve_threads(n_threads)
    X = _table(given, template, held_out)
    if lam is None and coder is None and leaves_open(template):
        grid = Grid.of(atoms, usual_lams(X), None)
    seed = None if random_state is None and store is not None else as_seed(random_state)
    problem = Problem(template, grid, held_out, effort, 0 if seed is None else seed)
    keeper = None
    if store is not None:
        facts = about(problem, X)
        keeper, seed = Store.open(store, grid, facts, seed)
        seed = as_seed(None) if seed is None else seed
        keeper.begin(facts, seed)
    assert seed is not None
    problem = Problem(template, grid, held_out, effort, seed)
    jobs = [Job(r, s) for r in range(held_out.n_rounds) for s in range(n_starts)]
    with deferred_interrupt() as interrupted:
        fits = _all_fits(problem, X, jobs, keeper, progress, client, threads, interrupted)
        selection, point = _judged(problem, jobs, fits, n_standard_errors)
        model = None
        if refit and not interrupted():
            named = given if hasattr(given, "columns") else X
            model = _refitted(problem, named, fits, point, threads, interrupted)
        if interrupted():
            return replace(selection, stopped="interrupt")
    return replace(selection, _model=model)


Fits = dict[tuple[Job, Point], Fit]


def _table(X: Any, template: Factorization, held_out: HeldOut) -> Rows:
    """Return X as something whose rows can be taken by number; check that all options suit it."""
    if is_dask(X):
        if getattr(X, "ndim", 0) != 2 or not all(isinstance(n, int) for n in X.shape):
            message = (
                f"X must be a Dask array of known shape (n, m), got {X!r:.80}: call its "
                "compute_chunk_sizes()"
            )
            raise ValueError(message)
        if held_out.needs_masks:
            message = f"{held_out} needs an array in memory: use Blocks() for one of {X.nbytes:,} B"
            raise ValueError(message)
    if held_out.needs_masks:
        if "missing" not in template.get_params(deep=False):
            message = (
                f"{type(template).__name__} cannot learn with missing entries: use Blocks() "
                f"instead of {held_out}"
            )
            raise ValueError(message)
        if scipy.sparse.issparse(X):
            message = f"{held_out} needs a dense array: use Blocks() for a sparse one"
            raise TypeError(message)
    X = as_table(X, masked=held_out.needs_masks)
    held_out.check(*X.shape)
    if template.missing is None and not (is_dask(X) or isinstance(X, np.ma.MaskedArray)):
        # Here, and not in a fit, where rows have other numbers.
        check_finite("X", X, can_miss="missing" in template.get_params(deep=False))
    return X


def _all_fits(
    problem: Problem,
    X: Rows,
    jobs: list[Job],
    keeper: Store | None,
    progress: bool,
    client: Any,
    threads: int,
    interrupted: Callable[[], bool],
) -> Fits:
    """Return all fits, those in the store and those made here."""
    fits: Fits = {}
    points = problem.grid.points
    if keeper is not None:
        for job in jobs:
            for point in points:
                fit = keeper.read(job, point)
                if fit is not None:
                    fits[job, point] = fit
    work = {point: problem.work(point) for point in points}
    total = len(jobs) * sum(work.values())
    with closing(FitProgress(len(jobs) * len(points), total, "choosing")) as bar:
        bar.skip(len(fits), sum(work[point] for _, point in fits))

        def keep(job: Job, point: Point, fit: Fit) -> None:
            if keeper is not None:
                keeper.write(job, point, fit)
            elif job.round > 0:  # only needed by the path itself
                fit = fit._replace(D=np.empty((0, 0)), A=np.empty((0, 0)))
            fits[job, point] = fit
            if progress:
                bar.tell(work[point], f"{point.n_atoms} atoms, error {fit.predicted.error:.5g}")

        def path(number: int) -> None:
            job = jobs[number]
            done = {point: fits[job, point] for point in points if (job, point) in fits}
            each = max(1, threads // len(jobs))
            problem.walk(X, job, each, done, lambda point, fit: keep(job, point, fit), interrupted)

        if is_dask(X):  # each fit uses the whole cluster
            for number in range(len(jobs)):
                path(number)
        elif client is not None:
            _on_workers(problem, X, jobs, fits, keep, client, interrupted)
        else:
            run_tasks(path, len(jobs), threads)
    return fits


def _on_workers(
    problem: Problem,
    X: Rows,
    jobs: list[Job],
    fits: Fits,
    keep: Callable[[Job, Point, Fit], None],
    client: Any,
    interrupted: Callable[[], bool],
) -> None:
    """Have the paths walked by the workers of a cluster."""
    from smalto import distributed

    points = problem.grid.points
    left = []
    for job in jobs:
        done = {point: fits[job, point] for point in points if (job, point) in fits}
        if len(done) < len(points):
            left.append((job, done))
    arguments = [(problem, job, done) for job, done in left]
    for number, made in distributed.each_on_workers(_walk, X, arguments, client):
        for point, fit in made:
            keep(left[number][0], point, fit)
        if interrupted():
            return


def _walk(X: Rows, problem: Problem, job: Job, done: dict[Point, Fit]) -> list[tuple[Point, Fit]]:
    """Walk a path on a worker; return the fits made."""
    made: list[tuple[Point, Fit]] = []
    problem.walk(X, job, 1, done, lambda *fit: made.append(fit), lambda: False)
    return made


def _judged(
    problem: Problem, jobs: list[Job], fits: Fits, n_standard_errors: float
) -> tuple[Selection, Point]:
    """Return the table of all settings whose fits are done, and the one that is chosen."""
    grid, rows, errors, simplicity, whole = problem.grid, [], [], [], []
    for point in grid.points:
        if not all((job, point) in fits for job in jobs):
            continue
        best = _best_starts(point, jobs, fits)
        values = np.array([fit.predicted.error for fit in best])
        nonzeros = float(np.mean([fit.predicted.nonzeros for fit in best]))
        total = sum(fit.predicted.total for fit in best)
        rows.append(
            {
                **grid.describe(point),
                "error": float(values.mean()),
                "standard_error": float(standard_errors(values[None])[0]),
                "r2": 1.0 - sum(fit.predicted.squares for fit in best) / total if total else 0.0,
                "mean_nonzeros": nonzeros,
                "cost": float(np.mean([fit.cost for fit in best])),
                "seconds": sum(fits[job, point].seconds for job in jobs),
            }
        )
        errors.append(values)
        simplicity.append((point.n_atoms, nonzeros))
        whole.append(point)
    if not rows:
        return Selection([], None, None, {}, "done"), grid.points[0]
    lowest, chosen = choose(np.array(errors), simplicity, n_standard_errors)
    params = grid.params(problem.template, whole[chosen])
    return Selection(rows, lowest, chosen, params, "done"), whole[chosen]


def _best_starts(point: Point, jobs: list[Job], fits: Fits) -> list[Fit]:
    """Return the fit of each round whose start fits best."""
    best: dict[int, Fit] = {}
    for job in jobs:
        fit = fits[job, point]
        if job.round not in best or fit.misfit < best[job.round].misfit:
            best[job.round] = fit
    return [best[number] for number in sorted(best)]


def _refitted(
    problem: Problem,
    X: Any,
    fits: Fits,
    point: Point,
    threads: int,
    interrupted: Callable[[], bool],
) -> Factorization:
    """Return the settings chosen, fitted to all of X as in the first round: from the same atoms."""
    template = problem.template
    model = problem.grid.estimator(template, point)
    parent = next(visit.parent for visit in problem.grid.path() if visit.point == point)
    own = {name: getattr(model, name) for name in ("init", "n_threads", "random_state")}
    if parent is not None:
        begun = [fits[job, point].misfit for job in _starts(fits, parent)]
        best = _starts(fits, parent)[int(np.argmin(begun))]
        model.set_params(init=fits[best, parent].start(point))
    model.set_params(
        n_threads=threads,
        random_state=problem.seed,
        callbacks=(*template.callbacks, lambda state, record: interrupted()),
    )
    fit_whole(model, X, interrupted)
    model.set_params(**own, callbacks=template.callbacks)
    return model


def _starts(fits: Fits, point: Point) -> list[Job]:
    """Return the paths of the first round."""
    return sorted(job for job, at in fits if at == point and job.round == 0)
