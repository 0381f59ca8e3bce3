"""Masked arrays keep their mask, or are refused; matrices are arrays."""

import numpy as np
import pytest

from smalto import NMF, DictionaryLearning, SparsePCA, encode, lasso_path, learn
from smalto.choosing import r2
from smalto.coders import Lasso
from smalto.projections import project_l1_ball

rng = np.random.default_rng(0)
X, HIDDEN = np.abs(rng.standard_normal((60, 8))), rng.random((60, 8)) < 0.2
HIDDEN[0, 0] = True
D = X[:3]
CODER = Lasso(0.1)


def masked(value):
    return np.ma.MaskedArray(np.where(HIDDEN, value, X), HIDDEN)


@pytest.mark.parametrize(
    "result",
    [
        lambda x: DictionaryLearning(3, coder=CODER, random_state=0).partial_fit(x).components_,
        lambda x: NMF(3, random_state=0).partial_fit(x).components_,
        lambda x: (
            DictionaryLearning(3, coder=CODER, random_state=0)
            .fit(X, validation=x)
            .history_[-1]
            .test_cost
        ),
    ],
    ids=["DictionaryLearning.partial_fit", "NMF.partial_fit", "validation"],
)
def test_what_a_masked_array_hides_is_not_looked_at(result):
    np.testing.assert_array_equal(result(masked(0.0)), result(masked(50.0)))


def test_partial_fit_takes_both_masks():
    one, other = HIDDEN & (np.arange(8) < 4), HIDDEN & (np.arange(8) >= 4)
    model = DictionaryLearning(3, coder=CODER, random_state=0)
    expected = model.partial_fit(X, mask=HIDDEN).components_
    again = DictionaryLearning(3, coder=CODER, random_state=0)
    again.partial_fit(np.ma.MaskedArray(X, one), mask=other)
    np.testing.assert_array_equal(again.components_, expected)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: learn(iter([X, x]), 3, CODER),
        lambda x: learn(X, 3, CODER, init=x[:3]),
        lambda x: encode(X, x[:3], CODER),
        lambda x: encode(X, X[:8], CODER, penalty_weights=x[0]),
        lambda x: learn(X, 3, CODER, sample_weight=x[:, 0]),
        lambda x: lasso_path(x[0], D),
        lambda x: project_l1_ball(x, 1.0),
        lambda x: r2(x, np.ones((60, 3)), D),
        lambda x: SparsePCA(2, random_state=0).fit(X, validation=x),
    ],
    ids=[
        "stream",
        "init",
        "D",
        "penalty_weights",
        "sample_weight",
        "lasso_path",
        "projection",
        "r2",
        "SparsePCA",
    ],
)
def test_a_mask_that_would_be_lost_is_refused(use):
    with pytest.raises(TypeError, match=r"is a masked array.*filled\(numpy.nan\)"):
        use(masked(0.0))
    use(np.ma.MaskedArray(X))  # nothing is masked


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_are_arrays():
    x, d = np.asmatrix(X), np.asmatrix(D)
    np.testing.assert_array_equal(encode(x, d, CODER).toarray(), encode(X, D, CODER).toarray())
    settings = {"coder": CODER, "random_state": 0, "max_epochs": 2}
    first = learn(x, 3, init=d, validation=x, **settings)
    second = learn(X, 3, init=D, validation=X, **settings)
    np.testing.assert_array_equal(first.D, second.D)
    assert first.history[-1].test_cost == second.history[-1].test_cost
