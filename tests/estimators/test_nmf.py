import doctest
import pickle
import warnings

import naive_nonnegative as naive
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import NMF as ScikitNMF
from sklearn.utils.estimator_checks import parametrize_with_checks

from smalto import NMF, encode
from smalto.coders import L1Ball, Lasso
from smalto.constraints import ElasticNetBall, FusedLassoBall, L2Ball, Simplex
from smalto.estimators import nmf
from smalto.estimators.nndsvd import nndsvd
from smalto.learners import SGD, Batch, Online
from smalto.learning.alternating import descent
from smalto.learning.alternating.unreached import reach_more, unreached
from smalto.learning.alternating.variables import DenseCodes
from smalto.learning.memory import contributions
from smalto.learning.memory.atom_order import reorder

SETS = [
    None, ElasticNetBall(0.2, positive=True), FusedLassoBall(0.1, 0.1, positive=True), Simplex(),
]  # fmt: skip


def planted(n=300, k=5, m=24, seed=0, dtype=np.float64, noise=0.0):
    """Samples that are sums of k parts."""
    rng = np.random.default_rng(seed)
    D = rng.random((k, m)) * (rng.random((k, m)) < 0.5)
    C = rng.random((n, k)) * (rng.random((n, k)) < 0.6)
    return (C @ D + noise * rng.random((n, m))).astype(dtype)


def cost(X, D, codes, lam=0.0):
    X, D, codes = (np.asarray(a, np.float64) for a in (X, D, codes))
    return 0.5 * np.sum((X - codes @ D) ** 2) / len(X) + lam * codes.sum() / len(X)


def expected_failures(estimator):
    # With weights, or from a learner, samples are drawn at random.
    reason = "samples are drawn at random: repeating one changes the draw"
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


