"""Constraint sets in learning: feasible, sparse where they should be, and the same sweep."""

import naive
import numpy as np
import pytest
from problems import DTYPES, dictionary
from scipy import sparse

from smalto import DictionaryLearning, learn
from smalto.coders import Lasso
from smalto.constraints import Constraint, ElasticNetBall, FusedLassoBall, L2Ball, Simplex
from smalto.learners import SGD, Batch, Online
from smalto.learning.dictionary.sweep import sweep
from smalto.learning.memory.statistics import Stats

CONSTRAINTS = [
    L2Ball(),
    L2Ball(positive=True),
    ElasticNetBall(0.0),
    ElasticNetBall(0.3),
    ElasticNetBall(0.3, positive=True),
    FusedLassoBall(0.2, 0.3),
    FusedLassoBall(0.2, 0.3, positive=True),
    FusedLassoBall(0.0, 0.0),
    Simplex(),
]


def samples(seed=0, n=1500, m=24):
    """Piecewise constant bumps with noise: what sparse and smooth atoms are for."""
    rng = np.random.default_rng(seed)
    X = 0.05 * rng.standard_normal((n, m))
    for row in X:
        for _ in range(3):
            start = rng.integers(m - 5)
            row[start : start + 5] += rng.choice([-1.0, 1.0])
    return X


class Plain(Constraint):
    """Any constraint as a user's own: the sweep that is not compiled."""

    def __init__(self, constraint):
        self.inner = constraint

    def project(self, atom):
        self.inner.project(atom)

    def gauge(self, atom):
        return self.inner.gauge(atom)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("k", [1, 70])
def test_compiled_sweep_is_the_plain_one(constraint, k):
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((4 * k, k)) * (rng.random((4 * k, k)) < 0.4)
    A, B = naive.statistics(codes, rng.standard_normal((4 * k, 30)))
    D0 = dictionary(rng, k, 30)
    for atom in D0:
        constraint.project(atom)
    expected = naive.sweep(D0, A, B, constraint.project)
    for version in (constraint, Plain(constraint)):
        D = D0.copy()
        change = sweep(D, (Stats(A, B),), version, 2)
        np.testing.assert_allclose(D, expected, atol=1e-9)
        difference = naive.surrogate(D, A, B) - naive.surrogate(D0, A, B)
        assert change == pytest.approx(difference, rel=1e-8, abs=1e-9)
        assert change <= 1e-12  # each atom goes to the best point of its set


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_learning_stays_in_the_set_and_lowers_the_cost(constraint, dtype):
    X = samples().astype(dtype)
    positive = isinstance(constraint, Simplex) or getattr(constraint, "positive", False)
    result = learn(
        np.abs(X) if positive else X, 30, Lasso(0.1), constraint, Online(100), max_epochs=3,
        validation=np.abs(X[:300]) if positive else X[:300], random_state=0,
    )  # fmt: skip
    assert max(constraint.gauge(atom) for atom in result.D) <= 1 + 1e-5
    assert result.D.dtype == dtype
    assert result.history[-1].test_cost < result.history[0].test_cost
    if positive:
        assert result.D.min() >= 0


@pytest.mark.parametrize(
    "learner",
    [Online(100), Online(100, memory="replace"), Batch(), SGD(5.0, 500.0, 100)],
    ids=str,
)
def test_every_learner_takes_every_set(learner):
    for constraint in (ElasticNetBall(0.3), FusedLassoBall(0.2, 0.2)):
        result = learn(
            samples(n=500), 20, Lasso(0.1), constraint, learner, max_epochs=2, random_state=0
        )
        assert max(constraint.gauge(atom) for atom in result.D) <= 1 + 1e-9


def test_gamma_zero_is_the_ball():
    X = samples(n=500)
    settings = {"learner": Online(100), "max_epochs": 2, "random_state": 0}
    ball = learn(X, 20, Lasso(0.1), L2Ball(), **settings).D
    for constraint in (ElasticNetBall(0.0), FusedLassoBall(0.0, 0.0)):
        np.testing.assert_allclose(
            learn(X, 20, Lasso(0.1), constraint, **settings).D, ball, atol=1e-8
        )


@pytest.mark.parametrize("wanted", [0.7, 0.3, 0.1])
@pytest.mark.parametrize("kind", [ElasticNetBall, FusedLassoBall])
def test_a_wanted_density_is_reached(kind, wanted):
    settings = {"gamma2": 0.02} if kind is FusedLassoBall else {}
    result = learn(
        samples(n=3000), 30, Lasso(0.1), kind(density=wanted, **settings), Online(100), max_epochs=5,
        random_state=0,
    )  # fmt: skip
    zeros = np.mean(result.D != 0)
    assert zeros == pytest.approx(wanted, rel=0.12)
    assert result.history[-1].density == pytest.approx(zeros, rel=0.05)
    constraint = result.state.constraint
    assert max(constraint.gauge(atom) for atom in result.D) <= 1 + 1e-9
    assert result.sparse_D.nnz == np.count_nonzero(result.D)


