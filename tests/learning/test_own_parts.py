"""Constraints, coders, learners, callbacks and sources of a user's own that go wrong.

The error names them, and models and states stay as they were.
"""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from smalto import NMF, DictionaryLearning, encode, learn
from smalto.coders import Coder, Lasso
from smalto.coders.codes import Codes
from smalto.constraints import Constraint
from smalto.estimators.sparse_pca import _signed
from smalto.learners import SGD, Learner, Online
from smalto.learning.memory.statistics import Stats
from smalto.sources import Source

X = np.random.default_rng(0).standard_normal((300, 12))
CODER = Lasso(0.3)


class Bad(ArithmeticError):
    """The error of a part that raises."""


@dataclass(frozen=True)
class OwnBall(Constraint):
    """The ℓ2 ball, which goes wrong when it has projected some atoms."""

    fault: str
    counts: list

    def project(self, atom):
        self.counts.append(1)
        atom /= max(1.0, float(np.linalg.norm(atom)))
        if len(self.counts) > 40:
            if self.fault == "raises":
                raise Bad
            atom[2] = {"NaN": np.nan, "infinity": np.inf, "huge": 1e170}[self.fault]

    def gauge(self, atom):
        return 1.0  # says nothing of NaN


@pytest.mark.parametrize("learner", [Online(50), SGD(batch_size=50)])
@pytest.mark.parametrize("fault", ["NaN", "infinity"])
def test_a_constraint_that_writes_nan_is_named(fault, learner):
    with pytest.raises(ValueError, match=r"OwnBall.project wrote NaN or infinity into atom \d"):
        learn(X, 8, CODER, OwnBall(fault, []), learner, random_state=0)


def test_a_constraint_that_writes_huge_atoms_is_named():
    with pytest.raises(
        ValueError, match=r"OwnBall.project left atom \d with values of 1e\+170, more"
    ):
        learn(X, 8, CODER, OwnBall("huge", []), Online(50), random_state=0)


def test_a_constraint_that_writes_nan_is_named_by_nmf():
    with pytest.raises(ValueError, match=r"OwnBall.project wrote NaN or infinity into atom \d"):
        NMF(4, lam=0.1, constraint=OwnBall("NaN", []), random_state=0).fit(np.abs(X))


def test_a_constraint_that_raises_is_named():
    with pytest.raises(Bad) as caught:
        learn(X, 8, CODER, OwnBall("raises", []), Online(50), random_state=0)
    assert any("the constraint OwnBall, for atom" in note for note in caught.value.__notes__)


@dataclass(frozen=True)
class OwnGauge(Constraint):
    """A set whose gauge raises."""

    def project(self, atom):
        pass

    def gauge(self, atom):
        raise Bad


def test_a_gauge_that_raises_is_named():
    D = np.array([[-0.6, 0.8, -0.9]])
    with pytest.raises(Bad) as caught:
        _signed(D, OwnGauge(), may_flip=True)
    assert "It came from OwnGauge.gauge." in caught.value.__notes__


@dataclass(frozen=True)
class OwnCoder(Coder):
    """Codes of one coefficient each, with a fault."""

    fault: str = ""
    factor: float = 1.0

    def solver(self, G):
        def solve(chunk):
            n = len(chunk.Q)
            indptr, indices = np.arange(n + 1), np.argmax(np.abs(chunk.Q), axis=1).astype(np.int32)
            values = self.factor * chunk.Q[np.arange(n), indices]
            match self.fault:
                case "raises":
                    raise Bad
                case "NaN":
                    values[0] = np.nan
                case "far":
                    indices[0] = 10**6
                case "padding":
                    indices[0] = chunk.Q.shape[1] - 1
                case "negative":
                    indices[0] = -1
                case "short":
                    return Codes(indptr, indices[:-1], values[:-1])
                case "falling":
                    indptr[1] = 50
                case "rows":
                    indptr = indptr[:-1]
                case "kind":
                    return values
                case "objects":
                    values = values.astype(object)
                case "twice":
                    return Codes(2 * indptr, np.repeat(indices, 2), np.repeat(values, 2))
            return Codes(indptr, indices, values)

        return solve

    def penalty(self, codes, groups=None):
        match self.fault:
            case "penalty raises":
                raise Bad
            case "penalty shape":
                return np.zeros(3)
            case "penalty NaN":
                return np.full(codes.shape[0], np.nan)
        return np.zeros(codes.shape[0])


