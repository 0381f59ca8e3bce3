"""SparsePCA codes what is left of the mean."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sparse_pca_problems import BLOCKS, blocks, model

from smalto import SparsePCA, encode
from smalto.coders import Lasso
from smalto.constraints import ElasticNetBall
from smalto.learners import Online
from smalto.learning.memory.statistics import Stats


@pytest.mark.parametrize("rho", [0.0, 2.0])
@pytest.mark.parametrize("memory", ["all", "two-epochs"])
def test_statistics_of_a_stream_are_those_of_samples_centred_by_the_last_mean(rho, memory):
    X = blocks(500)
    eta = 50
    lam = Lasso(0.4)
    stream = SparsePCA(
        4, gamma=0.2, coder=lam, learner=Online(batch_size=eta, rho=rho, memory=memory, slack=0.0),
        init=BLOCKS + 0.1, random_state=0,
    )  # fmt: skip
    D = np.array(BLOCKS + 0.1)
    for atom in D:
        ElasticNetBall(0.2).project(atom)
    codes, weights, seen = np.zeros((0, 4)), np.zeros(0), 0
    for n in (7, 50, 1, 120, 33, 200):
        batch = X[seen : seen + n]
        mean = X[: seen + n].mean(axis=0)
        new = encode(batch - mean, D, lam).toarray()
        beta = (seen / (seen + n)) ** rho if seen >= eta else 1.0
        codes = np.vstack([codes, new])
        weights = np.concatenate([beta * weights, np.full(n, 1 / eta)])
        seen += n
        stream.partial_fit(batch)
        D = stream.state_.D.copy()
        np.testing.assert_allclose(stream.mean_, mean, rtol=1e-12)
        past = stream.state_.stats[0].copy()
        for part in stream.state_.stats[1:]:
            past.add(part, 1.0)
        rest = X[:seen] - mean
        A, B = codes.T @ (weights[:, None] * codes), codes.T @ (weights[:, None] * rest)
        np.testing.assert_allclose(past.scale * past.A, A, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(past.scale * past.B, B, rtol=1e-7, atol=1e-7)
        cost = 0.5 * np.sum((rest - codes @ D) ** 2, axis=1) + 0.4 * np.abs(codes).sum(axis=1)
        assert stream.state_.surrogate == pytest.approx(weights @ cost, rel=1e-6)


def test_the_mean_of_a_stream_does_not_depend_on_its_batches():
    X = blocks(300)
    whole = model().partial_fit(X)
    pieces = model()
    for part in np.split(X, [2, 5, 90, 91, 250]):
        pieces.partial_fit(part)
    np.testing.assert_allclose(pieces.mean_, whole.mean_, rtol=1e-12)
    after = model().fit(X[:200]).partial_fit(X[200:])
    assert after.state_.samples == 10 * 200 + 100
    np.testing.assert_allclose(after.mean_, whole.mean_, rtol=1e-12)


def test_moving_the_origin_of_statistics_is_exact():
    rng = np.random.default_rng(0)
    X, codes, by = rng.standard_normal((30, 5)), rng.standard_normal((30, 3)), np.arange(5.0)
    w = rng.random(30)

    def stats(X):
        return Stats(
            codes.T @ (w[:, None] * codes), codes.T @ (w[:, None] * X), 0.5 * w @ (X**2).sum(1),
            w.sum(), 1.0, w @ codes, w @ X,
        )  # fmt: skip

    moved, expected = stats(X), stats(X - by)
    moved.decay(0.5)
    moved.move_origin(by)
    expected.decay(0.5)
    for name in ("A", "B", "constant", "weight", "code_sum", "sample_sum"):
        np.testing.assert_allclose(getattr(moved, name), getattr(expected, name), atol=1e-12)


def test_transform_codes_what_is_left_of_the_mean():
    X = blocks()
    fitted = model().fit(X)
    np.testing.assert_allclose(fitted.mean_, X.mean(axis=0), rtol=1e-12)
    expected = encode(X - fitted.mean_, fitted.components_, fitted.coder_).toarray()
    codes = fitted.transform(X)
    np.testing.assert_allclose(codes, expected, atol=1e-9)
    np.testing.assert_allclose(clone(fitted).fit_transform(X), codes, atol=1e-9)
    np.testing.assert_allclose(fitted.transform(X[5:6]), codes[5:6], atol=1e-9)
    restored = fitted.inverse_transform(codes)
    assert np.mean((X - restored) ** 2) < 0.1 * np.var(X, axis=0).mean()
    cost = 0.5 * np.sum((X - restored) ** 2, axis=1) + fitted.coder_.lam * np.abs(codes).sum(1)
    assert fitted.score(X) == pytest.approx(-cost.mean(), rel=1e-9)
    recorded = model().fit(X, validation=X, validate_every=5).history_
    assert recorded[-1].test_cost == pytest.approx(cost.mean(), rel=1e-3)


def test_sparse_input_and_memory_maps_are_centred_too(tmp_path):
    X = blocks(offset=0.0) * (np.random.default_rng(1).random((600, 20)) < 0.3)
    dense = model().fit(X)
    other = model().fit(sparse.csr_array(X))
    np.testing.assert_allclose(other.components_, dense.components_, atol=1e-9)
    np.testing.assert_allclose(
        other.explained_variance_, dense.explained_variance_, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(other.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-9)
    mapped = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    np.testing.assert_array_equal(model().fit(mapped).components_, dense.components_)
    mapped[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*\(7, 3\)"):
        model().fit(mapped)


def test_a_stream_after_several_epochs_counts_each_sample_once():
    X = blocks(400)
    parts = X[:200], X[200:300] + 1.0, X[300:] - 2.0
    fitted = SparsePCA(2, max_epochs=20, random_state=0).fit(parts[0])
    assert fitted.n_samples_seen_ == 200
    fitted = pickle.loads(pickle.dumps(fitted))
    for n in (2, 3):
        fitted.partial_fit(parts[n - 1])
        seen = np.vstack(parts[:n])
        np.testing.assert_allclose(fitted.mean_, seen.mean(axis=0), rtol=1e-12)
        assert fitted.n_samples_seen_ == len(seen)
    again = fitted.fit(parts[1])
    np.testing.assert_allclose(again.mean_, parts[1].mean(axis=0), rtol=1e-12)
    assert again.n_samples_seen_ == 100
