"""Measures of fitted models, by their definitions."""

import numpy as np
import pytest
import scipy
from sklearn.metrics import r2_score

from smalto import NMF, DictionaryLearning, Model, SparsePCA, encode, learn, quality, select
from smalto.choosing import (
    coherence,
    dead_atoms,
    duplicate_atoms,
    effective_rank,
    matched_similarity,
    r2,
)
from smalto.coders import OMP, Lasso

X = np.random.default_rng(0).standard_normal((200, 12)) + 1.0
MODEL = learn(X, 4, Lasso(0.5), max_steps=2, random_state=0)


def test_all_measures_by_their_definitions():
    result = learn(X, 16, Lasso(0.5), random_state=0)
    codes = encode(X, result.D, result.coder)
    found = quality(result, X, held_out=X[:50])
    residual = X - codes @ result.D
    costs = 0.5 * (residual**2).sum(axis=1) + 0.5 * abs(codes).sum(axis=1)
    assert found.cost == pytest.approx(costs.mean())
    assert found.held_out_cost == pytest.approx(costs[:50].mean())
    assert found.r2 == pytest.approx(r2_score(X, codes @ result.D, multioutput="variance_weighted"))
    assert found.mean_nonzeros == codes.nnz / 200
    singular = np.linalg.svd(codes @ result.D, compute_uv=False)
    shares = singular / singular.sum()
    assert found.effective_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    assert found.relative_gap < 1e-10
    assert found.stability is None
    units = result.D / np.linalg.norm(result.D, axis=1, keepdims=True)
    assert found.coherence == pytest.approx(np.abs(units @ units.T - np.eye(16)).max())


def test_estimators_results_and_models_are_the_same_thing():
    model = DictionaryLearning(16, coder=Lasso(0.5), random_state=0).fit(X)
    wanted = quality(model, X).rows
    assert quality(learn(X, 16, Lasso(0.5), random_state=0), X).rows == wanted
    assert quality(Model.of(model.state_), X).rows == wanted
    for row, same in zip(quality(model, scipy.sparse.csr_array(X)).rows, wanted, strict=True):
        assert row["value"] is same["value"] or row["value"] == pytest.approx(
            same["value"], rel=1e-9, abs=1e-12
        )


def test_sparse_pca_is_measured_around_its_mean():
    model = SparsePCA(4, max_epochs=5, random_state=0).fit(X)
    found = quality(model, X)
    restored = model.inverse_transform(model.transform(X))
    assert found.r2 == pytest.approx(r2_score(X, restored, multioutput="variance_weighted"))
    assert found.cost == pytest.approx(-model.score(X))


def test_missing_entries_do_not_count():
    holes = np.random.default_rng(1).random(X.shape) < 0.2
    model = DictionaryLearning(8, coder=Lasso(0.5), missing="nan", random_state=0)
    by_nan = np.where(holes, np.nan, X)
    found = quality(model.fit(by_nan), by_nan)
    codes = model.transform(by_nan)
    known = ~holes
    left = ((X - codes @ model.components_) ** 2)[known].sum()
    total = sum(((X[known[:, j], j] - X[known[:, j], j].mean()) ** 2).sum() for j in range(12))
    assert found.r2 == pytest.approx(1 - left / total)
    assert quality(model, X, mask=holes).r2 == pytest.approx(found.r2)
    assert found.cost == pytest.approx(-model.score(by_nan))


def test_stability_from_other_starts():
    rng = np.random.default_rng(0)
    table = rng.gamma(0.3, size=(150, 4)) @ rng.gamma(0.3, size=(4, 20))
    model = NMF(4, random_state=0).fit(table)
    assert quality(model, table, n_starts=3, random_state=0).stability.min() > 0.98
    torn = NMF(4, random_state=0).fit(rng.random((150, 20)))
    assert quality(torn, table, n_starts=2, random_state=0).stability.mean() < 0.9
    assert quality(model, table, others=[model, model.components_]).stability == pytest.approx(1.0)
    with pytest.raises(TypeError, match="needs an estimator"):
        quality(learn(X, 4, random_state=0), X, n_starts=2)


def test_exact_codes_of_plain_nmf_have_no_gap():
    table = np.abs(X)
    model = NMF(5, random_state=0).fit(table)
    assert quality(model, table).relative_gap < 1e-10
    assert quality(model, scipy.sparse.csr_array(table)).relative_gap < 1e-10


def test_gaps_are_shares_of_the_cost_of_zero_codes():
    result = learn(X, 8, Lasso(0.5), random_state=0)
    _, info = encode(X, result.D, result.coder, return_info=True)
    zero = 0.5 * (X**2).sum(axis=1).mean()
    assert quality(result, X).relative_gap == pytest.approx(info.gap.mean() / zero)


