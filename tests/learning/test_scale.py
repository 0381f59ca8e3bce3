"""The size of samples does not matter to learning: powers of two change no bit of the atoms."""

import numpy as np
import pytest
from scipy import sparse

from smalto import NMF, DictionaryLearning, SparseCCA, SparsePCA, State, learn
from smalto.coders import OMP, GroupLasso, Lasso, Ridge
from smalto.constraints import L2Ball
from smalto.learners import SGD, Batch, Online, Replacement
from smalto.learning import OneByOne
from smalto.learning.dictionary.sweep import gradient_step
from smalto.learning.memory import statistics
from smalto.sources import Stream

RNG = np.random.default_rng(0)
CODES = RNG.standard_normal((240, 10)) * (RNG.random((240, 10)) < 0.4)
X = CODES @ RNG.standard_normal((10, 8)) / 3 + 0.05 * RNG.standard_normal((240, 8))
MASK, WEIGHTS = RNG.random(X.shape) < 0.2, RNG.random(240) + 0.1

# The learner for samples of size u, whose codes have this size too.
LEARNERS = {
    "online": lambda u: Online(64),
    "all": lambda u: Online(64, memory="all", rho=0.0),
    "replace": lambda u: Online(64, memory="replace"),
    "features": lambda u: Online(64, features=0.5),
    "t0": lambda u: Online(64, t0=0.1 * u * u),
    "kappa1": lambda u: Online(64, kappa1=0.1 * u * u),
    "batch": lambda u: Batch(),
    "sgd": lambda u: SGD(a=6.0 / u / u, b=2000.0, batch_size=64),
}
CODERS = {
    "Lasso": lambda u: Lasso(0.1 * u),
    "default": lambda u: Lasso(),
    "OMP": lambda u: OMP(3),
    "Ridge": lambda u: Ridge(0.1),
    "GroupLasso": lambda u: GroupLasso(0.1 * u, np.arange(12) // 2),
}
DATA = {
    "whole": {},
    "holes": {"mask": MASK},
    "weights": {"sample_weight": WEIGHTS},
    "both": {"mask": MASK, "sample_weight": WEIGHTS},
    "sparse": {},
}
SIZES = [(np.float32, 60), (np.float32, -60), (np.float64, 400), (np.float64, -400)]


def learned(dtype, exponent, coder="Lasso", learner="online", data="whole", **options):
    """What is learned from samples of size ``2^exponent``."""
    u = 2.0**exponent
    samples = np.ldexp(X, exponent).astype(dtype)
    return learn(
        sparse.csr_array(samples) if data == "sparse" else samples,
        12, CODERS[coder](u), None, LEARNERS[learner](u),
        max_steps=6, random_state=0, replacement=Replacement(every=2), **DATA[data], **options,
    )  # fmt: skip


def assert_same(dtype, exponent, *settings):
    found, expected = learned(dtype, exponent, *settings), learned(dtype, 0, *settings)
    np.testing.assert_array_equal(found.D, expected.D)
    for one, other in zip(found.history, expected.history, strict=True):
        assert one.batch_cost == np.ldexp(other.batch_cost, 2 * exponent)
        if other.surrogate is not None:
            assert one.surrogate == np.ldexp(other.surrogate, 2 * exponent)


@pytest.mark.parametrize(("dtype", "exponent"), SIZES)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("data", DATA)
def test_every_learner_learns_the_same_atoms_at_any_size(dtype, exponent, learner, data):
    if not (learner == "replace" and "mask" in DATA[data]):  # which is refused
        assert_same(dtype, exponent, "Lasso", learner, data)


@pytest.mark.parametrize(("dtype", "exponent"), SIZES)
@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("learner", ["online", "batch"])
def test_so_does_every_kind_of_code(dtype, exponent, coder, learner):
    assert_same(dtype, exponent, coder, learner)


@pytest.mark.parametrize("exponent", [-497, 497])
@pytest.mark.parametrize("learner", ["online", "replace", "batch", "sgd"])
def test_at_the_ends_of_the_range_of_float64_rounding_is_all(exponent, learner):
    expected = learned(np.float64, 0, learner=learner).D
    found = learned(np.float64, exponent, learner=learner).D
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize(("dtype", "exponent"), [*SIZES, (np.float64, 497)])
@pytest.mark.parametrize("learner", [SGD(), SGD(a=1e300)])
def test_steps_of_any_length_end_in_the_set(dtype, exponent, learner):
    samples = np.ldexp(X, exponent).astype(dtype)
    D = learn(samples, 12, Lasso(0.1 * 2.0**exponent), None, learner, max_steps=3, random_state=0).D
    assert (np.linalg.norm(D.astype(np.float64), axis=1) <= 1 + 1e-5).all()


@pytest.mark.parametrize(("dtype", "exponent"), SIZES)
@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize("as_source", [np.asarray, sparse.csr_array])
def test_alternating_nmf(dtype, exponent, lam, as_source):
    def fitted(exponent):
        samples = np.ldexp(np.abs(X), exponent).astype(dtype)
        return NMF(5, lam=lam * 2.0**exponent, random_state=0).fit(as_source(samples))

    found, expected = fitted(exponent), fitted(0)
    np.testing.assert_array_equal(found.components_, expected.components_)
    assert found.reconstruction_err_ == np.ldexp(expected.reconstruction_err_, exponent)
    for one, other in zip(found.history_, expected.history_, strict=True):
        assert one.batch_cost == np.ldexp(other.batch_cost, 2 * exponent)
    part, like = found.state_.stats[-1], expected.state_.stats[-1]
    np.testing.assert_array_equal(part.B, np.ldexp(like.B, 2 * exponent))
    np.testing.assert_array_equal(part.sample_sum, np.ldexp(like.sample_sum, exponent))


@pytest.mark.parametrize("init", ["random", "nndsvd", "nndsvda"])
def test_other_starts_of_nmf(init):
    expected = NMF(5, init=init, random_state=0).fit(np.abs(X)).reconstruction_err_
    for exponent in (-480, 480):
        model = NMF(5, init=init, random_state=0).fit(np.ldexp(np.abs(X), exponent))
        assert np.ldexp(model.reconstruction_err_, -exponent) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("init", ["samples", "random", "nndsvd", "nndsvda"])
@pytest.mark.parametrize("size", [255.0, 1e-6])
def test_units_do_not_matter_to_the_start_of_nmf(init, size):
    model = NMF(5, init=init, random_state=0, max_epochs=1)
    expected = model.fit(np.abs(X)).reconstruction_err_
    found = model.fit(size * np.abs(X)).reconstruction_err_
    assert found / size == pytest.approx(expected, rel=1e-6)


def test_truths_have_singular_vectors():
    known = X > 0
    model, other = NMF(3, init="nndsvd", random_state=0), NMF(3, init="nndsvd", random_state=0)
    np.testing.assert_array_equal(
        model.fit(known).components_, other.fit(known.astype(float)).components_
    )


def in_steps(samples, lam):
    model = DictionaryLearning(12, coder=Lasso(lam), random_state=0)
    for start in range(0, 240, 40):
        model.partial_fit(samples[start : start + 40])
    return model.components_


def one_by_one(samples, lam):
    model = OneByOne(12, Lasso(lam), learner=Online(40), random_state=0)
    for x in samples:
        model.learn_one(x)
    return model.state.D


def from_a_stream(samples, lam):
    stream = Stream(lambda epoch: iter([samples[:100], samples[100:]]))
    return learn(stream, 12, Lasso(lam), learner=Online(40), max_epochs=2, random_state=0).D


@pytest.mark.parametrize(("dtype", "exponent"), SIZES)
@pytest.mark.parametrize("road", [in_steps, one_by_one, from_a_stream])
def test_other_roads_to_a_step(dtype, exponent, road):
    found = road(np.ldexp(X, exponent).astype(dtype), 0.1 * 2.0**exponent)
    np.testing.assert_array_equal(found, road(X.astype(dtype), 0.1))


@pytest.mark.parametrize(("dtype", "exponent"), SIZES)
def test_a_run_that_is_resumed_has_the_same_bits(dtype, exponent, tmp_path):
    samples, lam = np.ldexp(X, exponent).astype(dtype), 0.1 * 2.0**exponent
    options = {"coder": Lasso(lam), "learner": Online(40)}
    first = learn(samples, 12, **options, max_steps=3, random_state=0)
    first.state.save(tmp_path / "state.safetensors")
    state = State.load(tmp_path / "state.safetensors")
    again = learn(samples, 12, **options, max_steps=9, state=state)
    whole = learn(samples, 12, **options, max_steps=9, random_state=0)
    np.testing.assert_array_equal(again.D, whole.D)


@pytest.mark.parametrize(("dtype", "exponent"), [*SIZES, (np.float64, 490)])
def test_the_size_of_samples_may_change_on_the_way(dtype, exponent):
    """What was learned from small samples is forgotten for large ones, whatever comes first."""
    model = DictionaryLearning(12, coder=Lasso(0.1 * min(1.0, 2.0**exponent)), random_state=0)
    other = np.ldexp(X, exponent).astype(dtype)
    for start in range(0, 240, 40):
        for samples in (X.astype(dtype), other):
            model.partial_fit(samples[start : start + 40])
            D = model.components_.astype(np.float64)
            assert (np.linalg.norm(D, axis=1) <= 1 + 1e-5).all()


@pytest.mark.parametrize("exponent", [-60, 60])
def test_very_many_atoms(exponent, monkeypatch):
    """Their A is in float32, which has no room for the squares of such codes."""
    monkeypatch.setattr(statistics, "MANY_ATOMS", 8)
    found, expected = (learned(np.float32, e, learner="batch") for e in (exponent, 0))
    assert expected.state.stats[0].A.dtype == np.float32
    np.testing.assert_allclose(found.D, expected.D, atol=1e-4)


@pytest.mark.parametrize(("dtype", "exponent"), SIZES)
def test_variances_of_sparse_pca(dtype, exponent):
    found, expected = (
        SparsePCA(4, gamma=0.5, random_state=0).fit(np.ldexp(X, e).astype(dtype))
        for e in (exponent, 0)
    )
    variances = np.ldexp(found.explained_variance_, -2 * exponent)
    np.testing.assert_allclose(variances, expected.explained_variance_, rtol=1e-4)


@pytest.mark.parametrize("coder", [None, Lasso(2.0), Lasso(mean_nonzeros=0.5)])
def test_canonical_correlations_of_unscaled_blocks(coder):
    def fitted(dtype, x, y):
        own = coder
        if coder is not None and coder.lam is not None:
            own = Lasso(coder.lam * 2.0 ** (x + y))
        model = SparseCCA(2, scale=False, coder=own)
        return model.fit(np.ldexp(X[:, :5], x).astype(dtype), np.ldexp(X[:, 5:], y).astype(dtype))

    for dtype, x, y in (
        (np.float32, 20, 0), (np.float32, 58, -58), (np.float64, 480, 480), (np.float64, -480, -480),
    ):  # fmt: skip
        found, expected = fitted(dtype, x, y), fitted(dtype, 0, 0)
        np.testing.assert_allclose(found.x_weights_, expected.x_weights_, atol=1e-5)
        np.testing.assert_allclose(found.y_weights_, expected.y_weights_, atol=1e-5)
        np.testing.assert_allclose(np.ldexp(found.lam_, -x - y), expected.lam_, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_batch_of_hardly_anything_is_no_error(dtype):
    model = DictionaryLearning(12, coder=Lasso(0.1), random_state=0)
    model.partial_fit(X.astype(dtype))
    before = model.components_.copy()
    model.partial_fit(np.ldexp(X[:1], -90 if dtype == np.float32 else -700).astype(dtype))
    np.testing.assert_allclose(model.components_, before, atol=0.1)


def test_what_is_in_the_range_is_an_entry_not_a_norm():
    samples = np.full((20, 100), 2.0**61, np.float32) * RNG.choice([-1, 1], (20, 100))
    learn(samples.astype(np.float32), 4, Lasso(2.0**61), max_steps=2, random_state=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_without_a_gradient_moves_nothing(dtype):
    """However large its rate is: that of an atom which no sample uses is zero times it."""
    D = np.eye(3, 5, dtype=dtype)
    stats = statistics.Stats.zeros(3, 5, dtype=dtype)
    stats.A[0, 0] = stats.B[0, 1] = 2.0**60
    gradient_step(D, stats, 1e300, L2Ball(), 1)
    assert np.isfinite(D).all()
    np.testing.assert_array_equal(D[1:], np.eye(3, 5)[1:])


@pytest.mark.parametrize("learner", [Online(4), Batch(), SGD(batch_size=4)], ids=repr)
def test_codes_whose_squares_overflow_are_refused(learner):
    """Where a mask leaves little of an atom, coefficients exceed samples by many orders."""
    X = np.full((4, 5), 1e145)
    init = np.array([[1.0, 1.0, 1.0, 1.0, 1e-12]])
    mask = np.zeros(X.shape, bool)
    mask[1:, :4] = True
    with pytest.raises(ValueError, match=r"codes reach 2e\+157, and their squares overflow: scale"):
        learn(X, 1, OMP(1), learner=learner, init=init, mask=mask, max_steps=3, random_state=0)