def test_a_run_with_a_density_resumes_bit_for_bit():
    X, constraint = samples(n=600), ElasticNetBall(density=0.3)
    settings = {"learner": Online(50), "random_state": 0}
    whole = learn(X, 20, Lasso(0.05), constraint, max_steps=20, **settings)
    part = learn(X, 20, Lasso(0.05), constraint, max_steps=7, **settings)
    rest = learn(X, 20, Lasso(0.05), constraint, max_steps=20, state=part.state)
    assert np.array_equal(whole.D, rest.D)
    with pytest.raises(ValueError, match=r"state was created with constraint=ElasticNetBall"):
        learn(X, 20, Lasso(0.05), ElasticNetBall(density=0.2), max_steps=20, state=part.state)


def test_fused_atoms_have_few_jumps():
    X = samples()
    settings = {"learner": Online(100), "max_epochs": 3, "random_state": 0}
    rough = learn(X, 30, Lasso(0.1), ElasticNetBall(0.2), **settings).D
    fused = learn(X, 30, Lasso(0.1), FusedLassoBall(0.2, 0.5), **settings).D

    def jumps(D):
        return np.mean(np.abs(np.diff(D, axis=1)) > 1e-9)

    assert jumps(fused) < 0.6 * jumps(rough)


def test_the_estimator_takes_them_and_gives_csr():
    model = DictionaryLearning(
        20, coder=Lasso(0.1), constraint=ElasticNetBall(density=0.3), learner=Online(100), max_epochs=3,
        random_state=0,
    ).fit(samples())  # fmt: skip
    components = model.sparse_components_
    assert isinstance(components, sparse.csr_array)
    np.testing.assert_array_equal(components.toarray(), model.components_)
    assert components.nnz / model.components_.size == pytest.approx(0.3, rel=0.15)
    assert model.transform(samples()[:5]).shape == (5, 20)
    model.partial_fit(samples(1)[:64])
    assert max(model.state_.constraint.gauge(atom) for atom in model.components_) <= 1 + 1e-9


class Wrong(Constraint):
    def __init__(self, project):
        self._project = project

    def project(self, atom):
        return self._project(atom)

    def gauge(self, atom):
        return float(np.linalg.norm(atom))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ElasticNetBall(-1), ValueError, "gamma must be >= 0, got -1"),
        (lambda: ElasticNetBall(np.inf), ValueError, "gamma must be finite, got inf"),
        (lambda: FusedLassoBall(0.1, np.inf), ValueError, "gamma2 must be finite, got inf"),
        (lambda: ElasticNetBall(0.0, density=0.5), ValueError, r"gamma \(with a density\) must"),
        (lambda: FusedLassoBall(1e300, density=0.5), ValueError, "gamma1 .* got 1e\\+300"),
        (lambda: ElasticNetBall(), ValueError, "gamma and density are both None"),
        (lambda: ElasticNetBall(density=0), ValueError, "density must be"),
        (lambda: ElasticNetBall(density=1.5), ValueError, r"density must be in \(0, 1\], got 1.5"),
        (lambda: FusedLassoBall(0.1, -2), ValueError, "gamma2 must be >= 0, got -2"),
        (lambda: FusedLassoBall(-0.1, 2), ValueError, "gamma1 must be >= 0, got -0.1"),
        (lambda: ElasticNetBall(density=0.3).gauge(np.ones(3)), ValueError, "not decided yet"),
        (
            lambda: learn(samples(n=100), 5, constraint=Wrong(lambda atom: None)),
            None,
            None,
        ),
        (
            lambda: learn(
                3 * samples(n=100),
                5,
                Lasso(0.1),
                Wrong(lambda atom: atom.__imul__(2.0) is None or None),
            ),
            ValueError,
            "Wrong.project left an atom outside the set: its gauge is 2",
        ),
        (
            lambda: learn(samples(n=100), 5, constraint=Wrong(lambda atom: atom[:3])),
            TypeError,
            "Wrong.project must change the atom in place and return None, but returned a ndarray",
        ),
    ],
)
def test_bad_input(make, error, message):
    if error is None:  # a set that lets everything be is caught as soon as an atom leaves it
        with pytest.raises(ValueError, match="left atom 0 outside"):
            make()
    else:
        with pytest.raises(error, match=message):
            make()


def test_constraints_are_final():
    with pytest.raises(
        TypeError, match="ZeroMean subclasses the constraint L2Ball: subclass Const"
    ):

        class ZeroMean(L2Ball):
            def project(self, atom):
                atom -= atom.mean()


def test_own_constraints_say_what_they_are():
    class Lonely:
        def project(self, atom): ...

        def gauge(self, atom): ...

    with pytest.raises(TypeError, match=r"must subclass smalto\.constraints\.Constraint"):
        learn(samples(n=100), 5, constraint=Lonely())
    with pytest.raises(TypeError, match=r"did you mean L2Ball\(\.\.\.\)"):
        learn(samples(n=100), 5, constraint=L2Ball)
