"""`select`: the right number of atoms, the same bits on any number of threads, and going on."""

import json
import os
import signal
import threading
import warnings

import numpy as np
import pytest
import scipy

from smalto import NMF, DictionaryLearning, SparsePCA, consensus, encode, quality, select
from smalto.choosing import Blocks, Entries
from smalto.choosing._select import _refitted
from smalto.choosing.grid import Grid, Point, as_template
from smalto.choosing.merging import merged
from smalto.choosing.one_standard_error import choose
from smalto.choosing.path import Fit, Job, Problem, comparable_cost, measured_cost
from smalto.choosing.penalties import leaves_open, usual_lams
from smalto.choosing.prediction import Predicted, predict_held_out, steady_coder, total_squares
from smalto.choosing.selection import Selection
from smalto.coders import OMP, JointLasso, Lasso


def parts(k=4, n=160, m=24, seed=0, noise=20.0):
    """A non-negative table of k parts."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.4, size=(n, k)) @ rng.gamma(0.4, size=(k, m))
    return X * rng.gamma(noise, size=X.shape) / noise


def facts(selection):
    return [{key: row[key] for key in row if key != "seconds"} for row in selection.rows]


@pytest.mark.parametrize("size", [2.0**460, 2.0**-400, 255.0])
def test_units_do_not_matter(size):
    options = {"estimator": NMF, "held_out": Blocks(2, 2), "random_state": 0}
    expected = select(parts(n=60), [2, 4, 6], **options)
    choice = select(parts(n=60) * size, [2, 4, 6], **options)
    assert choice.best_params == expected.best_params
    for name in ("error", "standard_error"):
        found = [row[name] / size / size for row in choice.rows]
        np.testing.assert_allclose(found, [row[name] for row in expected.rows], rtol=1e-6)


def test_entries_of_a_table_with_many_zeros():
    X = np.where(np.random.default_rng(0).random((60, 20)) < 0.05, parts(n=60, m=20), 0.0)
    options = {"estimator": NMF, "held_out": Entries(0.1, 2), "random_state": 0}
    assert np.isfinite(select(X, [2, 3], **options).best_model.components_).all()


@pytest.mark.parametrize("held_out", [Blocks(4, 4), Entries(0.1, 4)])
def test_the_number_of_parts_is_found(held_out):
    choice = select(parts(), [2, 3, 4, 5, 7], estimator=NMF, held_out=held_out, random_state=0)
    assert choice.best_params == {"n_components": 4}
    assert choice.best_model.components_.shape == (4, 24)
    assert [row["n_atoms"] for row in choice.rows] == [2, 3, 4, 5, 7]
    errors = [row["error"] for row in choice.rows]
    assert errors[0] > errors[1] > errors[2] < errors[4]
    costs = [row["cost"] for row in choice.rows]
    assert costs == sorted(costs, reverse=True)  # what was learned from says nothing


def test_the_number_of_sparsely_used_atoms_is_found():
    rng = np.random.default_rng(0)
    codes = (rng.random((300, 6)) < 0.3) * rng.standard_normal((300, 6))
    X = codes @ rng.standard_normal((6, 30)) + 0.3 * rng.standard_normal((300, 30))
    choice = select(X, [3, 5, 6, 7, 9], lam=[3.0, 1.0], random_state=0)
    assert choice.best_params["n_components"] == 6
    assert choice.rows[choice.chosen]["r2"] > 0.8


def test_sparse_pca_is_chosen_too():
    rng = np.random.default_rng(0)
    D = rng.gamma(0.3, size=(5, 100))
    X = rng.gamma(0.3, size=(400, 5)) @ D
    noise = 10 * (X**2).mean() / X.var()
    X *= rng.gamma(noise, size=X.shape) / noise
    choice = select(X, [3, 5, 8], estimator=SparsePCA, random_state=0)
    errors = [row["error"] for row in choice.rows]
    assert errors[1] < min(errors[0], errors[2])
    assert 0.3 < choice.rows[1]["r2"] < 1.0


def test_errors_are_those_of_a_slow_twin():
    X, held_out = parts(n=40, m=10), Blocks(4, 3)
    model = NMF(3, random_state=0)
    held = held_out.round(1, 40, 10, seed=5)
    model.fit(X[held.learned])
    center = X[held.learned].mean(axis=0)
    found = predict_held_out(model, X, held, total_squares(X, held), 1)
    squares, total, entries = 0.0, 0.0, 0
    coder = steady_coder(model)
    for i in held.tested:
        for hidden in held.columns:
            known = np.setdiff1d(np.arange(10), hidden)
            D = model.components_
            G = D[:, known] @ D[:, known].T + coder.ridge * np.eye(3)
            # Non-negative least squares with the ridge as further rows.
            tall = np.vstack([D[:, known].T, np.sqrt(coder.ridge) * np.eye(3)])
            code, _ = scipy.optimize.nnls(tall, np.append(X[i, known], np.zeros(3)))
            assert np.linalg.eigvalsh(G).min() > 0
            squares += ((X[i, hidden] - code @ D[:, hidden]) ** 2).sum()
            total += ((X[i, hidden] - center[hidden]) ** 2).sum()
            entries += len(hidden)
    assert found.entries == entries == len(held.tested) * 10
    assert found.squares == pytest.approx(squares, rel=1e-6)
    assert found.total == pytest.approx(total)


def test_predictions_without_a_penalty_get_the_ridge_of_their_noise():
    model = NMF(4, random_state=0).fit(parts())
    coder = steady_coder(model)
    C, X = model.transform(parts()), parts()
    noise = ((X - C @ model.components_) ** 2).sum() / (160 * (24 - np.count_nonzero(C) / 160))
    assert coder.ridge == pytest.approx(noise / np.mean(C**2), rel=0.05)
    assert steady_coder(NMF(4, lam=0.5, random_state=0).fit(X)).ridge == 0.0


@pytest.mark.parametrize("held_out", [Blocks(4, 3), Blocks(4, 3, contiguous=True)])
def test_blocks_hold_out_every_entry_once(held_out):
    counts = np.zeros((22, 11), int)
    for number in range(held_out.n_rounds):
        held = held_out.round(number, 22, 11, seed=3)
        assert not set(held.learned) & set(held.tested)
        for columns in held.columns:
            counts[np.ix_(held.tested, columns)] += 1
    assert (counts == 1).all()


def test_contiguous_blocks_are_runs_of_neighbors():
    for columns in Blocks(2, 3, contiguous=True).round(0, 10, 12, seed=1).columns:
        gaps = np.diff(np.append(columns, columns[0] + 12))
        assert np.count_nonzero(gaps > 1) == 1  # also across the end


def test_entries_hold_out_the_share_asked_for():
    rounds = [Entries(0.25, 3).round(i, 40, 10, seed=0) for i in range(3)]
    assert [held.mask.sum() for held in rounds] == [100] * 3
    assert (rounds[0].mask != rounds[1].mask).any()


def test_the_rule_prefers_the_simplest_within_a_standard_error():
    # Rounds differ much in difficulty, settings little: only differences within a round count.
    hard = np.array([1.0, 5.0, 9.0, 13.0])
    errors = hard + np.array([[2.0] * 4, [0.1, -0.1, 0.2, 0.0], [0.0, 0.1, 0.0, 0.05]])
    assert choose(errors, [1, 2, 3], 1.0) == (2, 1)
    assert choose(errors, [1, 2, 3], 0.0) == (2, 2)
    assert choose(errors, [1, 3, 2], 1.0) == (2, 2)


def test_the_path_takes_atoms_away_and_lowers_lam():
    visits = Grid.of([2, 5, 3], [0.1, 1.0], None).path()
    assert [visit.point for visit in visits] == [
        Point(5, 0), Point(3, 0), Point(2, 0), Point(5, 1), Point(3, 1), Point(2, 1),
    ]  # fmt: skip
    assert [visit.parent for visit in visits] == [
        None, Point(5, 0), Point(3, 0), Point(5, 0), Point(5, 1), Point(3, 1),
    ]  # fmt: skip


def test_later_fits_of_a_path_are_short():
    steps = []

    class Counted(DictionaryLearning):
        def fit(self, X, y=None, **options):
            super().fit(X, **options)
            steps.append(self.n_iter_)
            return self

    X = np.random.default_rng(0).standard_normal((80, 8))
    options = {"estimator": Counted, "refit": False, "n_threads": 1, "random_state": 0}
    select(X, [2, 3, 4, 5, 6], lam=0.5, **options)
    assert steps == 5 * [50, 10, 10, 10, 10]
    steps.clear()
    select(X, [2, 3, 4], **options)  # with three penalties
    assert steps == 5 * [50, *8 * [10]]


def test_later_fits_are_short_too_if_the_first_ends_before_its_limits():
    steps = []

    class Counted(NMF):
        def fit(self, X, y=None, **options):
            super().fit(X, **options)
            steps.append(self.n_iter_)
            return self

    X = parts(n=80)
    select(
        X, [2, 3, 4, 8], estimator=Counted(1, tol=1e-3), refit=False, n_threads=1, random_state=0
    )
    first, *later = steps[:4]
    assert 20 < first < 200  # the limit of epochs
    assert max(later) <= first // 4


def test_atoms_are_merged_that_are_unused_alike_or_used_together():
    rng = np.random.default_rng(0)
    D, C = np.eye(4, 9), rng.gamma(1.0, size=(400, 4)) * (rng.random((400, 4)) < 0.5)
    first = np.arange(400) < 200

    def units(atoms):
        return np.abs(atoms / np.linalg.norm(atoms, axis=1, keepdims=True) @ D.T)

    def check(codes, atoms):
        found = merged(atoms, codes.T @ codes, 4)
        assert found.dtype == atoms.dtype
        assert sorted(units(found).argmax(axis=1)) == [0, 1, 2, 3]
        assert units(found).max(axis=1).min() > 0.99

    unused = np.column_stack([C, 0.01 * rng.random(400)])
    check(unused, np.vstack([D, rng.random(9)]))
    alike = np.column_stack([C[:, 0] * first, C[:, 1:], C[:, 0] * ~first])
    check(alike.astype(np.float32), np.vstack([D, D[:1] + 0.1 * D[1:2]]).astype(np.float32))
    # Half of atom 0 each, with the same coefficients.
    D[0, 4:8] = 0.5
    D[0, 0] = 0.0
    halves = np.vstack([D[0] * (np.arange(9) < 6), D[1:], D[0] * (np.arange(9) >= 6)])
    check(np.column_stack([C, C[:, 0]]), halves)


def test_a_merged_pair_is_the_best_approximation_of_rank_one():
    rng = np.random.default_rng(1)
    C, D = rng.standard_normal((50, 2)), rng.standard_normal((2, 6))
    atom = merged(D, C.T @ C, 1)[0]
    _, _, right = np.linalg.svd(C @ D)
    assert abs(atom @ right[0]) == pytest.approx(1.0)
    # Of three atoms, the pair with the least loss: that of a slow twin.
    C, D = rng.standard_normal((50, 3)), rng.standard_normal((3, 6))
    losses = {
        (i, j): np.linalg.svd(C[:, [i, j]] @ D[[i, j]])[1][1] for i, j in ((0, 1), (0, 2), (1, 2))
    }
    kept = ({0, 1, 2} - set(min(losses, key=losses.get))).pop()
    assert any(np.allclose(atom, D[kept]) for atom in merged(D, C.T @ C, 2))


@pytest.mark.parametrize("options", [{}, {"density": 1 / 3, "max_epochs": 20}])
def test_the_number_of_sparse_components_is_found(options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) * [4, 3, 2] @ np.kron(np.eye(3), np.ones(4))
    X += 0.1 * rng.standard_normal(X.shape)
    # Other numbers of components do not reach the density, of which nobody wants to be warned.
    choice = select(X, [2, 3, 4, 5], estimator=SparsePCA(1, **options), random_state=0)
    assert choice.best_params == {"n_components": 3}


def test_the_same_bits_on_any_number_of_threads():
    options = {"estimator": NMF, "n_starts": 2, "random_state": 3}
    one = select(parts(), [3, 4, 5], n_threads=1, **options)
    many = select(parts(), [3, 4, 5], n_threads=16, **options)
    assert facts(one) == facts(many)
    assert (one.best_model.components_ == many.best_model.components_).all()


def test_of_several_starts_the_lowest_cost_counts():
    one, both = (
        select(parts(), [6, 8], estimator=NMF, n_starts=n, refit=False, random_state=0)
        for n in (1, 3)
    )
    for few, more in zip(one.rows, both.rows, strict=True):
        assert more["cost"] <= few["cost"]


def test_starts_with_a_lam_of_their_own_are_compared_without_it():
    # Each start searches a lam for so many nonzeros; the cost of a larger one is higher.
    rng = np.random.default_rng(1)
    X = (rng.random((120, 8)) < 0.3) @ rng.standard_normal((8, 12))
    X += 0.3 * rng.standard_normal(X.shape)
    coder, held_out, fits = Lasso(mean_nonzeros=2), Blocks(2, 2), {}
    template = as_template(None, DictionaryLearning)
    problem = Problem(template, Grid.of([6, 8], None, coder), held_out, 0.2, 0)
    jobs = [Job(number, start) for number in range(2) for start in range(4)]
    for job in jobs:
        problem.walk(X, job, 1, {}, lambda *done, job=job: fits.update({(job, done[0]): done[1]}),
                     lambda: False)  # fmt: skip

    def lowest(point, what):
        """The error of the table, if each round takes the start with the lowest of these."""
        rounds = ([fits[job, point] for job in jobs if job.round == number] for number in range(2))
        return np.mean(
            [min(some, key=lambda fit: getattr(fit, what)).predicted.error for some in rounds]
        )

    choice = select(X, [6, 8], coder=coder, held_out=held_out, n_starts=4, random_state=0)
    points = problem.grid.points
    assert [row["error"] for row in choice.rows] == [lowest(point, "misfit") for point in points]
    assert lowest(points[0], "cost") != lowest(points[0], "misfit")


@pytest.mark.parametrize("estimator", [DictionaryLearning, SparsePCA])
def test_a_cost_without_its_lam_is_half_the_squared_error(estimator):
    X = np.random.default_rng(0).standard_normal((100, 8))
    model = estimator(5, coder=Lasso(mean_nonzeros=2), random_state=0).fit(X)
    cost = measured_cost(model, X, None)
    left = (
        model._signals(X)
        - encode(model._signals(X), model.components_, model.coder_) @ model.components_
    )
    assert comparable_cost(model, X, None, cost) == pytest.approx(0.5 * np.square(left).sum() / 100)
    assert comparable_cost(model.set_params(coder=Lasso(0.1)).fit(X), X, None, cost) == cost


def test_the_last_fit_begins_where_a_start_fits_best_not_where_its_lam_is_lowest():
    point, parent = Point(1, 0), Point(2, 0)
    X = np.random.default_rng(0).standard_normal((30, 6))
    problem = Problem(
        as_template(None, DictionaryLearning),
        Grid.of([1, 2], None, Lasso(mean_nonzeros=1)),
        Blocks(2, 2),
        0.2,
        0,
    )
    fits = {}
    for start, (cost, misfit) in enumerate([(1.0, 0.9), (2.0, 0.5)]):
        atoms = np.roll(np.eye(2, 6), start, axis=1)
        for at in (point, parent):
            made = Fit(
                Predicted(1.0, 1.0, 1, 1.0),
                cost,
                misfit,
                0.0,
                1.0,
                True,
                atoms[: at.n_atoms],
                np.eye(at.n_atoms),
            )
            fits[Job(0, start), at] = made
    model = _refitted(problem, X, fits, point, 1, lambda: False)
    wanted = problem.grid.estimator(problem.template, point)
    wanted.set_params(init=fits[Job(0, 1), parent].start(point), random_state=0).fit(X)
    np.testing.assert_array_equal(model.components_, wanted.components_)


def test_sparse_and_dense_tables_give_the_same():
    X = np.random.default_rng(0).poisson(0.1 * parts(m=60))
    assert np.mean(X > 0) < 0.1  # fewer zeros, and the table would become dense
    dense, sparse = (
        select(table, [3, 4], estimator=NMF, refit=False, random_state=0)
        for table in (X.astype(float), scipy.sparse.csr_array(X.astype(float)))
    )
    for a, b in zip(dense.rows, sparse.rows, strict=True):
        assert a["error"] == pytest.approx(b["error"], rel=1e-3)
        assert a["r2"] == pytest.approx(b["r2"], abs=1e-3)


def test_missing_entries_neither_count_nor_spoil():
    X = parts()
    X[::7, ::5] = np.nan
    choice = select(X, [3, 4, 6], estimator=NMF(1, missing="nan"), random_state=0)
    assert choice.best_params == {"n_components": 4}
    assert np.isfinite([row["error"] for row in choice.rows]).all()
    masked = np.ma.masked_invalid(X)
    again = select(masked, [3, 4, 6], estimator=NMF, refit=False, random_state=0)
    assert [row["error"] for row in again.rows] == pytest.approx(
        [row["error"] for row in choice.rows], rel=1e-6
    )


def test_coders_can_be_chosen_from():
    X = np.random.default_rng(0).standard_normal((100, 10))
    coders = [OMP(max_nonzeros=1), OMP(max_nonzeros=3)]
    choice = select(X, 8, coder=coders, random_state=0)
    assert [row["coder"] for row in choice.rows] == [repr(coder) for coder in coders]
    assert choice.best_model.coder in coders


def test_what_is_done_is_kept(tmp_path):
    whole = select(parts(), [3, 4, 5], estimator=NMF, random_state=1)
    store = tmp_path / "choice"
    options = {"estimator": NMF, "random_state": 1, "store": store}
    assert facts(select(parts(), [3, 4, 5], **options)) == facts(whole)
    files = sorted(store.glob("round*"))
    assert len(files) == 15
    kept = {path: path.stat().st_mtime_ns for path in files}
    for path in files[::2]:  # some are lost
        path.unlink()
        del kept[path]
    again = select(parts(), [3, 4, 5], **options)
    assert facts(again) == facts(whole)
    assert (again.best_model.components_ == whole.best_model.components_).all()
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(list(store.glob("round*"))) == 15


def test_a_store_remembers_its_seed(tmp_path):
    first = select(parts(), [3, 4], estimator=NMF, refit=False, store=tmp_path / "s")
    assert facts(
        select(parts(), [3, 4], estimator=NMF, refit=False, store=tmp_path / "s")
    ) == facts(first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": parts(seed=1)}, "its data was"),
        ({"estimator": NMF(1, tol=1e-4)}, "its parameters was"),
        ({"held_out": Blocks(3)}, "its held_out was"),
        ({"random_state": 2}, "begun with random_state=1"),
    ],
)
def test_a_store_belongs_to_one_choice(tmp_path, change, message):
    options = {"X": parts(), "n_atoms": [3, 4], "estimator": NMF, "random_state": 1}
    select(**options, refit=False, store=tmp_path)
    with pytest.raises(ValueError, match=message):
        select(**{**options, **change}, refit=False, store=tmp_path)


def test_a_spoilt_or_foreign_store_is_refused(tmp_path):
    store = tmp_path / "s"
    options = {"estimator": NMF, "refit": False, "random_state": 0}
    select(parts(), [3], **options, store=store)
    file = next(store.glob("round*"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match="altered"):
        select(parts(), [3], **options, store=store)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match="neither empty nor a store"):
        select(parts(), [3], **options, store=tmp_path / "other")
    with pytest.raises(NotADirectoryError, match=r"store must be a folder, .*letter.txt is a file"):
        select(parts(), [3], **options, store=tmp_path / "other" / "letter.txt")


def test_ctrl_c_leaves_what_is_done(tmp_path):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals go to the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    fits = []

    class Interrupting(NMF):
        def fit(self, X, y=None, **options):
            fits.append(self.n_components)
            if len(fits) == 13:  # in the last round
                os.kill(os.getpid(), signal.SIGINT)
            return super().fit(X, **options)

    try:
        options = {"estimator": Interrupting, "random_state": 0, "n_threads": 1, "store": tmp_path}
        broken = select(parts(), [3, 4, 5], **options)
    finally:
        signal.signal(signal.SIGINT, before)
    assert broken.stopped == "interrupt"
    assert broken.rows == []
    with pytest.raises(AttributeError, match="interrupted before the best model"):
        _ = broken.best_model
    assert len(list(tmp_path.glob("round*"))) == 12
    whole = select(parts(), [3, 4, 5], **options)
    assert len(fits) == 13 + 3 + 1  # the one interrupted, the rest, and the best model
    assert facts(whole) == facts(select(parts(), [3, 4, 5], estimator=NMF, random_state=0))


def test_progress_counts_fits(capsys):
    select(parts(), [3, 4], estimator=NMF, progress=True, random_state=0)
    assert "choosing: 100 %, 0:00 left, 10 of 10 fits" in capsys.readouterr().err
    select(parts(), [3, 4], estimator=NMF, random_state=0)
    assert capsys.readouterr().err == ""


ESTIMATORS = [
    DictionaryLearning(1, coder=Lasso(0.3), max_epochs=3),
    NMF(1),
    SparsePCA(1, density=0.5),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_dask_array_is_computed_once_and_gives_the_same_bits(estimator):
    da = pytest.importorskip("dask.array")
    X, computed = parts(n=90, m=12), []
    options = {"estimator": estimator, "random_state": 0}
    lazy = da.from_array(X, chunks=(30, 12)).map_blocks(
        lambda block: computed.append(len(block)) or block, dtype=X.dtype, meta=X[:0]
    )
    assert facts(select(lazy, [3, 4], **options)) == facts(select(X, [3, 4], **options))
    assert computed == [30, 30, 30]
    found = [consensus(table, 3, n_starts=3, **options) for table in (X, lazy)]
    assert (found[0].best.D == found[1].best.D).all()
    model = found[0].best_model
    assert quality(model, lazy, held_out=lazy).rows == quality(model, X, held_out=X).rows
    unknown = lazy[lazy[:, 0] >= 0]  # nobody knows how many rows that has
    assert facts(select(unknown, [3], **options)) == facts(select(X, [3], **options))


def test_the_workers_of_a_dask_array_do_the_fits(monkeypatch):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    X = parts(n=90, m=12)
    lazy = da.from_array(X, chunks=(30, 12))
    options = {"estimator": ESTIMATORS[0], "random_state": 0}
    here = select(X, [3, 4], **options)
    calls = []
    submit = distributed.Client.submit
    monkeypatch.setattr(
        distributed.Client,
        "submit",
        lambda self, task, *args, **rest: (
            calls.append(task.__name__) or submit(self, task, *args, **rest)
        ),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as client:
            on_workers = select(lazy, [3, 4], **options)
            assert calls.count("_walk") == 5  # one path for each round
            by_client = select(X, [3, 4], **options, client=client)
            calls.clear()
            monkeypatch.setattr("smalto.choosing.lazy_data.LARGE", 1000)
            by_blocks = select(lazy, [3, 4], **options)
            assert "_walk" not in calls
    assert facts(on_workers) == facts(by_client) == facts(here)
    assert by_blocks.best_model.components_.shape[1] == 12
    for a, b in zip(by_blocks.rows, here.rows, strict=True):
        assert a["error"] == pytest.approx(b["error"], rel=0.2)


@pytest.mark.parametrize("estimator", [DictionaryLearning, NMF, SparsePCA])
def test_the_table_and_the_model_agree(estimator):
    X = parts(n=600)
    choice = select(X, [2, 4, 8, 16], estimator=estimator, random_state=0)
    cost = choice.rows[choice.chosen]["cost"]
    assert -choice.best_model.score(X) == pytest.approx(cost, rel=0.05)
    # The most atoms have learned as long.
    if estimator is SparsePCA:  # each number of components has a set of its own
        for row in choice.rows:
            alone = SparsePCA(row["n_atoms"], random_state=0).fit(X)
            assert row["cost"] < -1.03 * alone.score(X)
        return
    for lam in {row.get("lam") for row in choice.rows}:
        costs = [row["cost"] for row in choice.rows if row.get("lam") == lam]
        assert costs == sorted(costs, reverse=True)


def test_errors_of_sparse_components_are_those_of_the_components():
    X, held_out = parts(n=200), Blocks(4, 3)
    held = held_out.round(1, *X.shape, seed=5)
    model = SparsePCA(3, random_state=0).fit(X[held.learned])
    found = predict_held_out(model, X, held, total_squares(X, held), 1)
    D = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    ridge, squares, rest = steady_coder(model).ridge, 0.0, X - model.mean_
    for hidden in held.columns:
        known = np.setdiff1d(np.arange(X.shape[1]), hidden)
        G = D[:, known] @ D[:, known].T + ridge * np.eye(3)
        codes = np.linalg.solve(G, D[:, known] @ rest[held.tested][:, known].T).T
        squares += ((rest[np.ix_(held.tested, hidden)] - codes @ D[:, hidden]) ** 2).sum()
    assert found.squares == pytest.approx(squares, rel=1e-6)
    model.components_ *= 1e-3  # their length does not matter
    assert predict_held_out(model, X, held, 1.0, 1).squares == pytest.approx(squares, rel=1e-6)


def test_a_store_can_be_extended(tmp_path):
    options = {"estimator": NMF, "random_state": 1, "store": tmp_path}
    first = select(parts(), [3, 5], lam=[0.1], refit=False, **options)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("round*")}
    more = select(parts(), [2, 3, 4, 5, 6], lam=[0.2, 0.1, 0.01], **options)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(list(tmp_path.glob("round*"))) == 5 * 15
    assert [(row["n_atoms"], row["lam"]) for row in more.rows] == [
        (k, lam) for lam in (0.2, 0.1, 0.01) for k in (2, 3, 4, 5, 6)
    ]
    assert [
        row for row in more.rows if row["lam"] == 0.1 and row["n_atoms"] in (3, 5)
    ] == first.rows
    starts = select(parts(), [3, 5], lam=[0.1], n_starts=2, refit=False, **options)
    assert len(list(tmp_path.glob("round*"))) == 5 * 15 + 5 * 2
    for few, many in zip(first.rows, starts.rows, strict=True):
        assert many["cost"] <= few["cost"]
    coders = [OMP(max_nonzeros=1), Lasso(0.3, positive=True)]
    by_coder = tmp_path / "coders"
    table = {"X": parts(), "n_atoms": 4, "store": by_coder, "random_state": 0, "refit": False}
    one = select(coder=coders[1:], **table)
    assert select(coder=coders, **table).rows[1] == one.rows[0]


def test_tables_and_pictures(monkeypatch):
    choice = select(parts(), [3, 4, 5], lam=[0.0, 0.1], estimator=NMF, random_state=0)
    frame = choice.table
    assert list(frame["n_atoms"]) == [3, 4, 5, 3, 4, 5]
    assert "→" in repr(choice)
    ax = choice.plot()
    assert ax.get_xlabel() == "atoms"
    assert list(ax.get_xticks()) == [3, 4, 5]  # no halves of atoms
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"λ = 0.1", "λ = 0", "chosen"} <= set(labels)
    by_lam = select(parts(), 4, lam=[0.01, 0.1, 1.0], estimator=NMF, refit=False, random_state=0)
    assert by_lam.plot().get_xlabel() == "λ"
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    assert json.dumps(choice.table["n_atoms"]) == "[3, 4, 5, 3, 4, 5]"


@pytest.mark.parametrize("counts", [[2, 4, 8, 16, 32], range(2, 14)], ids=str)
def test_ticks_are_whole_numbers_of_atoms(counts):
    rows = [{"n_atoms": k, "error": 1.0 / k, "standard_error": 0.1} for k in counts]
    ticks = Selection(rows, 1, 1, {}, "done").plot().get_xticks()
    assert all(tick == int(tick) for tick in ticks)
    assert len(counts) > 10 or list(ticks) == list(counts)


def test_the_best_model_has_the_settings_of_the_template():
    template = NMF(1, tol=1e-2, sparse_output=True)
    model = select(parts(), [3, 4], estimator=template, random_state=0).best_model
    assert model.get_params() == {**template.get_params(), "n_components": 4}
    assert template.n_components == 1
    assert encode(parts(), model.components_, model.coder_).shape == (160, 4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_atoms": []}, ValueError, "n_atoms must have at least one value"),
        ({"n_atoms": [0]}, ValueError, "n_atoms must be >= 1, got 0"),
        ({"n_atoms": "5"}, TypeError, "n_atoms must be an integer"),
        ({"lam": [-1.0]}, ValueError, "lam must be >= 0"),
        ({"lam": 1.0, "coder": Lasso(1.0)}, ValueError, "give lam or coder, not both"),
        ({"coder": [Lasso]}, TypeError, "did you mean Lasso"),
        ({"coder": JointLasso(1.0)}, ValueError, "groups of signals are not supported"),
        ({"estimator": "NMF"}, TypeError, "estimator must be DictionaryLearning, NMF or SparsePCA"),
        ({"held_out": 0.1}, TypeError, "held_out must be such as Blocks"),
        (
            {"held_out": Blocks(200)},
            ValueError,
            r"number of samples, 160, got 200: .*held_out=Blocks\(n_row_folds=2\)",
        ),
        ({"held_out": Blocks(2, 99)}, ValueError, "n_column_folds must be at most"),
        ({"held_out": Entries(), "estimator": SparsePCA}, ValueError, "use Blocks"),
        ({"n_starts": 0}, ValueError, "n_starts must be >= 1"),
        ({"warm_effort": 0.0}, ValueError, "warm_effort must be in"),
        ({"X": np.zeros(3)}, ValueError, "must be two-dimensional"),
        ({"X": np.full((20, 8), np.nan)}, ValueError, "NaN"),
        ({"X": np.ones((1, 8))}, ValueError, "at least 2 samples, got 1$"),
        ({"X": np.ones((8, 1))}, ValueError, "at least 2 features, got 1$"),
        ({"progress": "yes"}, TypeError, "progress must be True or False, got 'yes'"),
        (
            {"lam": 0.1, "estimator": DictionaryLearning(1, coder=OMP(max_nonzeros=2))},
            ValueError,
            r"has no lam to choose: give coder=",
        ),
    ],
)
def test_wrong_input_is_named(options, error, message):
    with pytest.raises(error, match=message):
        select(**{"X": parts(), "n_atoms": [2], "random_state": 0, **options})


@pytest.mark.parametrize("estimator", [DictionaryLearning, NMF, SparsePCA])
def test_nan_is_said_to_be_where_it_is(estimator):
    X = parts()
    X[101, 4] = np.nan
    with pytest.raises(ValueError, match=r"1 such value, the first \(NaN\) at \(101, 4\)") as error:
        select(X, [2], estimator=estimator, random_state=0)
    assert ("missing=" in str(error.value)) == (estimator is not SparsePCA)


def test_entries_need_a_dense_table():
    X = scipy.sparse.csr_array(parts())
    with pytest.raises(TypeError, match="needs a dense array"):
        select(X, [2], estimator=NMF, held_out=Entries())


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5])
def test_shares_are_checked(share):
    with pytest.raises(ValueError, match="share must be"):
        Entries(share)


def test_jobs_of_a_path_start_differently():
    X = parts()
    problem = Problem(NMF(1), Grid.of([5], None, None), Blocks(), 0.2, 0)
    found = {}
    for start in range(2):
        problem.walk(
            X, Job(0, start), 1, {}, lambda p, fit, s=start: found.update({s: fit}), lambda: False
        )
    assert not np.array_equal(found[0].D, found[1].D)


def test_a_data_frame_keeps_its_names():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = rng.gamma(0.5, size=(60, 3)) @ rng.gamma(0.5, size=(3, 20))
    frame = pd.DataFrame(table, columns=[f"g{i}" for i in range(20)])
    chosen = select(frame, [2, 3], estimator=NMF, random_state=0)
    assert list(chosen.best_model.feature_names_in_) == list(frame.columns)
    same = select(table, [2, 3], estimator=NMF, random_state=0)
    np.testing.assert_array_equal(chosen.best_model.components_, same.best_model.components_)
    stable = consensus(frame, 3, n_starts=3, random_state=0)
    assert list(stable.best_model.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    ("lowest", "advice"), [(0, "fewer atoms"), (1, None), (2, "more atoms")], ids=str
)
def test_a_lowest_error_at_the_end_of_the_grid_is_said(lowest, advice):
    rows = [
        {"n_atoms": k, "error": 1.0, "standard_error": 0.1, "r2": 0.0, "mean_nonzeros": 1.0}
        for k in (4, 6, 8)
    ]
    text = repr(Selection(rows, lowest, lowest, {}, "done"))
    assert ("the end of the grid" in text) == (advice is not None)
    assert advice is None or f"try {advice} too" in text


def sparse_mixtures():
    """Samples of four atoms and little noise, for which the default λ is too large."""
    rng = np.random.default_rng(0)
    codes = (rng.random((300, 4)) < 0.5) * rng.standard_normal((300, 4))
    return codes @ rng.standard_normal((4, 30)) + 0.2 * rng.standard_normal((300, 30))


def test_without_a_penalty_three_are_tried():
    X = sparse_mixtures()
    alone = select(X, [2, 4, 8], lam=1.2 * np.sqrt(np.mean(X**2)), random_state=0)
    assert alone.best_params["n_components"] == 8  # more atoms make up for it
    choice = select(X, [2, 4, 8], random_state=0)
    assert choice.best_params["n_components"] == 4
    lams = sorted({row["lam"] for row in choice.rows}, reverse=True)
    np.testing.assert_allclose(
        lams, alone.best_params["coder__lam"] / np.array([1, 4, 16]), rtol=1e-2
    )
    assert len(choice.rows) == 9


@pytest.mark.parametrize("hide", [scipy.sparse.csr_array, np.ma.masked_invalid, np.asarray])
def test_the_penalties_tried_are_those_of_the_known_entries(hide):
    X = sparse_mixtures()
    expected = [1.2 * np.sqrt(np.mean(X**2)) / part for part in (1, 4, 16)]
    X[::40, 3] = 0.0 if hide is scipy.sparse.csr_array else np.nan
    np.testing.assert_allclose(usual_lams(hide(X)), expected, rtol=0.02)
    assert usual_lams(hide(np.zeros((3, 2)))) is None


@pytest.mark.parametrize(
    ("estimator", "are"),
    [
        (DictionaryLearning, True),
        (DictionaryLearning(1, coder=Lasso(positive=True)), True),
        (DictionaryLearning(1, coder=Lasso(0.3)), False),
        (DictionaryLearning(1, coder=Lasso(mean_nonzeros=2)), False),
        (DictionaryLearning(1, coder=OMP(max_nonzeros=2)), False),
        (NMF, False),
        (SparsePCA, False),
    ],
    ids=str,
)
def test_three_penalties_are_tried_where_none_is_said(estimator, are):
    assert leaves_open(as_template(estimator, DictionaryLearning)) == are


def test_a_penalty_that_is_too_large_is_said():
    X = sparse_mixtures()
    lam = float(f"{1.2 * np.sqrt(np.mean(X**2)):.3g}")
    lams = [float(f"{lam / part:.3g}") for part in (1, 4, 16)]
    advice = "More atoms can make up for a penalty that is too large: try lam=["
    fixed = DictionaryLearning(1, coder=Lasso(lam))
    for options in ({"lam": lam}, {"estimator": fixed}):
        alone = select(X, [2, 4, 8], **options, random_state=0)
        assert f"{advice}{', '.join(f'{each:g}' for each in lams)}] first" in repr(alone)
    assert advice not in repr(select(X, [2, 4, 8], lam=lams, random_state=0))
    few = select(X, [2, 4, 8], lam=[2 * lam, lam], random_state=0)
    assert f"{advice.split('lam')[0]}a smaller lam first" in repr(few)
    assert advice not in repr(select(X, [2, 4], coder=OMP(max_nonzeros=2), random_state=0))
    assert advice not in repr(select(parts(), [2, 3], estimator=NMF, random_state=0))
