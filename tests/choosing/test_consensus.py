"""`consensus`: matching, clusters, outliers and stability."""

import itertools
import os
import signal
import threading
import warnings

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

from smalto import NMF, DictionaryLearning, consensus
from smalto.choosing.matching import cluster, match, stability, unit_atoms
from smalto.coders import Lasso


def parts():
    """A table of six non-negative parts, and the parts."""
    rng = np.random.default_rng(0)
    D = rng.gamma(0.3, size=(6, 60))
    X = rng.gamma(0.5, size=(300, 6)) @ D
    return rng.gamma(np.maximum(X / 0.1, 1e-6)) * 0.1, D


def test_planted_parts_are_found_and_stable():
    X, D = parts()
    found = consensus(X, [4, 6, 10], n_starts=8, random_state=0)
    assert found.best_params == {"n_components": 6}
    assert found.best.stability.min() > 0.95
    assert (found.best.support == 1.0).all()
    cosines = unit_atoms(D) @ found.best.D.T
    assert cosines.max(axis=1).min() > 0.98
    assert found.agreements[10].stability.mean() < 0.9
    assert (np.diff(found.agreements[10].stability) <= 0).all()  # the most stable first
    assert np.linalg.norm(found.best.D, axis=1) == pytest.approx(1.0)
    assert found.best_model.components_.shape == (6, 60)


def test_signs_do_not_matter():
    rng = np.random.default_rng(0)
    D = rng.standard_normal((4, 20))
    X = (rng.random((300, 4)) < 0.3) * rng.standard_normal((300, 4)) @ D
    found = consensus(X, 4, estimator=DictionaryLearning(1, coder=Lasso(0.1)), n_starts=6,
                      random_state=0)  # fmt: skip
    assert np.abs(unit_atoms(D) @ found.best.D.T).max(axis=1).min() > 0.98
    assert found.best.stability.mean() > 0.9


def test_matching_is_the_best_of_all_permutations():
    rng = np.random.default_rng(1)
    D, centers = unit_atoms(rng.standard_normal((5, 3))), unit_atoms(rng.standard_normal((5, 3)))
    order, cosines = match(D, centers)
    assert sorted(order) == list(range(5))
    best = max(
        sum(abs(centers[j] @ D[p[j]]) for j in range(5)) for p in itertools.permutations(range(5))
    )
    assert np.abs(cosines).sum() == pytest.approx(best)


def test_shuffled_flipped_and_scaled_dictionaries_are_one_cluster_each():
    rng = np.random.default_rng(2)
    D = rng.standard_normal((4, 9))
    copies = [D] + [
        (D * rng.choice([-2.0, 3.0], size=(4, 1)))[rng.permutation(4)] for _ in range(5)
    ]
    clusters = cluster(copies, 0, 0.8)
    assert clusters.kept.all()
    assert clusters.centers == pytest.approx(unit_atoms(D))
    assert stability(clusters) == pytest.approx(1.0)


def test_outliers_are_left_out_of_the_centers():
    rng = np.random.default_rng(3)
    D = np.eye(3, 8)
    strange = D.copy()
    strange[1] = rng.standard_normal(8) * [0, 0, 0, 1, 1, 1, 1, 1]
    clusters = cluster([D, D, strange, D], 0, 0.8)
    assert (~clusters.kept).sum() == 1
    assert not clusters.kept[2, 1]
    assert clusters.centers == pytest.approx(D)
    scores = stability(clusters)
    assert scores[1] < 0.8
    assert scores[[0, 2]] == pytest.approx(1.0)


def test_stability_is_the_silhouette_of_scikit_learn():
    rng = np.random.default_rng(4)
    base = rng.standard_normal((3, 6))
    clusters = cluster([base + 0.4 * rng.standard_normal((3, 6)) for _ in range(5)], 0, 0.8)
    flat = clusters.U.transpose(1, 0, 2).reshape(15, 6)
    distances = np.maximum(1 - np.abs(flat @ flat.T), 0)
    np.fill_diagonal(distances, 0.0)
    labels = np.repeat(np.arange(3), 5)
    wanted = silhouette_samples(distances, labels, metric="precomputed").reshape(3, 5).mean(axis=1)
    assert stability(clusters) == pytest.approx(wanted)


def test_the_same_bits_on_any_number_of_threads():
    X, _ = parts()
    one = consensus(X, [3, 5], n_starts=4, n_threads=1, random_state=0)
    many = consensus(X, [3, 5], n_starts=4, n_threads=7, random_state=0)
    assert one.rows == many.rows
    assert (one.best_model.components_ == many.best_model.components_).all()


def test_workers_give_the_same():
    distributed = pytest.importorskip("distributed")
    X, _ = parts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as client:
            there = consensus(X, 3, n_starts=3, client=client, random_state=0)
    assert there.rows == consensus(X, 3, n_starts=3, random_state=0).rows


def test_ctrl_c_leaves_the_starts_that_are_done():
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals go to the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    fits = []

    class Interrupting(NMF):
        def fit(self, X, y=None, **options):
            fits.append(1)
            if len(fits) == 4:
                os.kill(os.getpid(), signal.SIGINT)
            return super().fit(X, **options)

    try:
        found = consensus(parts()[0], 3, estimator=Interrupting, n_starts=9, n_threads=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.stopped == "interrupt"
    assert len(found.best.costs) == 3
    with pytest.raises(AttributeError, match=r"init=consensus\.best\.D"):
        _ = found.best_model


def test_tables_and_pictures(capsys):
    found = consensus(parts()[0], [3, 4], n_starts=3, progress=True, random_state=0)
    assert list(found.table["n_atoms"]) == [3, 4]
    assert "→" in repr(found)
    assert "6 of 6 fits" in capsys.readouterr().err
    assert found.plot().get_ylabel() == "stability over the starts"
    assert "4 atoms" in repr(found.agreements[4])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_starts": 1}, ValueError, "n_starts must be >= 2"),
        ({"min_similarity": 2.0}, ValueError, "min_similarity must be in"),
        ({"n_atoms": []}, ValueError, "n_atoms must have at least one"),
        ({"estimator": 3}, TypeError, "estimator must be"),
        ({"X": -np.ones((5, 5))}, ValueError, "Negative values"),
    ],
)
def test_wrong_input_is_named(options, error, message):
    with pytest.raises(error, match=message):
        consensus(**{"X": parts()[0], "n_atoms": 2, "n_starts": 2, "random_state": 0, **options})
