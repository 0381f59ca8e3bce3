"""Learning with groups: whole groups are drawn, held-out cost falls, nothing depends on threads."""

import itertools

import numpy as np
import pytest

from smalto import DictionaryLearning, encode, learn
from smalto.coders import JointLasso, JointOMP, Lasso, duality_gap
from smalto.coders.coding import code_rows, mean_cost
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals, as_groups, blocks, in_groups
from smalto.learners import Batch, Continuation, Online
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.initial_state import initial_state
from smalto.learning.run_settings import RunSettings

CODERS = [JointLasso(0.3), JointOMP(3), JointOMP(eps=0.05)]


def planted(n_groups=150, seed=0):
    """Groups of 1 to 8 signals out of three atoms each, interleaved; their labels are strings."""
    rng = np.random.default_rng(seed)
    atoms = np.random.default_rng(99).standard_normal((20, 16))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    X, labels = [], []
    for group in range(n_groups):
        size = rng.integers(1, 9)
        chosen = atoms[rng.choice(20, 3, replace=False)]
        X.append(rng.standard_normal((size, 3)) @ chosen + 0.03 * rng.standard_normal((size, 16)))
        labels += [f"group {group}"] * size
    order = rng.permutation(len(labels))
    return np.vstack(X)[order], np.array(labels)[order]


def cost(X, D, coder, labels):
    """The mean cost, from the definition."""
    codes = encode(X, D, coder, groups=labels).toarray()
    total = 0.5 * ((X - codes @ D) ** 2).sum()
    if isinstance(coder, JointLasso):
        total += sum(
            coder.lam * np.linalg.norm(codes[labels == label], axis=0).sum()
            for label in np.unique(labels)
        )
    return total / len(X)


@pytest.mark.filterwarnings("ignore:eps is out of reach")
@pytest.mark.parametrize("coder", CODERS, ids=repr)
def test_learning_lowers_the_held_out_cost(coder):
    X, labels = planted()
    test, test_labels = planted(60, seed=1)
    result = learn(
        X, 20, coder, groups=labels, validation=test, validation_groups=test_labels, max_epochs=4,
        random_state=0,
    )  # fmt: skip
    costs = [record.test_cost for record in result.history if record.test_cost is not None]
    if coder != CODERS[2]:  # under an error bound the cost counts the error, which is bounded
        assert costs[-1] < 0.9 * costs[0]
    assert costs[-1] == pytest.approx(cost(test, result.D, coder, test_labels), rel=1e-6)
    for threads in (1, 2):
        again = learn(
            X, 20, coder, groups=labels, max_epochs=4, random_state=0, n_threads=threads
        )  # fmt: skip
        np.testing.assert_array_equal(again.D, result.D)


@pytest.mark.filterwarnings("ignore:eps is out of reach")
@pytest.mark.parametrize("learner", [Batch(), Online(batch_size=32, memory="replace")], ids=repr)
@pytest.mark.parametrize("coder", [JointLasso(0.3), JointOMP(3)], ids=repr)
def test_learners(coder, learner):
    X, labels = planted(60)
    result = learn(X, 12, coder, None, learner, groups=labels, max_epochs=3, random_state=0)
    # From the second epoch on all samples are in the surrogate.
    surrogates = [record.surrogate for record in result.history if record.epoch > 0]
    assert surrogates[-1] < surrogates[0]
    if isinstance(coder, JointLasso) and not any(record.replaced for record in result.history):
        assert (np.diff(surrogates) <= 1e-9).all()  # exact codes: descent on the joint cost
    # What has been summed up is what the definition says.
    if isinstance(learner, Batch):
        first = learn(X, 12, coder, None, learner, groups=labels, max_steps=1, random_state=0)
        D = learn(X, 12, coder, None, learner, groups=labels, max_steps=0, random_state=0).D
        assert first.history[0].batch_cost == pytest.approx(cost(X, D, coder, labels), rel=1e-6)


