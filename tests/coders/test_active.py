"""The active set and its inverse Cholesky factor, against NumPy's."""

import naive
import numpy as np
import pytest
from problems import DTYPES, dictionary

from smalto.kernels.coding.active_set import (
    GATHERED,
    INVERSE,
    TARGET,
    Y,
    append,
    capacity,
    correlations,
    make_active_set,
    remove,
    weights_of_dependent,
)


def check(active, s, G, b):
    """Factor, y and target are those of the atoms in the set."""
    atoms, work = active
    stride = len(atoms)
    chosen = atoms[:s]
    assert len(set(chosen.tolist())) == s
    expected = naive.inverse_factor(G[np.ix_(chosen, chosen)]) if s else np.zeros((0, 0))
    rows = work[INVERSE * stride :].reshape(-1, stride)[:s]
    # Rows may differ in sign from NumPy's factor after removals; what they give may not.
    np.testing.assert_allclose(
        rows[:, :s].T @ rows[:, :s], expected.T @ expected, rtol=1e-6, atol=1e-9
    )
    for i in range(s):
        assert np.all(rows[i, i + 1 : i // 8 * 8 + 8] == 0)
    target = work[TARGET * stride :][:s]
    solution = np.linalg.solve(G[np.ix_(chosen, chosen)], b[chosen]) if s else np.zeros(0)
    np.testing.assert_allclose(target, solution, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        rows[:, :s] @ b[chosen], work[Y * stride :][:s], rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(5))
def test_any_sequence_of_joining_and_leaving(seed, dtype):
    rng = np.random.default_rng(seed)
    k, width = 30, 32
    D = np.zeros((width, 40))
    D[:k] = dictionary(rng, k, 40, correlated=0.5)
    G = (D @ D.T).astype(dtype)
    b = rng.standard_normal(width)
    active = make_active_set(k)
    assert capacity(active) >= k
    s = 0
    for _ in range(150):
        free = sorted(set(range(k)) - set(active.atoms[:s].tolist()))
        if free and (s == 0 or rng.random() < 0.6):
            j = int(rng.choice(free))
            assert append(G.reshape(-1), width, active, s, j, b[j], 1e-12)
            s += 1
        else:
            remove(active, s, int(rng.integers(s)))
            s -= 1
        check(active, s, G.astype(float), b)


def test_a_dependent_atom_is_refused_and_explained():
    rng = np.random.default_rng(0)
    D = np.zeros((16, 10))
    D[:6] = dictionary(rng, 6, 10)
    weights = rng.standard_normal(5)
    D[6] = weights @ D[:5]
    G = D @ D.T
    active = make_active_set(10)
    atoms, work = active
    for s, j in enumerate([3, 0, 4, 1, 2]):
        assert append(G.reshape(-1), 16, active, s, j, 1.0, 1e-12)
    before = work[: INVERSE * len(atoms)].copy()
    assert not append(G.reshape(-1), 16, active, 5, 6, 1.0, 1e-12)
    weights_of_dependent(active, 5)
    found = work[GATHERED * len(atoms) :][:5]
    np.testing.assert_allclose(found, weights[atoms[:5]], atol=1e-9)
    assert np.array_equal(before[: len(atoms)], work[: len(atoms)])  # y is as it was


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("s", range(26))
def test_correlations(s, positive, dtype):
    rng = np.random.default_rng(s)
    width = 48
    G = rng.standard_normal((width, width)).astype(dtype)
    q = rng.standard_normal(3 * width).astype(dtype)
    atoms = rng.permutation(width)[:s]
    coefficients = rng.standard_normal(s).astype(dtype)
    buffer = np.concatenate([np.empty(width, dtype), coefficients])
    top = correlations(G.reshape(-1), width, q, width, np.append(atoms, 0), s, positive, buffer)
    expected = q[width : 2 * width] - coefficients @ G[atoms]
    np.testing.assert_allclose(
        buffer[:width], expected, atol=1e-5 if dtype == np.float32 else 1e-13
    )
    largest = buffer[:width].max() if positive else np.abs(buffer[:width]).max()
    assert top == max(largest, 0.0)
