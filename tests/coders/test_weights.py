"""Weights: of coefficients in the penalty, and of samples in the cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from missing_entries import holes, planted, quiet
from naive_coders import weighted_violation
from problems import DEGENERATE, DTYPES, examples, ordinary, problems
from scipy import sparse

from smalto import DictionaryLearning, encode, learn
from smalto.coders import OMP, Bridge, ErrorBound, GroupLasso, L1Ball, Lasso, Ridge, duality_gap
from smalto.learners import SGD, Batch, Online

# --- of coefficients


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("positive", [False, True])
def test_optimal_on_degenerate_problems(name, dtype, positive):
    X, D = DEGENERATE[name]
    X, D = X.astype(dtype), D.astype(dtype)
    lam = 0.1 * float(np.abs(X @ D.T).max()) if np.any(X @ D.T) else 0.1
    rng = np.random.default_rng(0)
    each = rng.uniform(0.3, 3, (len(X), len(D)))
    for weights in (each, each[0]):
        codes = quiet(X, D, Lasso(lam, positive=positive), penalty_weights=weights).toarray()
        missed = weighted_violation(X, D, codes, lam, weights, positive=positive)
        size = lam + np.abs(codes).sum(1) * np.abs(D @ D.T).max()
        assert np.all(missed <= {np.float32: 1e-4, np.float64: 1e-10}[dtype] * size)


@examples(60)
@given(problems(), st.integers(0, 5))
def test_optimal_on_any_problem(problem, seed):
    X, D, lam, ridge, positive = problem
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0, 7.0], (len(X), len(D)))
    lam = max(lam, 0.01)
    codes = quiet(
        X, D, Lasso(lam, ridge=ridge, positive=positive), penalty_weights=weights
    ).toarray()
    missed = weighted_violation(X, D, codes, lam, weights, ridge, positive)
    assert np.all(missed <= 1e-8 * (1 + 16 * np.abs(codes).sum(1)))


def test_weights_of_the_coder_and_of_the_call_multiply():
    X, D = ordinary()
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2, len(D)), rng.uniform(0.5, 2, (len(X), len(D)))
    expected = encode(X, D, Lasso(0.1), penalty_weights=a * b).toarray()
    both = encode(X, D, Lasso(0.1, penalty_weights=a), penalty_weights=b).toarray()
    np.testing.assert_allclose(both, expected, atol=1e-12)
    alone = encode(X, D, Lasso(0.1, penalty_weights=a)).toarray()
    np.testing.assert_allclose(
        alone, encode(X, D, Lasso(0.1), penalty_weights=a).toarray(), atol=1e-12
    )
    scaled = encode(X, D / a[:, None], Lasso(0.1)).toarray() / a
    np.testing.assert_allclose(alone, scaled, atol=1e-9)
    same = encode(X, D, Lasso(0.1), penalty_weights=np.ones(len(D))).toarray()
    np.testing.assert_allclose(same, encode(X, D, Lasso(0.1)).toarray(), atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e60, 1e-60])
@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-12, 1e-30])
@pytest.mark.filterwarnings("ignore:.* codes are not proven optimal:RuntimeWarning")
def test_one_atom_that_hardly_has_a_penalty(small, size, positive, dtype):
    """Wherever the weights are given, codes are as good as exact ones; beyond 1e-8 it may be said
    that this is not proven."""
    X, D = ordinary()
    X = (X + 2.0).astype(dtype)
    D = np.vstack([D, np.full((1, D.shape[1]), D.shape[1] ** -0.5)]).astype(dtype)
    weights = np.ones(len(D))
    weights[-1] = small
    lam = 0.2 / size
    coders = (
        Lasso(lam, positive=positive, penalty_weights=size * weights),
        Lasso(lam, positive=positive),
    )
    every = encode(X, D, coders[0]), encode(X, D, coders[1], penalty_weights=size * weights)
    wide = Lasso(0.2, positive=positive, penalty_weights=weights)
    exact = encode(X.astype(np.float64), D.astype(np.float64), wide)
    costs = []
    for codes in (exact, *every):
        left = X.astype(np.float64) - codes.toarray().astype(np.float64) @ D.astype(np.float64)
        costs.append(0.5 * (left**2).sum(axis=1) + wide.penalty(codes.astype(np.float64)))
    allowed = {np.float32: 1e-4, np.float64: 1e-9}[dtype] * 0.5 * (X**2).sum(axis=1)
    assert np.all(costs[1] - costs[0] <= allowed)
    assert np.all(costs[2] - costs[0] <= allowed)


@pytest.mark.parametrize("sizes", [[1.0, 1e-20], [1.0, 1e20], [1e-8, 1e8], [1e-15, 1e3]])
def test_a_ball_whose_weights_are_far_apart(sizes):
    codes, info = encode(
        np.array([[1.0, 2.0]]), np.diag(sizes), L1Ball(1.0), penalty_weights=sizes, return_info=True
    )
    np.testing.assert_allclose(codes.toarray() * sizes, [[0.0, 1.0]], rtol=1e-12)
    assert info.gap[0] < 1e-12


@pytest.mark.parametrize("own", [False, True])
def test_a_start_may_have_an_atom_that_is_excluded(own):
    X, D = ordinary()
    start = encode(X, D, Lasso(0.05))
    weights = np.ones(len(D))
    weights[start.indices[0]] = np.inf
    coder = Lasso(0.1, penalty_weights=weights if own else None)
    options = {} if own else {"penalty_weights": weights}
    codes = encode(X, D, coder, start=start, **options).toarray()
    np.testing.assert_allclose(codes, encode(X, D, coder, **options).toarray(), atol=1e-12)


@pytest.mark.parametrize("coder", [Lasso(0.1, ridge=0.2), ErrorBound(0.2), L1Ball(0.8)], ids=repr)
@pytest.mark.parametrize("masked", [False, True])
def test_gap(coder, masked):
    X, D = ordinary()
    weights = np.random.default_rng(1).uniform(0.5, 2, (len(X), len(D)))
    mask = holes(X, 0.2) if masked else None
    codes, info = quiet(X, D, coder, penalty_weights=weights, mask=mask, return_info=True)
    assert np.all(info.gap < 1e-8)
    other = quiet(X, D, coder, mask=mask)
    assert duality_gap(X, D, other, coder, penalty_weights=weights, mask=mask).max() > 1e-4
    if isinstance(coder, L1Ball):
        lengths = (np.abs(codes.toarray()) * weights).sum(1)
        np.testing.assert_allclose(lengths, 0.8, rtol=1e-8)
    if isinstance(coder, Lasso):
        own = Lasso(0.1, ridge=0.2, penalty_weights=weights[0])
        codes = encode(X, D, own, mask=mask)
        assert duality_gap(X, D, codes, own, mask=mask).max() < 1e-8


def test_an_infinite_weight_bars_an_atom():
    X, D = ordinary()
    weights = np.ones(len(D))
    weights[3] = np.inf
    codes = encode(X, D, Lasso(0.05), penalty_weights=weights).toarray()
    assert not codes[:, 3].any()
    others = np.delete(np.arange(len(D)), 3)
    np.testing.assert_allclose(
        codes[:, others], encode(X, D[others], Lasso(0.05)).toarray(), atol=1e-12
    )
    assert np.isfinite(Lasso(0.05, penalty_weights=weights).penalty(codes)).all()


def test_learning_with_weighted_coefficients():
    X, _ = planted(n=600)
    weights = np.geomspace(0.3, 3, 12)
    coder = Lasso(0.2, penalty_weights=weights)
    first = learn(X, 12, coder, max_steps=1, random_state=0)
    result = learn(X, 12, coder, max_epochs=3, random_state=0, validation=X[:100])
    assert result.history[-1].test_cost < 0.9 * result.history[0].test_cost
    codes = encode(X[:100], result.D, coder)
    cost = 0.5 * ((X[:100] - codes @ result.D) ** 2).sum(1)
    cost += 0.2 * (np.abs(codes.toarray()) * weights).sum(1)
    assert result.history[-1].test_cost == pytest.approx(cost.mean(), rel=1e-9)
    use = (codes.toarray() != 0).mean(0)
    assert use[:4].mean() > use[-4:].mean()
    assert first.coder == coder
    assert hash(coder) == hash(Lasso(0.2, penalty_weights=tuple(weights)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda X, D: encode(X, D, Lasso(0.1), penalty_weights=-np.ones(len(D))),
            ValueError,
            r">= 0, got -1.0 at \(0, 0\)",
        ),
        (lambda X, D: encode(X, D, Lasso(0.1), penalty_weights=np.ones(3)), ValueError, "of shape"),
        (
            lambda X, D: encode(X, D, OMP(3), penalty_weights=np.ones(len(D))),
            ValueError,
            "takes no penalty_weights",
        ),
        (
            lambda X, D: encode(X, D, Ridge(3), penalty_weights=np.ones(len(D))),
            ValueError,
            "takes no penalty_weights",
        ),
        (lambda X, D: Lasso(0.1, penalty_weights=[1.0, -2.0]), ValueError, "got -2.0 for atom 1"),
        (lambda X, D: Lasso(0.1, penalty_weights=2.0), TypeError, "one per atom"),
        (
            lambda X, D: encode(X, D, Lasso(0.1, penalty_weights=[1.0])),
            ValueError,
            "has 1 numbers, expected 24",
        ),
    ],
)
def test_bad_weights(call, error, message):
    with pytest.raises(error, match=message):
        call(*ordinary())


# --- of samples


def by_weights(learner, X, weights, **kwargs):
    return learn(
        X, 8, Lasso(0.1), learner=learner, sample_weight=weights, init=planted()[1][:8],
        random_state=0, **kwargs,
    )  # fmt: skip


@pytest.mark.parametrize("as_csr", [False, True])
def test_a_weight_is_as_good_as_so_many_copies(as_csr):
    X, _ = planted(n=120)
    counts = np.random.default_rng(0).integers(0, 4, 120)
    copies = np.repeat(X, counts, axis=0)
    kind = sparse.csr_array if as_csr else np.asarray
    weighted = by_weights(Batch(), kind(X), counts.astype(float), max_epochs=5)
    copied = by_weights(Batch(), kind(copies), None, max_epochs=5)
    np.testing.assert_allclose(weighted.D, copied.D, atol=1e-9)
    for a, b in zip(weighted.history, copied.history, strict=True):
        assert a.batch_cost == pytest.approx(b.batch_cost)
        assert a.surrogate == pytest.approx(b.surrogate)


@pytest.mark.parametrize(
    "learner", [Online(32), Online(32, memory="replace"), Online(32, memory="all"), SGD(10, 100)],
    ids=repr,
)  # fmt: skip
def test_samples_without_weight_teach_nothing(learner):
    X, _ = planted(n=200)
    weights = np.ones(200)
    weights[100:] = 0.0
    spoiled = X.copy()
    spoiled[100:] = 100 * np.random.default_rng(0).standard_normal((100, X.shape[1]))
    expected = by_weights(learner, X, weights, max_epochs=2)
    result = by_weights(learner, spoiled, weights, max_epochs=2)
    np.testing.assert_array_equal(result.D, expected.D)
    even = by_weights(learner, X, np.ones(200), max_epochs=2)
    np.testing.assert_allclose(even.D, by_weights(learner, X, None, max_epochs=2).D, atol=1e-12)


@pytest.mark.parametrize("coder", [Lasso(), Lasso(mean_nonzeros=3), Bridge(0.3)], ids=repr)
def test_what_is_chosen_from_samples_is_chosen_by_weight(coder):
    X, _ = planted(n=200)
    weights = np.ones(200)
    weights[100:] = 0.0
    spoiled = X.copy()
    spoiled[100:] *= 1e3
    options = {"init": planted()[1][:8], "max_epochs": 2, "random_state": 0}
    kept = learn(spoiled, 8, coder, sample_weight=weights, **options)
    alone = learn(X[:100], 8, coder, **options)
    for name in ("lam", "delta"):
        found, expected = getattr(kept.coder, name, 1.0), getattr(alone.coder, name, 1.0)
        assert found == pytest.approx(expected, rel=0.1)
    copies = np.random.default_rng(0).integers(0, 4, 200)
    by_weight = learn(X, 8, Lasso(), sample_weight=copies, **options).coder.lam
    assert by_weight == pytest.approx(
        learn(np.repeat(X, copies, axis=0), 8, Lasso(), **options).coder.lam, rel=0.02
    )
    first = learn(spoiled, 8, coder, sample_weight=weights, random_state=0, max_steps=1).coder
    assert first.describe()["lam"] < 10 * alone.coder.describe()["lam"]


def test_weights_favour_what_they_weigh():
    (X, _), (Y, _) = planted(n=500), planted(n=500, seed=5)
    both = np.concatenate([X, Y])
    weights = np.repeat([1.0, 0.05], 500)
    model = DictionaryLearning(10, coder=Lasso(0.1), max_epochs=4, random_state=0)
    towards = model.fit(both, sample_weight=weights).score(X)
    away = model.fit(both, sample_weight=weights[::-1]).score(X)
    assert towards > away


def test_streams_take_weights():
    X, _ = planted(n=300)
    weights = np.random.default_rng(0).uniform(0, 2, 300)
    model = DictionaryLearning(10, coder=Lasso(0.1), random_state=0)
    other = DictionaryLearning(10, coder=Lasso(0.1), random_state=0)
    for part in np.array_split(np.arange(300), 5):
        model.partial_fit(X[part], sample_weight=weights[part])
        other.partial_fit(X[part])
    assert model.state_.stats[-1].total_weight() != other.state_.stats[-1].total_weight()
    assert not np.array_equal(model.components_, other.components_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"shape \(200,\)"),
        (-np.ones(200), ">= 0"),
        (np.zeros(200), "zero for every sample"),
        (np.full(200, np.nan), "NaN"),
    ],
)
def test_bad_sample_weights(weights, message):
    X, _ = planted(n=200)
    with pytest.raises(ValueError, match=message):
        learn(X, 5, Lasso(0.1), sample_weight=weights)
    with pytest.raises(TypeError, match="sample_weight must hold real numbers, got dtype complex"):
        learn(X, 5, Lasso(0.1), sample_weight=np.ones(200, complex))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("coder", [Lasso(0.3), L1Ball(1.0), ErrorBound(3.0)])
def test_a_tiny_weight_leaves_an_atom_unpenalized(coder, dtype):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((40, 12)) + 2.0).astype(dtype)  # the mean of a signal is free
    D = np.vstack([np.ones((1, 12)) / np.sqrt(12), rng.standard_normal((20, 12))]).astype(dtype)
    weights = np.ones(21)
    weights[0] = 1e-6
    A, info = encode(X, D, coder, penalty_weights=weights, return_info=True)
    center = np.eye(12) - np.full((12, 12), 1 / 12)
    rest = encode((X @ center).astype(dtype), (D[1:] @ center).astype(dtype), coder)
    close = {np.float32: 2e-2, np.float64: 1e-4}[dtype]
    np.testing.assert_allclose(A.toarray()[:, 1:], rest.toarray(), atol=close)
    assert np.isfinite(info.gap).all()


def test_what_a_weight_of_zero_is_not_for():
    X, D, zero = np.ones((1, 2)), np.eye(2), np.array([1.0, 0.0])
    message = "must be > 0 with positive=True, got 0.0: to leave an atom practically unpenalized"
    for coder in (Lasso(0.1, positive=True), L1Ball(1.0, positive=True), ErrorBound(1.0, True)):
        with pytest.raises(ValueError, match=message):
            encode(X, D, coder, penalty_weights=zero)
        with pytest.raises(ValueError, match=message):
            duality_gap(X, D, np.zeros((1, 2)), coder, penalty_weights=zero)
    with pytest.raises(ValueError, match=message):
        Lasso(0.1, positive=True, penalty_weights=zero)
    for coder in (Lasso(mean_nonzeros=1), Lasso(mean_nonzeros=1, penalty_weights=zero)):
        own = zero if coder.penalty_weights is None else None
        with pytest.raises(ValueError, match=r"mean_nonzeros cannot choose lam .* give lam, or"):
            encode(X, D, coder, penalty_weights=own)
    with pytest.raises(ValueError, match=r"got 0.0 for group 1: to leave it practically unpenal"):
        GroupLasso(0.1, [0, 1], group_weights=zero)