def test_whole_groups_are_drawn():
    X, labels = planted()
    sizes = {label: (labels == label).sum() for label in np.unique(labels)}
    batches, state = started(X, labels, JointOMP(2), 40)
    assert batches.n_draws == len(sizes)
    seen, ended = [], False
    while not ended:
        batch = batches.draw(state, lambda: False)
        (block,) = batch.blocks
        ended = batch.ends_epoch
        assert len(block) == batch.n_samples == block.signals.groups[-1]
        if not ended:  # enough, and no group more than needed
            assert len(block) >= 40 > block.signals.groups[-2]
        np.testing.assert_array_equal(block.signals.X, X[block.numbers])
        pointers = block.signals.groups
        for a, b in itertools.pairwise(pointers):
            mine = set(labels[block.numbers[a:b]])
            assert len(mine) == 1
            assert sizes[mine.pop()] == b - a
        seen += block.numbers.tolist()
    assert batch.place == len(sizes)
    assert sorted(seen) == list(range(len(X)))
    # A batch smaller than a group is that group.
    batches, state = started(X, labels, JointOMP(2), 1)
    batch = batches.draw(state, lambda: False)
    assert batch.place == 1
    assert batch.n_samples in sizes.values()


def started(X, labels, coder, size):
    """Batches of about ``size`` samples, at their beginning, and the state that says so."""
    batches = DatasetBatches.of(X, None, None, None, labels)
    settings = RunSettings.of(coder, None, Online(size))
    state = initial_state(batches, 10, settings, None, 3, 1)
    batches.start(state)
    return batches, state


def test_huge_groups_are_never_cut(monkeypatch):
    monkeypatch.setattr("smalto.learning.batches.samples.ROWS_AT_ONCE", 16)
    monkeypatch.setattr("smalto.learning.batches.dataset.ROWS_AT_ONCE", 16)
    monkeypatch.setattr("smalto.coders.coding.ROWS_AT_ONCE", 16)
    monkeypatch.setattr("smalto.coders.certificates._ROWS", 16)
    X, _ = planted(200)
    X = X[:400]
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(6), [200, 1, 9, 100, 1, 89]))
    coder = JointLasso(1.0)
    batches, state = started(X, labels, coder, 400)
    parts = [len(block) for block in batches.whole().blocks]
    assert parts == [200, 10, 100, 90]
    counts = [len(block) for block in batches.draw(state, lambda: False).blocks]
    assert sum(counts) == 400
    assert len(counts) > 1
    D = learn(X, 10, coder, groups=labels, max_steps=2, random_state=0).D
    signals, _ = in_groups(Signals(X), labels, coder)
    assert mean_cost(signals, D, coder, 1) == pytest.approx(cost(X, D, coder, labels), rel=1e-6)
    codes = encode(X, D, coder, groups=labels)
    gap = duality_gap(X, D, codes, coder, groups=labels)
    assert len(gap) == 400
    assert gap.max() <= 1e-8
    coded = code_rows(signals, prepare(D, coder, 1), None, 2)
    assert len(coded.fit) == 400


def test_blocks_and_groups():
    assert blocks(0, 4) == []
    assert blocks(5, 4) == [slice(0, 4), slice(4, 5)]
    assert blocks(5, 4, np.array([0, 1, 5])) == [slice(0, 5)]
    assert blocks(9, 4, np.array([0, 6, 7, 9])) == [slice(0, 6), slice(6, 9)]
    pointers, order = as_groups(["b", "a", "b"], 3)
    np.testing.assert_array_equal(pointers, [0, 1, 3])
    np.testing.assert_array_equal(order, [1, 0, 2])
    assert as_groups([1, 1, 2], 3)[1] is None
    signals = Signals(np.zeros((7, 2)), groups=np.array([0, 2, 3, 7]))
    np.testing.assert_array_equal(signals.part(slice(2, 7)).groups, [0, 1, 5])
    np.testing.assert_array_equal(signals.part(slice(0, 3)).groups, [0, 2, 3])


def test_weights_of_groups():
    X, labels = planted(80)
    names, numbers = np.unique(labels, return_inverse=True)
    weights = np.random.default_rng(0).integers(0, 3, len(names))[numbers].astype(float)
    settings = {"max_epochs": 3, "random_state": 0}
    learner = Batch()
    first = learn(X, 8, JointLasso(0.3), max_steps=0, groups=labels, random_state=0).D
    weighted = learn(
        X, 8, JointLasso(0.3), None, learner, groups=labels, sample_weight=weights, init=first,
        **settings,
    )  # fmt: skip
    # As if each group were there as often as its weight says.
    copies = [np.flatnonzero(weights > number) for number in range(2)]
    many = np.concatenate([np.char.add(labels[rows], f" {i}") for i, rows in enumerate(copies)])
    repeated = learn(
        X[np.concatenate(copies)], 8, JointLasso(0.3), None, learner, groups=many, init=first,
        **settings,
    )  # fmt: skip
    np.testing.assert_allclose(weighted.D, repeated.D, atol=1e-6)
    uneven = weights.copy()
    uneven[np.flatnonzero(numbers == numbers[0])] = np.arange((numbers == numbers[0]).sum())
    if (numbers == numbers[0]).sum() == 1:
        pytest.fail("the first group has one signal: no weights differ in it")
    with pytest.raises(ValueError, match=r"the same for all samples of a group, got 0\.0 and 1\.0"):
        learn(X, 8, JointLasso(0.3), groups=labels, sample_weight=uneven)