def test_a_coder_that_is_not_convex_has_no_certificate():
    assert quality(learn(X, 8, OMP(max_nonzeros=2), random_state=0), X).relative_gap is None


def test_dead_and_duplicate_atoms_are_counted():
    D = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 1e-4], [0, 0, 0]])
    assert duplicate_atoms(D) == [(0, 2)]
    assert coherence(D) == pytest.approx(1.0)
    assert dead_atoms(np.array([[1.0, 0, 2, 0], [3, 0, 0, 0]])) == [1, 3]
    explicit = scipy.sparse.csr_array(([0.0, 1.0], [0, 1], [0, 2]), shape=(1, 2))
    assert dead_atoms(explicit) == [0]  # a stored zero is no use


@pytest.mark.parametrize("rank", [1, 3])
def test_effective_rank_counts_equal_singular_values(rank):
    D = np.eye(5)[:rank]
    assert effective_rank(np.vstack([np.eye(rank)] * 4), D) == pytest.approx(rank)
    assert effective_rank(np.zeros((4, rank)), D) == 0.0


def test_matches_are_one_to_one_and_gaps_count_zero():
    D = np.eye(3)
    assert matched_similarity(D, [D[[2, 0, 1]]]) == pytest.approx([1, 1, 1])
    assert matched_similarity(D, [D[:1]]) == pytest.approx([1, 0, 0])
    assert matched_similarity(D, [D, np.zeros((3, 3))]) == pytest.approx([0.5, 0.5, 0.5])


def test_r2_of_constant_data():
    ones = np.ones((4, 2))
    assert r2(ones, np.ones((4, 1)), np.ones((1, 2))) == 1.0
    assert r2(ones, np.zeros((4, 1)), np.ones((1, 2))) == 0.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("value", [1.0, 0.1, 1e6])
def test_r2_of_constant_data_is_judged_by_rounding(value, dtype):
    constant = np.full((50, 7), value, dtype)
    assert quality(NMF(1, random_state=0).fit(constant), constant).r2 == 1.0
    codes, D = np.full((50, 1), value, dtype), np.ones((1, 7), dtype)
    for factor, expected in [(1.0, 1.0), (1.0 + 4 * np.finfo(dtype).eps, 1.0), (0.999, 0.0)]:
        assert r2(constant, codes * dtype(factor), D) == expected
    # Little variance is not none.
    varied = value * (1.0 + 1e-9 * np.random.default_rng(0).standard_normal((50, 7)))
    assert r2(varied, np.ones((50, 1)), varied.mean(axis=0)[None]) == pytest.approx(0, abs=1e-3)
    assert r2(varied, varied, np.eye(7)) == 1.0


def test_tables():
    found = quality(learn(X, 8, Lasso(0.5), random_state=0), X)
    assert list(found.table["measure"])[:2] == ["cost", "held_out_cost"]
    assert "effective_rank" in repr(found)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: quality(3, X), TypeError, "model must be a fitted"),
        (lambda: quality(X, MODEL), TypeError, r"the model comes first, as in quality\(model, X\)"),
        (lambda: quality(NMF, X), TypeError, "got smalto.NMF: create and fit it first"),
        (lambda: quality("m.safetensors", X), TypeError, "load it first, with smalto.Model.load"),
        (
            lambda: quality(select(abs(X), 2, estimator=NMF, refit=False), X),
            TypeError,
            "give its best_model",
        ),
        (lambda: quality(MODEL, X[:, :5]), ValueError, "X has 5 features, but the atoms of the"),
        (lambda: quality(MODEL, X, held_out=X.T), ValueError, "held_out has 200 features, but"),
        (lambda: quality(MODEL, X, others=MODEL), TypeError, "others must be a list of models"),
        (lambda: quality(NMF(2).fit(abs(X)), X), ValueError, "Negative values"),
        (lambda: r2(X, np.ones((3, 2)), np.ones((2, 12))), ValueError, "do not fit together"),
        (lambda: effective_rank(np.ones((3, 2)), np.eye(3)), ValueError, "do not fit together"),
        (lambda: matched_similarity(X, []), ValueError, "at least one dictionary"),
        (lambda: matched_similarity(X, [np.eye(3)]), ValueError, r"others\[0\] has 3 features"),
        (lambda: coherence(np.full((2, 2), np.nan)), ValueError, "NaN"),
        (lambda: duplicate_atoms(X, 0.0), ValueError, "min_similarity must be in"),
    ],
)
def test_wrong_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
