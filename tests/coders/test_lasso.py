"""The lasso coder: exact on everything, whatever the road to it."""

import json
from dataclasses import replace
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given
from problems import DEGENERATE, DTYPES, examples, ordinary, problems
from scipy import sparse

from smalto import encode, lasso_path
from smalto.coders import Lasso, wanted_nonzeros
from smalto.coders.chunks import Chunk
from smalto.coders.coding import code_rows
from smalto.coders.lasso import default_lam
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals

# Violation of optimality allowed, relative to lam + the size of the correlations.
TOLERANCE = {np.float32: 3e-5, np.float64: 1e-11}


def check_optimal(X, D, lam, codes, dtype, ridge=0.0, positive=False):
    # Against the numbers the coder has seen: those rounded to its dtype.
    X, D = X.astype(dtype).astype(float), D.astype(dtype).astype(float)
    codes = codes.toarray() if sparse.issparse(codes) else codes
    # Rounding is relative to the terms of a correlation, not to what is left when they cancel.
    correlations = (np.abs(X) @ np.abs(D).T).max(axis=1, initial=0.0)
    scale = lam + correlations + np.abs(codes).sum(1) * np.abs(D @ D.T).max()
    violation = naive.lasso_violation(X, D, codes, lam, ridge, positive)
    assert np.all(violation <= TOLERANCE[dtype] * scale + 1e-300)
    if positive:
        assert codes.min(initial=0.0) >= 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.999, 1.5])
@pytest.mark.parametrize("positive", [False, True])
def test_optimal_on_degenerate_problems(name, dtype, share, positive):
    X, D = DEGENERATE[name]
    lam = share * float(np.abs(X @ D.T).max()) if np.any(X) else share
    with np.errstate(all="raise"):
        codes = _quiet_encode(X.astype(dtype), D.astype(dtype), Lasso(lam, positive=positive))
    assert codes.dtype == dtype
    check_optimal(X, D, lam, codes, dtype, positive=positive)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6, 1e-8])