OWN_FAULTS = ["NaN", "far", "padding", "negative", "short", "falling", "rows", "kind", "objects"]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("fault", [*OWN_FAULTS, "twice"])
def test_a_coder_that_returns_nonsense_is_named(fault, masked):
    D, mask = np.eye(12)[:10], X[:20] > 1 if masked else None
    with pytest.raises((ValueError, TypeError), match="the solver of OwnCoder"):
        encode(X[:20], D, OwnCoder(fault), mask=mask)


@pytest.mark.parametrize("masked", [False, True])
def test_a_coder_that_raises_is_named(masked):
    with pytest.raises(Bad) as caught:
        encode(X[:20], np.eye(12), OwnCoder("raises"), mask=X[:20] > 1 if masked else None)
    assert "It came from OwnCoder.solver." in caught.value.__notes__


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("factor", [3.0, 1e8])
def test_codes_of_a_heuristic_are_taken_as_they_are(factor, masked):
    """Also those that are worse than zero codes, whose author knows what they are for."""
    D, mask = np.eye(12), X[:20] > 1 if masked else None
    codes = encode(X[:20], D, OwnCoder(factor=factor), mask=mask)
    plain = encode(X[:20], D, OwnCoder(), mask=mask)
    np.testing.assert_array_equal(codes.toarray(), factor * plain.toarray())


def test_a_coder_that_does_right_is_not_disturbed():
    codes = encode(X[:20], np.eye(12), OwnCoder())
    assert np.array_equal(codes.indices, np.argmax(np.abs(X[:20]), axis=1))
    assert learn(X, 8, OwnCoder(), random_state=0).D.shape == (8, 12)


@pytest.mark.parametrize("fault", ["shape", "NaN"])
def test_a_penalty_that_is_none_is_named(fault):
    with pytest.raises(ValueError, match=r"OwnCoder.penalty"):
        learn(X, 8, OwnCoder(f"penalty {fault}"), random_state=0)


@dataclass(frozen=True)
class OwnProducts(Coder):
    """Codes that are the products of signals and atoms themselves, not a copy of them."""

    def solver(self, G):
        def solve(chunk):
            n, k = chunk.Q.shape
            return Codes(k * np.arange(n + 1), np.tile(np.arange(k), n), chunk.Q.reshape(-1))

        return solve

    def penalty(self, codes, groups=None):
        return np.zeros(codes.shape[0])


def test_own_coder_may_keep_what_it_is_given():
    D = np.random.default_rng(1).standard_normal((16, 12))  # no padding
    for n_threads in (1, 2):
        codes = encode(X, D, OwnProducts(), n_threads=n_threads)
        np.testing.assert_allclose(codes.toarray(), X @ D.T)


@dataclass(frozen=True)
class OwnLearner(Learner):
    """A learner that does nothing, but in its third step something wrong."""

    fault: str

    def rows_per_step(self, n_rows):
        return {"no rows": 0, "half a row": 0.5}.get(self.fault, 50)

    def begin(self, D, n_rows):
        return (Stats.zeros(*D.shape),), None

    def forget(self, state, n_new):
        pass

    def learn_from(self, state, new, numbers, n_threads):
        pass

    def update(self, state, n_new, n_threads):
        if state.step == 2:
            match self.fault:
                case "raises":
                    raise Bad
                case "NaN":
                    state.D[3, 1] = np.nan
                case "NaN in sums":
                    state.stats[0].A[3, 1] = np.nan
                case "shape":
                    state.D = state.D[:, :-1]
                case "dtype":
                    state.D = state.D.astype(np.float32)
                case "kind":
                    state.D = state.D.tolist()


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("NaN", "OwnLearner.update wrote NaN or infinity into atom 3"),
        ("NaN in sums", "OwnLearner wrote NaN or infinity into the statistics"),
        ("shape", r"OwnLearner.update must leave the dictionary float64 of shape \(8, 12\)"),
        ("dtype", "OwnLearner.update must leave .* got float32"),
        ("kind", "OwnLearner.update must leave .* got list"),
    ],
)
def test_a_learner_that_spoils_the_dictionary_is_named(fault, says):
    with pytest.raises(ValueError, match=says):
        learn(X, 8, CODER, learner=OwnLearner(fault), random_state=0)
    model = DictionaryLearning(8, coder=CODER, learner=OwnLearner(fault), random_state=0)
    model.partial_fit(X[:50]).partial_fit(X[50:100])
    before = pickle.dumps((model.components_, model.state_.step, model.state_.D))
    with pytest.raises(ValueError, match=says):
        model.partial_fit(X[100:150])
    assert pickle.dumps((model.components_, model.state_.step, model.state_.D)) == before