def test_estimator():
    X, labels = planted(80)
    model = DictionaryLearning(10, coder=JointLasso(0.3), random_state=0)
    model.fit(X, groups=labels, validation=X, validation_groups=labels)
    codes = model.transform(X, groups=labels)
    np.testing.assert_array_equal(
        codes, encode(X, model.components_, JointLasso(0.3), groups=labels).toarray()
    )
    expected = -cost(X, model.components_, JointLasso(0.3), labels)
    assert model.score(X, groups=labels) == pytest.approx(expected, rel=1e-6)
    before = model.score(X, groups=labels)
    for _ in range(3):
        model.partial_fit(X, groups=labels)
    assert model.score(X, groups=labels) > before


def test_a_run_goes_on_bit_for_bit():
    X, labels = planted(80)
    whole = learn(X, 10, JointOMP(2), groups=labels, max_steps=6, random_state=0)
    half = learn(X, 10, JointOMP(2), groups=labels, max_steps=3, random_state=0)
    rest = learn(X, 10, groups=labels, state=half.state, max_steps=6)
    np.testing.assert_array_equal(whole.D, rest.D)


def test_continuation():
    coder = Continuation(start=0.1, steps=10).at(JointLasso(2.0, by_size=True), 0)
    assert coder == JointLasso(0.2, by_size=True)


def test_bad_input():
    X, labels = planted(20)
    with pytest.raises(ValueError, match="JointLasso needs groups: a label for each sample"):
        learn(X, 5, JointLasso(0.1))
    with pytest.raises(ValueError, match="JointOMP needs validation_groups"):
        learn(X, 5, JointOMP(2), groups=labels, validation=X)
    with pytest.raises(ValueError, match="Lasso codes each signal by itself"):
        learn(X, 5, Lasso(0.1), groups=labels)
    with pytest.raises(ValueError, match="one label for each of the"):
        learn(X, 5, JointOMP(2), groups=labels[:-1])
    with pytest.raises(ValueError, match="mask must have the shape of the signals"):
        learn(X, 5, JointOMP(2), groups=labels, mask=X[:, :3] > 1)


@pytest.mark.filterwarnings("ignore:eps is out of reach")
@pytest.mark.parametrize("coder", CODERS, ids=repr)
def test_learning_with_missing_entries(coder):
    X, labels = planted(50)
    holes = np.random.default_rng(3).random(X.shape) < 0.2
    settings = {"groups": labels, "max_epochs": 2, "random_state": 0}
    result = learn(X, 20, coder, mask=holes, **settings)
    damaged = np.where(holes, np.nan, X)
    for threads in (1, 2):
        again = learn(damaged, 20, coder, missing="nan", n_threads=threads, **settings)
        np.testing.assert_array_equal(again.D, result.D)
    codes = encode(damaged, result.D, coder, missing="nan", groups=labels)
    lost = np.where(holes, 0.0, X - codes @ result.D)
    if coder == CODERS[2]:  # the error is bounded
        numbers = np.unique(labels, return_inverse=True)[1]
        errors = np.bincount(numbers, (lost**2).sum(axis=1)) / np.bincount(numbers)
        assert errors.max() <= 0.05 * (1 + 1e-9)
    else:
        first = encode(damaged, X[:20], coder, missing="nan", groups=labels)
        assert (lost**2).sum() < 0.7 * ((X - first @ X[:20])[~holes] ** 2).sum()
    model = DictionaryLearning(20, coder=coder, missing="nan", max_epochs=2, random_state=0)
    model.fit(damaged, groups=labels)
    np.testing.assert_array_equal(model.components_, result.D)