def test_optimal_with_atoms_that_nearly_coincide(distance, dtype):
    # Without regularisation such atoms have no stable solution; with it they must not disturb.
    rng = np.random.default_rng(0)
    X, D = ordinary(n=30)
    D = np.vstack([D, D[:12] + distance * rng.standard_normal((12, 16))])
    codes = encode(X.astype(dtype), D.astype(dtype), Lasso(0.05))
    check_optimal(X, D, 0.05, codes, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("slack", [0.03, 0.3])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_rough_codes_are_optimal_for_their_atoms_and_nearly_so_for_all(
    slack, positive, ridge, dtype
):
    X, D = ordinary(n=200, k=60)
    lam, coder = 0.1, Lasso(0.1, ridge=ridge, positive=positive)
    signals, prepared = Signals(X.astype(dtype)), prepare(D.astype(dtype), coder, 1, slack)
    coded = code_rows(signals, prepared, None, 1)
    codes = coded.codes.as_csr(60).toarray().astype(float)
    X, D = X.astype(dtype).astype(float), D.astype(dtype).astype(float)
    violation = naive.lasso_violation(X, D, codes, lam, ridge, positive)
    assert (violation <= slack * lam * (1 + 1e-4)).all()
    assert violation.max() > 0.1 * slack * lam  # they are not exact
    left = X - codes @ D
    gradient = left @ D.T - ridge * codes - lam * np.sign(codes)
    assert np.abs(gradient[codes != 0]).max() < 1e-4 * lam
    if positive:
        assert codes.min() >= 0
    # The bound on the duality gap bounds what is lost.
    exact = encode(X, D, coder).toarray()
    sizes, squares = np.abs(codes).sum(axis=1), (left * left).sum(axis=1)
    lost = _objective(X, D, codes, lam, ridge) - _objective(X, D, exact, lam, ridge)
    t = 1 / (1 + slack)
    augmented = squares + ridge * (codes * codes).sum(axis=1)
    bound = (1 - t) * lam * sizes + 0.5 * (1 - t) ** 2 * augmented
    assert (lost >= -1e-6).all()
    assert (lost <= bound + 1e-6).all()
    np.testing.assert_allclose(coded.fit, 0.5 * squares, atol=1e-5)


def _objective(X, D, codes, lam, ridge):
    left = X - codes @ D
    squares = (left * left).sum(axis=1) + ridge * (codes * codes).sum(axis=1)
    return 0.5 * squares + lam * np.abs(codes).sum(axis=1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_are_exact_in_spite_of_slack_where_rounding_may_matter(dtype):
    X, D = (array.astype(dtype) for array in ordinary(n=50, k=60))
    coder = Lasso(1e-7)
    both = [code_rows(Signals(X), prepare(D, coder, 1, slack), None, 1) for slack in (0.0, 0.5)]
    for exact, rough in zip(both[0].codes, both[1].codes, strict=True):
        np.testing.assert_array_equal(exact, rough)


def _quiet_encode(X, D, coder, **kwargs):
    """`encode` where all-zero codes are expected, without the warning about them."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "every code is zero")
        warnings.filterwarnings("ignore", ".*codes are not proven optimal")
        return encode(X, D, coder, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES)
@examples(150)
@given(problem=problems())
def test_optimal_on_any_problem(dtype, problem):
    X, D, lam, ridge, positive = problem
    coder = Lasso(lam, ridge=ridge, positive=positive)
    codes = _quiet_encode(X.astype(dtype), D.astype(dtype), coder)
    check_optimal(X, D, lam, codes, dtype, ridge, positive)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("lam", [0.02, 0.1, 0.3])
def test_agrees_with_coordinate_descent(lam, ridge, positive):
    X, D = ordinary(k=12)
    codes = encode(X, D, Lasso(lam, ridge=ridge, positive=positive)).toarray()
    expected = naive.lasso(X, D, lam, ridge, positive)
    np.testing.assert_allclose(codes, expected, atol=1e-9)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_duality_gap_is_rounding(ridge, positive):
    X, D = ordinary(n=50, k=64, m=32)
    codes = encode(X, D, Lasso(0.1, ridge=ridge, positive=positive)).toarray()
    gap = naive.lasso_gap(X, D, codes, 0.1, ridge, positive)
    assert np.all(np.abs(gap) < 1e-13)
    # The gap sees what is wrong: it is not zero by construction.
    assert naive.lasso_gap(X, D, 1.01 * codes, 0.1, ridge, positive).max() > 1e-6


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_active_sets_and_many_rows(dtype):
    # More atoms active than the first workspace holds, more nonzeros than the first output.
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((300, 260)), rng.standard_normal((240, 260))
    codes = encode(X.astype(dtype), D.astype(dtype), Lasso(0.5), n_threads=2)
    assert np.diff(codes.indptr).max() > 150
    check_optimal(X, D, 0.5, codes, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("positive", [False, True])
def test_warm_start_changes_nothing_but_time(dtype, positive):
    X, D = ordinary(n=40, k=48, m=24)
    X, D = X.astype(dtype), D.astype(dtype)
    coder = Lasso(0.1, positive=positive)
    cold = encode(X, D, coder).toarray()
    rng = np.random.default_rng(3)
    starts = {
        "solution": cold,
        "another lam": encode(X, D, Lasso(0.2, positive=positive)).toarray(),
        "nonsense": rng.standard_normal(cold.shape) * (rng.random(cold.shape) < 0.2),
        "dense": rng.standard_normal(cold.shape),
        "empty": np.zeros_like(cold),
    }
    for name, start in starts.items():
        warm = encode(X, D, coder, start=sparse.csr_array(start.astype(dtype))).toarray()
        np.testing.assert_allclose(
            warm, cold, atol=3e-5 if dtype == np.float32 else 1e-10, err_msg=name
        )


def test_same_bits_for_any_number_of_threads():
    X, D = ordinary(n=700, k=64, m=20)
    for dtype in DTYPES:
        one = encode(X.astype(dtype), D.astype(dtype), Lasso(0.1), n_threads=1)
        for threads in (2, 3):
            other = encode(X.astype(dtype), D.astype(dtype), Lasso(0.1), n_threads=threads)
            assert (one != other).nnz == 0
            assert np.array_equal(one.indices, other.indices)


def test_a_row_does_not_depend_on_the_others():
    X, D = ordinary(n=300, k=64, m=20)
    together = encode(X, D, Lasso(0.1)).toarray()
    alone = np.vstack([encode(X[i : i + 1], D, Lasso(0.1)).toarray() for i in range(0, 300, 37)])
    np.testing.assert_allclose(together[::37], alone, atol=1e-13)


def test_csr_rows_code_like_dense_ones():
    X, D = ordinary(n=200, k=32, m=40)
    X[np.abs(X) < 0.2] = 0.0
    dense = encode(X, D, Lasso(0.05)).toarray()
    for convert in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        np.testing.assert_allclose(encode(convert(X), D, Lasso(0.05)).toarray(), dense, atol=1e-12)
    # Entries stored twice are summed, as SciPy means them.
    twice = sparse.csr_array(X)
    twice = sparse.csr_array(
        (np.repeat(twice.data, 2) / 2, np.repeat(twice.indices, 2), 2 * twice.indptr),
        shape=X.shape,
    )
    np.testing.assert_allclose(encode(twice, D, Lasso(0.05)).toarray(), dense, atol=1e-12)


def test_output_is_canonical_csr():
    X, D = ordinary(n=150, k=50)
    codes = encode(X, D, Lasso(0.1))
    assert isinstance(codes, sparse.csr_array)
    assert codes.shape == (150, 50)
    assert codes.indices.dtype == np.int32
    for row in range(150):
        assert np.all(np.diff(codes.indices[codes.indptr[row] : codes.indptr[row + 1]]) > 0)
    assert np.all(codes.data != 0)


def test_inputs_are_left_alone():
    X, D = ordinary()
    start = sparse.csr_array(np.eye(20, 24))
    before = X.copy(), D.copy(), start.copy()
    for array in (X, D, start.data, start.indices):
        array.flags.writeable = False
    encode(X, D, Lasso(0.1, ridge=0.1), start=start)
    encode(np.asfortranarray(X), np.asfortranarray(D), Lasso(0.1))
    assert np.array_equal(X, before[0])
    assert np.array_equal(D, before[1])
    assert (start != before[2]).nnz == 0


def test_any_layout_and_dtype_of_input():
    X, D = ordinary(n=30)
    expected = encode(X, D, Lasso(0.1)).toarray()
    big = np.zeros((60, 32))
    big[::2, ::2] = X
    for variant in (
        np.asfortranarray(X),
        big[::2, ::2],
        X.astype(">f8"),
        X.tolist(),
        X.astype(object),
    ):
        np.testing.assert_allclose(encode(variant, D, Lasso(0.1)).toarray(), expected, atol=1e-12)
    integers = (100 * X).astype(np.int32)
    codes = encode(integers, D, Lasso(5.0))
    assert codes.dtype == np.float64
    check_optimal(integers.astype(float), D, 5.0, codes, np.float64)
    assert encode(X.astype(np.float16), D, Lasso(0.1)).dtype == np.float64


def test_default_lam_has_the_units_of_the_signals():
    X, D = ordinary(n=100)
    assert default_lam(X) == pytest.approx(1.2 / 4)  # unit norm, m = 16
    assert default_lam(10 * X) == pytest.approx(12 / 4)
    assert default_lam(sparse.csr_array(X)) == pytest.approx(1.2 / 4)
    np.testing.assert_allclose(
        encode(X, D).toarray(), encode(X, D, Lasso(1.2 / 4)).toarray(), atol=1e-12
    )
    np.testing.assert_allclose(encode(7 * X, D).toarray(), 7 * encode(X, D).toarray(), atol=1e-10)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("nonzeros", [1, 3.5, 8])
def test_nonzeros_calibrates_lam(nonzeros, positive):
    X, D = ordinary(n=400, k=40, m=25)
    codes = encode(X, D, Lasso(mean_nonzeros=nonzeros, positive=positive))
    assert codes.nnz / 400 == pytest.approx(nonzeros, rel=0.05)


def test_nonzeros_calibration_is_exact_on_a_small_set():
    X, D = ordinary(n=30, k=20, m=12)
    lam = Lasso(mean_nonzeros=4).resolve(X, D).lam
    assert encode(X, D, Lasso(lam)).nnz == 4 * 30


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("nonzeros", [0.5, 4, 5.5])
def test_calibration_by_coding_is_close_to_that_by_paths(nonzeros, positive, dtype, monkeypatch):
    X, D = ordinary(n=300, k=20, m=12)
    X[::5] *= 10.0  # the few signals that are looked at first are unlike the others
    X, D = X.astype(dtype), D.astype(dtype)
    coder = Lasso(mean_nonzeros=nonzeros, ridge=0.01, positive=positive)
    lams = [coder.resolve(X, D, n_threads).lam for n_threads in (1, 3)]
    assert lams[0] == lams[1]
    codes = encode(X, D, replace(coder, lam=lams[0], mean_nonzeros=None))
    assert codes.nnz / 300 == pytest.approx(nonzeros, rel=0.01)
    monkeypatch.setattr(wanted_nonzeros, "FEW", len(X))
    assert lams[0] == pytest.approx(coder.resolve(X, D).lam, rel=0.1)


def test_calibration_where_codes_are_never_dense_enough():
    X, D = ordinary(n=200, k=20, m=12)
    X = D[np.arange(200) % 20] * (1 + np.arange(200))[:, None]  # one atom each
    with pytest.warns(UserWarning, match="mean_nonzeros=5 was not reached"):
        assert encode(X, D, Lasso(mean_nonzeros=5)).nnz == 200
    with pytest.raises(ValueError, match="no signal is correlated with any atom"):
        Lasso(mean_nonzeros=2).resolve(np.zeros((200, 12)), D)


def test_empty_input_gives_empty_codes():
    codes = encode(np.zeros((0, 5)), np.eye(5), Lasso(0.1))
    assert codes.shape == (0, 5)


def test_penalty_is_what_the_cost_adds():
    X, D = ordinary(n=10)
    coder = Lasso(0.1, ridge=0.3)
    codes = encode(X, D, coder)
    dense = codes.toarray()
    expected = 0.1 * np.abs(dense).sum(1) + 0.15 * (dense**2).sum(1)
    np.testing.assert_allclose(coder.penalty(codes), expected)
    np.testing.assert_allclose(coder.penalty(dense), expected)


def test_against_spams():
    spams = pytest.importorskip("spams")
    X, D = ordinary(n=200, k=100, m=64)
    ours = encode(X, D, Lasso(0.15)).toarray()
    F = np.asfortranarray
    theirs = spams.lasso(F(X.T), D=F(D.T), lambda1=0.15, lambda2=0.0, mode=2, numThreads=1)
    np.testing.assert_allclose(ours, theirs.T.toarray(), atol=1e-7)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Lasso(-0.1), ValueError, "lam must be >= 0, got -0.1"),
        (lambda: Lasso(float("nan")), ValueError, "lam must be >= 0, got nan"),
        (lambda: Lasso(float("inf")), ValueError, "lam must be finite, got inf"),
        (lambda: Lasso("big"), TypeError, "lam must be a number, got 'big'"),
        (lambda: Lasso(0.1, ridge=-1), ValueError, "ridge must be >= 0, got -1"),
        (lambda: Lasso(mean_nonzeros=0), ValueError, "nonzeros must be > 0, got 0"),
        (lambda: encode(np.eye(3), np.eye(3), 0.1), TypeError, "coder must be a coder"),
        (lambda: encode(np.eye(3), np.eye(3), Lasso), TypeError, r"did you mean Lasso\(...\)"),
        (
            lambda: encode(np.ones(3), np.eye(3)),
            ValueError,
            r"two-dimensional.*\(3,\).*x\[None, :\]",
        ),
        (lambda: encode(np.eye(3), np.eye(4)), ValueError, "D has 4 features.*expected 3"),
        (lambda: encode(np.eye(3), np.zeros((0, 3))), ValueError, "D has no atoms"),
        (lambda: encode(np.zeros((2, 0)), np.zeros((2, 0))), ValueError, "X has no features"),
        (lambda: encode([["a", "b"]], np.eye(2)), TypeError, "X must hold real numbers"),
        (lambda: encode(np.array([[1, "a"]], object), np.eye(2)), TypeError, "got 'a' at"),
        (
            lambda: encode(np.eye(2) * 1j, np.eye(2)),
            TypeError,
            "real numbers, got dtype complex128",
        ),
        (
            lambda: encode(np.array([[1.0, 2.0], [np.nan, np.inf]]), np.eye(2)),
            ValueError,
            r"X contains NaN or infinity: 2 such values, the first \(NaN\) at \(1, 0\).*missing=.nan",
        ),
        (lambda: encode(np.eye(2), np.eye(2) / 0.0), ValueError, "D contains NaN or infinity"),
        (
            lambda: encode(np.eye(2), np.eye(2), Lasso(0.1), start=np.eye(3)),
            ValueError,
            r"start must have shape \(2, 2\).*\(3, 3\)",
        ),
        (
            lambda: encode(np.eye(2), np.eye(2), Lasso(0.1), start=1j * np.eye(2)),
            TypeError,
            "start must hold real numbers, got dtype complex128",
        ),
        (
            lambda: encode([[10**400, 1]], np.eye(2)),
            TypeError,
            r"X must hold real numbers, got 10*\.\.\. at \(0, 0\)",
        ),
        (
            lambda: encode(np.eye(2), np.eye(2), n_threads=0),
            ValueError,
            "n_threads must be >= 1, got 0",
        ),
        (
            lambda: encode(np.eye(3), np.ones((3, 2))),
            ValueError,
            r"has 2 features \(rows are atoms\), expected 3: if its columns are .* give D.T",
        ),
        (
            lambda: encode(np.eye(2), np.eye(2), Lasso(lam=0.5, mean_nonzeros=1)),
            ValueError,
            "give one of lam and mean_nonzeros, got lam=0.5 and mean_nonzeros=1",
        ),
        (lambda: encode(["a", "b"], np.eye(2)), TypeError, "numbers, got text such as 'a'"),
        (
            lambda: encode(np.eye(2), np.eye(2), Lasso(mean_nonzeros=5)),
            ValueError,
            "nonzeros must be at most 2",
        ),
    ],
)
def test_bad_input(make, error, message):
    with np.errstate(all="ignore"), pytest.raises(error, match=message):
        make()


def test_csr_nan_is_found_where_it_is():
    X = sparse.csr_array(np.diag([1.0, 2.0, np.nan]))
    with pytest.raises(ValueError, match=r"the first \(NaN\) at \(2, 2\)"):
        encode(X, np.eye(3))


def test_all_zero_codes_warn_with_a_useful_lam():
    X, D = ordinary(n=10)
    with pytest.warns(
        UserWarning, match=r"every code is zero: lam=5 .* Try lam=(\S+), or"
    ) as caught:
        encode(X, D, Lasso(5.0))
    suggested = float(str(caught[0].message).split("Try lam=")[1].split(",")[0])
    assert encode(X, D, Lasso(suggested)).nnz > 0


def test_path_and_coder_agree():
    X, D = ordinary(n=5, k=30, m=20)
    for x in X:
        path = lasso_path(x, D)
        for lam in (0.01, 0.1, 0.25):
            np.testing.assert_allclose(
                path.at(lam), encode(x[None], D, Lasso(lam)).toarray()[0], atol=1e-10
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("share", [1e-2, 1e-3, 1e-4])
def test_atoms_that_all_but_coincide_end_near_the_optimum(share, positive, dtype):
    # Overlapping bumps: the Gram matrix is singular to rounding, and active sets may go in circles.
    rng = np.random.default_rng(0)
    D = np.exp(-0.5 * ((np.arange(40) - rng.uniform(0, 40, (100, 1))) / 8) ** 2).astype(dtype)
    X = (np.abs(rng.standard_normal((30, 100))) @ D).astype(dtype)
    lam = share * float((X @ D.T).max())
    codes = _quiet_encode(X, D, Lasso(lam, positive=positive)).toarray()
    gap = naive.lasso_gap(X, D, codes, lam, positive=positive)
    energy = 0.5 * (X.astype(float) ** 2).sum(1)
    assert np.all(gap <= (3e-4 if dtype == np.float32 else 1e-8) * energy)


def test_a_start_out_of_order_is_left_alone():
    X, D = ordinary(n=2)
    start = sparse.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([5, 1, 5]), np.array([0, 3, 3])), shape=(2, 24)
    )
    before = start.data.copy(), start.indices.copy(), start.indptr.copy()
    encode(X, D, Lasso(0.1), start=start)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(before, (start.data, start.indices, start.indptr), strict=True)
    )


def test_nonzeros_can_be_calibrated_where_some_paths_get_lost():
    rng = np.random.default_rng(0)
    D = np.exp(-0.5 * ((np.arange(40) - rng.uniform(0, 40, (100, 1))) / 8) ** 2)
    X = rng.standard_normal((200, 40))
    assert encode(X, D, Lasso(mean_nonzeros=3)).nnz / 200 == pytest.approx(3, rel=0.2)


def test_codes_that_fall_short_of_the_optimum_are_mended():
    rng = np.random.default_rng(0)
    D = np.exp(-0.5 * ((np.arange(40) - rng.uniform(0, 40, (100, 1))) / 8) ** 2).astype(np.float32)
    X = rng.standard_normal((500, 40)).astype(np.float32)
    _, info = encode(X, D, Lasso(0.01), return_info=True)  # no warning
    assert np.all(info.gap <= 1e-3 * 0.5 * (X.astype(np.float64) ** 2).sum(axis=1))
    encode(X, D, Lasso(0.01, ridge=0.1), n_threads=1)


@pytest.mark.parametrize("positive", [False, True])
def test_mean_nonzeros_if_no_path_can_be_followed(monkeypatch, positive):
    """Lam is then as small as it gets; it was said that no signal is correlated with any atom."""
    X, D = ordinary()

    def fail(*args):
        raise ArithmeticError

    monkeypatch.setattr(wanted_nonzeros, "follow", fail)
    coder = Lasso(mean_nonzeros=3, positive=positive)
    assert 0.0 < coder.resolve(X, D).lam < 1e-3 * (X @ D.T).max()
    with pytest.raises(ValueError, match="no signal is correlated with any atom"):
        coder.resolve(np.zeros_like(X), D)


def test_a_spoilt_factor_does_not_send_the_search_in_circles():
    """14 atoms in 5 dimensions: those that are nearly dependent join and leave, round after round."""
    saved = json.loads(Path(__file__).with_name("cycling_lasso.json").read_text())
    lam, q, G = saved["lam"], np.zeros((1, 16)), np.zeros((16, 16))
    q[0, :14] = saved["q"]
    for i, row in enumerate(saved["G"]):
        G[i, : i + 1] = G[: i + 1, i] = row
    chunk = Chunk(q, np.full(1, 4.0), np.zeros(1, np.int32), stuck=np.zeros(1, np.int64))
    code = Lasso(lam).solver(G)(chunk).as_csr(16).toarray()[0]
    left = q[0] - code @ G
    assert np.abs(left).max() <= lam * (1 + 1e-12)
    np.testing.assert_allclose(left[code != 0], lam * np.sign(code[code != 0]), rtol=1e-12)
    assert chunk.rounds[0] < 40
    assert chunk.stuck[0] == 0