@pytest.mark.parametrize("data", [X, lambda epoch: iter([X[:100], X[100:]])])
@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [("no rows", ValueError, ">= 1, got 0"), ("half a row", TypeError, "integer, got 0.5")],
)
def test_a_learner_that_draws_nothing_is_named(fault, error, says, data):
    with pytest.raises(error, match=f"samples that OwnLearner draws must be (an )?{says}"):
        learn(data, 8, CODER, learner=OwnLearner(fault), random_state=0)


def test_a_learner_that_raises_is_named():
    with pytest.raises(Bad) as caught:
        learn(X, 8, CODER, learner=OwnLearner("raises"), random_state=0)
    assert "It came from OwnLearner.update." in caught.value.__notes__


def _spoil(state, record):
    if state.step == 2:
        state.D[5] = np.nan


def _raise(state, record):
    if state.step == 2:
        raise Bad


def _spoil_sums(state, record):
    if state.step == 2:
        state.stats[-1].B[5, 0] = np.inf


def _spoil_weight(state, record):
    if state.step == 2:
        state.stats[0].weight = np.nan


def _lengthen(state, record):
    if state.step == 2:
        state.D[5] *= 3.0


SAYS = {
    _spoil: "_spoil wrote NaN .* into atom 5",
    _spoil_sums: "_spoil_sums wrote NaN or infinity into the statistics",
    _spoil_weight: "_spoil_weight wrote NaN or infinity into the statistics",
    _lengthen: r"_lengthen left atom 5 outside the set L2Ball\(.*\): its gauge is 3",
    _raise: None,
}


@pytest.mark.parametrize("callback", SAYS)
def test_a_callback_that_fails_is_named_and_the_model_stays(callback):
    settings = {"coder": CODER, "learner": Online(50), "random_state": 0}
    model = DictionaryLearning(8, callbacks=[callback], **settings).partial_fit(X[:50])
    before = model.components_.copy()
    error, says = Bad if callback is _raise else ValueError, SAYS[callback]
    with pytest.raises(error, match=says) as caught:
        model.partial_fit(X[50:100])
    assert any(callback.__name__ in text for text in [str(caught.value), *caught.value.__notes__])
    assert np.array_equal(model.components_, before)
    assert model.state_.step == 1 == len(model.history_)
    resumed = learn(X, 8, max_steps=1, **settings).state
    D = resumed.D.copy()
    with pytest.raises(error):
        learn(X, 8, state=resumed, max_steps=4, callbacks=[callback])
    assert np.array_equal(resumed.D, D)


def test_a_callback_may_change_atoms_within_their_set():
    def halve(state, record):
        state.D *= 0.5

    learn(X, 8, CODER, learner=Online(50), callbacks=[halve], random_state=0)


class OwnSource(Source):
    """Rows of X, with a fault after some calls."""

    n_rows, n_features, dtype = 300, 12, np.dtype(np.float64)

    def __init__(self, fault):
        self.fault, self.calls = fault, 0

    def rows(self, numbers):
        self.calls += 1
        rows = X[numbers]
        if self.calls > 2:
            match self.fault:
                case "raises":
                    raise Bad
                case "NaN":
                    rows[1, 2] = np.nan
                case "few":
                    return rows[:-1]
                case "narrow":
                    return rows[:, :-1]
                case "text":
                    return rows.astype(str)
                case "float32":
                    return rows.astype(np.float32)
                case "None":
                    return None
        return rows


@pytest.mark.parametrize("fault", ["NaN", "few", "narrow", "text", "None"])
def test_a_source_that_returns_nonsense_is_named(fault):
    with pytest.raises((ValueError, TypeError), match=r"what OwnSource.rows returned"):
        learn(OwnSource(fault), 8, CODER, learner=Online(50), random_state=0)


def test_a_source_of_another_dtype_is_converted():
    sources = OwnSource("float32"), X
    runs = [learn(data, 8, CODER, learner=Online(50), random_state=0) for data in sources]
    np.testing.assert_allclose(runs[0].D, runs[1].D, atol=1e-5)


def test_a_source_that_raises_is_named():
    with pytest.raises(Bad) as caught:
        learn(OwnSource("raises"), 8, CODER, learner=Online(50), random_state=0)
    assert "It came from OwnSource.rows." in caught.value.__notes__
    assert caught.value.state.step == 1