@parametrize_with_checks(
    [
        NMF(3, random_state=0),
        NMF(3, lam=0.1, random_state=0, sparse_output=True),
        NMF(3, learner=Online(), random_state=0),
        NMF(3, init="random", constraint=Simplex(), random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # every code zero, on data that is noise
        check(estimator)


def test_docstring():
    found = doctest.DocTestFinder(recurse=False).find(nmf.NMF, globs={})
    assert all(doctest.DocTestRunner().run(test).failed == 0 for test in found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("init", ["samples", "random", "nndsvda"])
def test_exact_factorization_is_found(init, dtype):
    X = planted(dtype=dtype)
    X = X[X.any(axis=1)]
    model = NMF(5, init=init, tol=1e-6, max_epochs=20_000, random_state=1).fit(X)
    assert model.components_.dtype == dtype
    reached = (model.reconstruction_err_ / np.linalg.norm(X)) ** 2
    assert reached < min(1e-6, 100 * np.finfo(dtype).eps)  # its cost is a difference
    codes = model.transform(X)
    assert (
        cost(X, model.components_, codes)
        <= 1.01 * reached * cost(X, 0 * model.components_, 0 * codes) + 1e-12
    )


@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize("constraint", SETS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("learner", [None, Online(batch_size=100)])
@pytest.mark.filterwarnings("ignore:with lam=0:UserWarning")
def test_cost_falls_and_signs_hold(lam, constraint, learner):
    X = planted(noise=0.1)
    model = NMF(5, lam=lam, constraint=constraint, learner=learner, max_epochs=20, random_state=0)
    codes = model.fit_transform(X)
    D = model.components_
    assert D.min() >= 0
    assert codes.min() >= 0
    gauge = (constraint or L2Ball(positive=True)).gauge
    assert max(gauge(d) for d in D) <= 1 + 1e-6
    first = NMF(5, lam=lam, constraint=constraint, learner=learner, max_seconds=0, random_state=0)
    first_codes = first.fit_transform(X)
    assert cost(X, D, codes, lam) < 0.9 * cost(X, first.components_, first_codes, lam)
    if lam == 0.0 and constraint is None and learner is None:
        assert cost(X, D, codes) < 1.02 * cost(X, *naive.alternate(X, X[:5], 400)[::-1])
    np.testing.assert_allclose(model.reconstruction_err_, np.linalg.norm(X - codes @ D), rtol=2e-3)
    past = sum(part.scale * part.A.diagonal() for part in model.state_.stats)
    assert np.all(np.diff(past * np.sum(D * D, axis=1)) <= 1e-9)


def test_history_is_the_cost():
    X = planted(noise=0.1)
    model = NMF(5, tol=0, max_epochs=60, random_state=0).fit(X)
    costs = [record.batch_cost for record in model.history_ if record.epoch]
    assert costs[-1] == pytest.approx(0.5 * model.reconstruction_err_**2 / len(X), rel=2e-3)
    assert costs[-1] == pytest.approx(min(costs), rel=1e-2)
    assert model.stopped_ == "epochs"
    assert model.state_.epoch == 60


def test_alternation_goes_on_from_what_the_learner_has_found():
    X = planted(n=2000, k=20, m=60, noise=0.1) + 5.0  # parts so alike that codes come slowly
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    reached = [
        -NMF(20, lam=0.05, max_epochs=epochs, random_state=0).fit(X).score(X)
        for epochs in (nmf.FIRST_EPOCHS, nmf.FIRST_EPOCHS + 1)
    ]
    assert reached[1] < reached[0]


@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_transform_is_optimal_and_row_by_row(lam):
    X = planted(noise=0.1)
    model = NMF(5, lam=lam, random_state=0)
    codes = model.fit_transform(X)
    assert naive.missed(X, model.components_, codes, lam) < 1e-9
    np.testing.assert_array_equal(model.transform(X), codes)
    np.testing.assert_allclose(model.transform(X[3:4]), codes[3:4], atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(codes), codes @ model.components_)
    same = encode(X, model.components_, model.coder_).toarray()
    np.testing.assert_allclose(same, codes, atol=1e-12)


@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_threads_do_not_matter(lam):
    X = planted(n=3000, noise=0.1, dtype=np.float32)
    one, two = (NMF(5, lam=lam, n_threads=t, max_epochs=5, random_state=0).fit(X) for t in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)


def test_sparse_input_is_never_made_dense(monkeypatch):
    X = planted(n=600, noise=0.0)
    csr = sparse.csr_array(X)
    before = csr.copy()
    one = NMF(5, max_epochs=10, random_state=0).fit(X)
    refused = lambda *a, **k: pytest.fail("densified")
    with monkeypatch.context() as patch:
        patch.setattr(sparse.csr_array, "todense", refused)
        two = NMF(5, max_epochs=10, random_state=0).fit(csr)
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-6)
    np.testing.assert_allclose(one.reconstruction_err_, two.reconstruction_err_, atol=1e-5)
    np.testing.assert_allclose(one.transform(X), two.transform(csr), atol=1e-5)
    assert (csr != before).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_that_is_mostly_zero_is_factorized_as_well_as_the_same_in_a_dense_array(dtype):
    rng = np.random.default_rng(0)
    factors = [rng.random(shape) * (rng.random(shape) < 0.15) for shape in ((700, 5), (5, 300))]
    X = (factors[0] @ factors[1] * rng.gamma(2.0, 0.5, (700, 300))).astype(dtype)
    csr = sparse.csr_array(X)
    assert 0 < csr.nnz < 0.25 * X.size
    settings = {"max_epochs": 100, "random_state": 0}
    dense = NMF(5, **settings).fit(X)
    one, two = (NMF(5, n_threads=t, **settings).fit(csr) for t in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    assert one.components_.dtype == dtype
    assert one.reconstruction_err_ < 1.01 * dense.reconstruction_err_


def test_sparse_data_begins_with_few_samples():
    rng = np.random.default_rng(0)
    usage, parts = rng.random((3000, 3)), rng.random((3, 40))
    usage, parts = usage * (usage > 0.85), parts * (parts > 0.7)
    X = sparse.csr_array(usage @ parts * rng.random((3000, 40)))
    assert X.nnz < 0.25 * 3000 * 40
    seen = []
    models = [
        NMF(3, n_threads=t, random_state=0, callbacks=[lambda s, r: seen.append(s.samples)]).fit(X)
        for t in (1, 2)
    ]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert seen[0] == 3 * descent.FIRST_SPARSE
    assert models[0].n_iter_ > 0
    assert models[0].stopped_ == "tol"
    dense = NMF(3, random_state=0).fit(X.toarray())
    assert models[0].reconstruction_err_ < 1.01 * dense.reconstruction_err_


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_few_samples_that_are_not_zero_are_found(make):
    X = np.zeros((30_000, 12))
    X[::8000] = np.random.default_rng(0).random((4, 12))
    assert NMF(3, random_state=0).fit(make(X)).reconstruction_err_ < 0.5 * np.linalg.norm(X)


def topics(n, n_topics, width, seed=0):
    """Samples of one topic each, of which no two share a feature."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, n_topics * width))
    for i, topic in enumerate(rng.integers(0, n_topics, n)):
        own = slice(topic * width, (topic + 1) * width)
        X[i, own] = rng.poisson(np.linspace(1.0, 3.0, width))
    return X


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_every_topic_gets_an_atom_whichever_samples_are_the_first_atoms(make, seed):
    X = topics(400, 10, 20)
    best = ScikitNMF(10, init="nndsvda", max_iter=500).fit(X).reconstruction_err_
    models = [NMF(10, n_threads=t, random_state=seed).fit(make(X)) for t in (1, 2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert models[0].reconstruction_err_ < 1.001 * best
    assert models[0].stopped_ == "tol"


def test_with_fewer_atoms_than_topics_the_largest_topics_have_them():
    X = topics(400, 6, 20)
    X[:, 40:] *= np.repeat([3.0, 4.0, 5.0, 6.0], 20)
    found = [NMF(4, random_state=seed).fit(X).components_ for seed in range(3)]
    for D in found:
        assert not D[:, :40].any()
        assert (D.reshape(4, 6, 20).any(axis=2).sum(axis=1) == 1).all()


def test_atoms_are_only_exchanged_for_samples_if_that_lowers_the_cost():
    D = np.eye(3)[:2]
    X = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    codes = DenseCodes(X, 2, X.dtype)
    codes.old[:] = (X @ D.T).T
    assert reach_more(D, codes, unreached(codes)) == 0
    np.testing.assert_array_equal(D, np.eye(3)[:2])
    X[2] *= 3.0
    assert reach_more(D, codes, unreached(codes)) == 1
    np.testing.assert_array_equal(D.sum(axis=0) > 0, [False, True, True])
    alike, few = np.eye(3)[[0, 0]], DenseCodes(X, 2, X.dtype)
    few.old[:, 0] = 3.0  # two atoms, of which one is enough
    assert reach_more(alike, few, unreached(few)) == 1
    np.testing.assert_array_equal(alike.sum(axis=0), [1.0, 0.0, 1.0])
    assert not few.old[alike[:, 2] > 0].any()


@pytest.fixture(scope="module")
def wide():
    """Samples with more features than rows, and the cost that the slow twin reaches on them."""
    X = planted(n=400, k=3, m=900, noise=0.05)
    codes, D = naive.alternate(X, X[:3], 200)
    return X, cost(X, D, codes)


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_wide_data_starts_with_few_columns(csr, lam, wide):
    X, reached = wide
    sizes = descent.stages(3, 900, 400, L2Ball(positive=True))
    assert sizes == [(48, 48), (192, 192), (400, 900)] or sizes[-1] == (400, 900)
    assert sizes[0][1] < 900
    assert all(c == 900 for _, c in descent.stages(3, 900, 400, Simplex()))
    model = NMF(3, lam=lam, random_state=0).fit(sparse.csr_array(X) if csr else X)
    codes = model.transform(X)
    assert cost(X, model.components_, codes, 0.0) < (1.01 if lam == 0 else 2) * reached


def test_stream():
    X = planted(n=2000, noise=0.05)
    model = NMF(5, random_state=0)
    for begin in [*range(0, 2000, 100)] * 5:
        model.partial_fit(X[begin : begin + 100])
    assert model.components_.min() >= 0
    first = NMF(5, max_seconds=0, learner=Online(), random_state=0).fit(X)
    assert -model.score(X) < 0.4 * -first.score(X)
    other = NMF(5, random_state=0).partial_fit(sparse.csr_array(X[:250]))
    first = NMF(5, random_state=0).partial_fit(X[:250])
    np.testing.assert_allclose(other.components_, first.components_, atol=1e-8)


def test_statistics_do_not_depend_on_batch_sizes():
    X, D = planted(), planted(n=5, seed=3)
    settings = {
        "init": D,
        "learner": Online(batch_size=100, memory="all", rho=0.0),
        "random_state": 0,
    }
    model = NMF(5, constraint=L2Ball(positive=True), **settings)
    whole = clone(model).partial_fit(X).state_.stats[0]
    codes = encode(X, np.array([d / max(1, np.linalg.norm(d)) for d in D]), model._problem()[0])
    np.testing.assert_allclose(whole.A * 100, (codes.T @ codes).toarray(), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(whole.B * 100, codes.T @ X, rtol=1e-8, atol=1e-8)


def test_dense_statistics_are_the_sparse_ones(monkeypatch):
    X = planted(noise=0.1, dtype=np.float32)
    weights = np.arange(1.0, len(X) + 1)
    models = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(contributions, "DENSE", share)
        models.append(NMF(5, random_state=0).partial_fit(X, sample_weight=weights))
    one, other = (model.state_.stats[-1] for model in models)
    assert one.A.any()
    np.testing.assert_allclose(one.A, other.A, rtol=1e-6)
    np.testing.assert_allclose(one.B, other.B, rtol=1e-6)
    assert one.constant == other.constant


def test_stream_goes_on_from_fit():
    X = planted(n=1000, noise=0.05)
    model = NMF(5, random_state=0).fit(X)
    before = model.components_.copy()
    past = model.state_.stats[-1]
    codes = model.transform(X)
    weight = model.state_.learner.batch_size
    np.testing.assert_allclose(past.A * weight, codes.T @ codes, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(past.B * weight, codes.T @ X, rtol=1e-2, atol=1e-2)
    assert model.state_.mean_surrogate() == pytest.approx(-model.score(X), rel=1e-2)
    model.partial_fit(X[:100])
    assert np.abs(model.components_ - before).max() < 0.1
    assert model.state_.samples == 1100


@pytest.mark.parametrize("learner", [Online(memory="replace"), Batch(), SGD()])
def test_other_learners(learner):
    X = planted(noise=0.1)
    model = NMF(5, learner=learner, max_epochs=3, random_state=0).fit(X)
    assert model.components_.min() >= 0
    error = np.linalg.norm(X - model.transform(X) @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-6)


def test_reorder_keeps_the_state_whole():
    X = planted(noise=0.1)
    model = NMF(5, learner=Online(memory="replace"), max_epochs=2, random_state=0).fit(X)
    state = model.state_.copy()
    surrogate = state.mean_surrogate()
    order = np.array([3, 1, 4, 0, 2])
    reorder(state, order)
    state.measure_surrogate()
    assert state.mean_surrogate() == pytest.approx(surrogate)
    every = np.arange(len(X))
    old = model.state_.store.fetch(every).as_csr(5).toarray()
    np.testing.assert_array_equal(state.store.fetch(every).as_csr(5).toarray(), old[:, order])


def test_other_coders():
    X = planted(noise=0.1)
    model = NMF(5, coder=L1Ball(1.0, positive=True), max_epochs=5, random_state=0)
    codes = model.fit_transform(X)
    assert codes.min() >= 0
    assert codes.sum(axis=1).max() <= 1 + 1e-6
    few = NMF(5, coder=Lasso(mean_nonzeros=2, positive=True), random_state=0).fit(X)
    assert np.count_nonzero(few.transform(X)) / len(X) == pytest.approx(2, abs=0.7)
    ridge = NMF(5, coder=Lasso(0.0, ridge=5.0, positive=True), random_state=0).fit(X)
    assert np.abs(ridge.transform(X)).sum() < np.abs(NMF(5, random_state=0).fit_transform(X)).sum()


def test_the_error_with_a_wanted_density_is_that_of_the_components():
    rng = np.random.default_rng(0)
    X = rng.random((100, 6)) @ (rng.random((6, 40)) * (rng.random((6, 40)) < 0.3))
    constraint = ElasticNetBall(density=0.2, positive=True)
    model = NMF(6, lam=0.005, constraint=constraint, random_state=0)
    left = np.linalg.norm(X - model.fit_transform(X) @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(left, rel=1e-6)
    assert left < 0.5 * np.linalg.norm(X)


def test_wanted_density():
    X = planted(noise=0.1)
    constraint = ElasticNetBall(density=0.3, positive=True)
    model = NMF(5, lam=0.05, constraint=constraint, max_epochs=100, random_state=0).fit(X)
    assert np.count_nonzero(model.components_) / model.components_.size == pytest.approx(
        0.3, abs=0.1
    )


def test_sets_that_shape_nothing():
    with pytest.warns(UserWarning, match="Set lam > 0"):
        NMF(5, constraint=ElasticNetBall(0.2, positive=True), random_state=0).fit(planted())


def test_dead_atoms_begin_again():
    X = planted(n=200, k=5, m=24)
    init = np.zeros((5, 24))
    init[0] = 1.0
    model = NMF(5, init=init, random_state=0).fit(X)
    assert np.all(model.components_.any(axis=1))
    assert any(record.replaced for record in model.history_)


def test_long_runs_do_not_carry_the_arbitrary_length_of_atoms_away():
    rng = np.random.default_rng(0)
    topics = rng.random((10, 400)) * (rng.random((10, 400)) < 0.1)
    counts = rng.poisson(8.0 * rng.dirichlet(np.full(10, 0.1), 300) @ topics)
    X = sparse.csr_array(counts.astype(np.float32))
    short, long = (
        NMF(10, tol=0.0, max_epochs=count, random_state=0).fit(X) for count in (200, 2000)
    )  # warnings are errors
    assert np.isfinite(long.components_).all()
    assert long.reconstruction_err_ <= short.reconstruction_err_ * (1 + 1e-6)


def test_validation_callbacks_and_limits():
    X = planted(noise=0.1)
    seen = []

    def watch(state, record):
        seen.append((state.D.copy(), record.step))
        return state.epoch >= 4

    model = NMF(5, callbacks=[watch], tol=0, random_state=0)
    model.fit(X, validation=X[:50], validate_every=2)
    assert model.stopped_ == "callback"
    assert model.state_.epoch == 4
    assert [record.step for record in model.history_] == list(range(model.n_iter_ + 1))
    assert len(seen) == model.n_iter_  # the first record is that of the start
    D, step = seen[-1]
    expected = cost(X[:50], D, encode(X[:50], D, Lasso(0.0, positive=True)).toarray())
    measured = [r.test_cost for r in model.history_ if r.test_cost is not None]
    assert all(r.test_cost is not None for r in model.history_ if r.step % 2 == 0)
    assert step % 2 == 1 or measured[-1] == pytest.approx(expected)
    assert NMF(5, max_seconds=0, random_state=0).fit(X).stopped_ == "seconds"
    assert NMF(5, random_state=0).fit(X).stopped_ in ("tol", "epochs")


def test_pickle_memory_map_and_frames(tmp_path):
    X = planted(n=500, dtype=np.float32)
    path = tmp_path / "X.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    one = NMF(5, max_epochs=5, random_state=0).fit(mapped)
    two = NMF(5, max_epochs=5, random_state=0).fit(X)
    np.testing.assert_array_equal(one.components_, two.components_)
    again = pickle.loads(pickle.dumps(two))
    np.testing.assert_array_equal(again.transform(X), two.transform(X))
    counts = NMF(5, max_epochs=5, random_state=0).fit((10 * X).astype(np.uint8))
    assert counts.components_.dtype == np.float64


def test_nndsvd():
    X = planted(noise=0.1)
    rng = np.random.RandomState(0)
    plain, filled = (nndsvd(X, 4, rng, fill=fill) for fill in (False, True))
    assert plain.shape == (4, 24)
    assert plain.min() == 0
    assert filled.min() > 0
    values = np.linalg.svd(X)[2][0]
    leading = np.abs(values) / np.linalg.norm(values)
    np.testing.assert_allclose(plain[0] / np.linalg.norm(plain[0]), leading, atol=1e-6)
    model = NMF(4, init="nndsvd", random_state=0).fit(X)
    assert model.components_.min() >= 0


BAD = [
    ({}, -planted(), "Negative values in data passed to NMF: [0-9]+ of them"),
    ({}, sparse.csr_array(-planted()), "Negative values"),
    ({"lam": -1.0}, planted(), "lam must be >= 0, got -1.0"),
    ({"tol": -1.0}, planted(), "tol must be >= 0"),
    ({"init": "nonsense"}, planted(), "one of samples, random, nndsvd, nndsvda, got 'nonsense'"),
    ({"init": -np.ones((5, 24))}, planted(), "Negative values in init of NMF: 120 of them"),
    ({"init": np.ones((4, 24))}, planted(), "init has 4 atoms, expected 5"),
    ({"init": "nndsvd"}, planted(n=4), "at most 4 atoms"),
    ({}, np.zeros((10, 4)), "zero or masked: nothing to learn from"),
    ({}, np.full((10, 4), np.nan), "NaN"),
    ({"coder": Lasso(0.1)}, planted(), "needs a non-negative coder, .* positive=True"),
    ({"constraint": L2Ball()}, planted(), "needs a non-negative constraint"),
    ({"coder": Lasso(0.1, positive=True), "lam": 0.1}, planted(), "lam=0.1 and coder exclude"),
    ({"max_epochs": 0}, planted(), "max_epochs must be >= 1, got 0"),
]


@pytest.mark.parametrize(("settings", "X", "words"), BAD)
def test_bad_input(settings, X, words):
    model = NMF(5, random_state=0, **settings)
    with pytest.raises(ValueError, match=words):
        model.fit(X)
    assert not hasattr(model, "components_")


def test_what_stands_under_a_mask_does_not_matter():
    X = planted(noise=0.1)
    mask = np.random.default_rng(0).random(X.shape) < 0.2
    first, second = (
        NMF(5, lam=0.05, random_state=0).partial_fit(np.where(mask, hidden, X), mask=mask)
        for hidden in (0.0, -1.0)
    )
    np.testing.assert_array_equal(first.components_, second.components_)
    below = np.where(mask, -1.0, X)
    np.testing.assert_array_equal(first.transform(below, mask=mask), first.transform(X, mask=mask))
    assert first.score(below, mask=mask) == first.score(X, mask=mask)


def test_negative_rows_are_not_coded_either():
    model = NMF(5, random_state=0).fit(planted())
    with pytest.raises(ValueError, match="Negative values"):
        model.transform(-planted())
    with pytest.raises(ValueError, match="Negative values"):
        model.partial_fit(-planted())


def test_missing_where_nothing_is_changes_nothing():
    X = np.random.default_rng(0).random((40, 6))
    one, other = (NMF(3, random_state=0, missing=missing).fit(X) for missing in (None, "nan"))
    assert np.array_equal(one.components_, other.components_)


def test_a_fit_that_fails_at_its_end_changes_nothing(monkeypatch):
    X = planted()
    model = NMF(3, coder=Lasso(0.1, positive=True, penalty_weights=[1.0, 2.0, 1.0]), max_epochs=2)
    model.fit(X)
    before = dict(vars(model))

    def fail(*_):
        raise KeyError

    monkeypatch.setattr(NMF, "_squared_error", fail)
    with pytest.raises(KeyError):
        model.fit(2 * X[:40])
    assert vars(model) == before


def test_a_fit_that_is_refused_leaves_the_model_fit_to_go_on():
    X = planted()
    model = NMF(3, max_epochs=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(-X, mask=np.random.default_rng(0).random(X.shape) < 0.3)
    model.partial_fit(X)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"sample_weight": np.full(80, np.inf)}, ValueError, "sample_weight"),
        ({"sample_weight": ["a"] * 80}, TypeError, "sample_weight must hold real numbers"),
        ({"sample_weight": np.ones(79)}, ValueError, r"sample_weight must have shape \(80,\)"),
        ({"sample_weight": np.zeros(80)}, ValueError, "sample_weight is zero"),
        ({"mask": np.zeros((3, 3), bool)}, ValueError, r"mask must have the shape .* got \(3, 3\)"),
        ({"mask": np.full((80, 24), "")}, TypeError, "mask must hold booleans"),
    ],
)
def test_weights_and_masks_are_checked_even_if_they_change_nothing(options, error, words):
    X = planted(n=80)
    for Y in (X, np.ma.masked_array(X)):
        model = NMF(3, random_state=0)
        with pytest.raises(error, match=words):
            model.fit(Y, **options)
        assert not hasattr(model, "n_features_in_")


def test_weights_and_masks_that_change_nothing():
    X = planted(n=80)
    expected = NMF(3, random_state=0).fit(X)
    for data, options in [
        (np.ma.masked_array(X), {}),
        (np.ma.masked_array(X, np.zeros(X.shape, bool)), {"mask": np.zeros(X.shape, bool)}),
        (X.tolist(), {"mask": np.zeros(X.shape, int)}),
        (X, {"sample_weight": np.full(80, 3)}),
        (X, {"sample_weight": 3.0}),
    ]:
        other = NMF(3, random_state=0).fit(data, **options)
        np.testing.assert_array_equal(other.components_, expected.components_)
        assert other.stopped_ == expected.stopped_
        assert other.reconstruction_err_ == expected.reconstruction_err_
