"""The size of signals, atoms and weights does not matter; beyond the range it is refused."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from smalto import NMF, DictionaryLearning, SparseCCA, SparsePCA, encode, lasso_path, learn
from smalto.coders import (
    L0,
    OMP,
    Bridge,
    ErrorBound,
    GroupLasso,
    JointLasso,
    JointOMP,
    L1Ball,
    Lasso,
    Ridge,
    TreeLasso,
    duality_gap,
)
from smalto.coders.coding import code_rows
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals

GROUPS = np.arange(24) // 3
PARENTS = [-1, *((i - 1) // 2 for i in range(1, 24))]

# The problem at size s of the signals and t of the atoms, by what its definition says.
CODERS = {
    "Lasso": lambda s, t: Lasso(0.3 * s * t, ridge=0.1 * t * t),
    "Lasso positive": lambda s, t: Lasso(0.3 * s * t, positive=True),
    "Lasso 0": lambda s, t: Lasso(0.0, positive=True),
    "L1Ball": lambda s, t: L1Ball(1.5 * s / t),
    "ErrorBound": lambda s, t: ErrorBound(2.0 * s * s),
    "OMP": lambda s, t: OMP(4),
    "OMP eps": lambda s, t: OMP(eps=3.0 * s * s),
    "L0": lambda s, t: L0(0.2 * s * s),
    "JointOMP": lambda s, t: JointOMP(4),
    "GroupLasso": lambda s, t: GroupLasso(0.4 * s * t, GROUPS, l1=0.1 * s * t),
    "TreeLasso": lambda s, t: TreeLasso(0.3 * s * t, PARENTS),
    "JointLasso": lambda s, t: JointLasso(0.5 * s * t),
    "Bridge": lambda s, t: Bridge(0.3 * s**1.5 * t**0.5, delta=s / t),
    "Ridge": lambda s, t: Ridge(0.5 * t * t),
}


def problem(dtype):
    rng = np.random.default_rng(3)
    return (
        rng.standard_normal((20, 16)).astype(dtype),
        rng.standard_normal((24, 16)).astype(dtype),
    )


def close(codes, expected, dtype):
    tolerance = 2e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(codes, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("name", CODERS)
@pytest.mark.parametrize(
    ("dtype", "powers"),
    [
        (np.float64, [(-149, 0), (149, 0), (0, -149), (0, 149), (-120, 25), (40, -60)]),
        (np.float32, [(-17, 0), (17, 0), (0, -17), (0, 17), (8, -9)]),
    ],
)
def test_codes_are_those_of_the_rescaled_problem(name, dtype, powers):
    X, D = problem(dtype)
    expected = encode(X, D, CODERS[name](1.0, 1.0)).toarray().astype(np.float64)
    for signal, atom in powers:
        s, t = 10.0**signal, 10.0**atom
        scaled = (X.astype(np.float64) * s).astype(dtype), (D.astype(np.float64) * t).astype(dtype)
        if not np.isfinite(0.3 * s**1.5 * t**0.5) or 0.5 * t * t == 0.0 or s * s * 2.0 == 0.0:
            continue
        codes = encode(*scaled, CODERS[name](s, t)).toarray().astype(np.float64)
        if name == "Lasso 0":  # codes are not unique, what they fit is
            close(codes * (t / s) @ D, expected @ D, dtype)
        else:
            close(codes * (t / s), expected, dtype)


@pytest.mark.parametrize("name", CODERS)
def test_powers_of_two_give_the_same_bits(name):
    X, D = problem(np.float64)
    expected = encode(X, D, CODERS[name](1.0, 1.0)).toarray()
    s = 2.0**-400
    if name == "Bridge":  # its lam is no power of two
        return
    codes = encode(X * s, D, CODERS[name](s, 1.0)).toarray()
    np.testing.assert_array_equal(codes, expected * s)


@pytest.mark.filterwarnings("ignore:every code is zero")
@pytest.mark.parametrize("name", ["Lasso", "OMP", "L0", "GroupLasso", "Ridge", "L1Ball"])
def test_each_row_has_its_own_scale(name):
    X, D = problem(np.float64)
    sizes = 10.0 ** np.linspace(-140, 140, len(X))
    mixed = encode(X * sizes[:, None], D, OMP(4)).toarray()
    close(mixed / sizes[:, None], encode(X, D, OMP(4)).toarray(), np.float64)
    codes = encode(X * sizes[:, None], D, CODERS[name](1e-100, 1.0)).toarray()
    for row in range(0, len(X), 4):
        alone = encode(X[[row]] * sizes[row], D, CODERS[name](1e-100, 1.0)).toarray()[0]
        np.testing.assert_allclose(codes[row], alone, atol=1e-9 * sizes[row])


def test_sparse_masked_and_weighted_signals_are_scaled_too():
    X, D = problem(np.float64)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, 0.0)
    expected = encode(X, D, Lasso(0.1)).toarray()
    codes = encode(sparse.csr_array(X * 1e-120), D, Lasso(1e-121)).toarray()
    close(codes * 1e120, expected, np.float64)
    mask = np.random.default_rng(1).random(X.shape) < 0.3
    expected = encode(X, D, Lasso(0.1), mask=mask).toarray()
    codes = encode(X * 1e120, D, Lasso(1e119), mask=mask).toarray()
    close(codes * 1e-120, expected, np.float64)
    weights = np.random.default_rng(2).random(len(D)) + 0.5
    expected = encode(X, D, Lasso(0.1), penalty_weights=weights).toarray()
    for size in (1e-140, 1e140):
        codes = encode(X, D, Lasso(0.1 / size), penalty_weights=weights * size).toarray()
        close(codes, expected, np.float64)
        ball = encode(X, D, L1Ball(2.0 * size), penalty_weights=weights * size).toarray()
        close(ball, encode(X, D, L1Ball(2.0), penalty_weights=weights).toarray(), np.float64)


@pytest.mark.parametrize("coder", [OMP(4), L0(0.2), JointOMP(4)])
def test_each_atom_has_its_own_scale_in_a_pursuit(coder):
    X, D = problem(np.float64)
    sizes = 2.0 ** np.linspace(-480, 480, len(D)).astype(int)
    codes = encode(X, D * sizes[:, None], coder).toarray() * sizes
    close(codes, encode(X, D, coder).toarray(), np.float64)


@pytest.mark.parametrize("name", CODERS)
def test_gaps_are_those_of_the_rescaled_problem(name):
    X, D = problem(np.float64)
    _, info = encode(X, D, CODERS[name](1.0, 1.0), return_info=True)
    s = 2.0**-450
    _, small = encode(X * s, D, CODERS[name](s, 1.0), return_info=True)
    if name.startswith("OMP") or name in ("L0", "JointOMP", "Bridge"):
        assert np.isnan(small.gap).all()
        return
    unit = s if name == "ErrorBound" else s * s
    np.testing.assert_allclose(small.gap / unit, info.gap, atol=1e-12)
    wrong = np.zeros((len(X), len(D)))
    if name == "Lasso":
        large = duality_gap(X * 1e140, D * 1e140, wrong, CODERS[name](1e140, 1e140))
        np.testing.assert_allclose(
            large / 1e280, duality_gap(X, D, wrong, CODERS[name](1.0, 1.0)), rtol=1e-9
        )


@pytest.mark.parametrize("coder", [OMP(3), L0(0.1), JointOMP(3), Lasso(0.1), Ridge(1.0)])
@pytest.mark.parametrize(("dtype", "small", "large"), [("f8", 1e-200, 1e200), ("f4", 1e-25, 1e25)])
def test_what_is_beyond_the_range_is_refused(coder, dtype, small, large):
    X, D = problem(np.float64)
    X, D, tiny, huge = (a.astype(dtype) for a in (X, D, X * small, X * large))
    with pytest.raises(
        ValueError, match=r"values of X reach .*, less than .* float.*: scale them up"
    ):
        encode(tiny, D, coder)
    with pytest.raises(
        ValueError, match=r"values of X reach .*, more than .* float.*: scale them down"
    ):
        encode(huge, D, coder)


def test_casts_that_overflow_or_underflow_are_refused():
    X, D = problem(np.float32)
    D = D.astype(np.float64)
    with pytest.raises(ValueError, match=r"values of D reach .*e\+300, more than .* float32"):
        encode(X, D * 1e300, OMP(3))
    with pytest.raises(ValueError, match=r"values of D reach .*, less than the .* that float32"):
        encode(X, D * 1e-60, OMP(3))
    if np.finfo(np.longdouble).max > 1e308:
        huge = X.astype(np.longdouble) * np.longdouble("1e4000")
        with pytest.raises(ValueError, match=r"values of X reach .*, more than the .* that"):
            encode(huge, D, OMP(3))


def test_codes_beyond_the_range_of_the_type_are_refused():
    X, D = problem(np.float32)
    D[:16:2] *= np.float32(1e-3)
    with pytest.raises(
        ValueError, match="codes of X over D overflow float32: scale X down or D up"
    ):
        encode(X * np.float32(1e18), D * np.float32(1e-18), OMP(16))


def test_tiny_rows_among_ordinary_ones_are_coded():
    X, D = problem(np.float64)
    X[3] *= 1e-290
    codes = encode(X, D, OMP(4)).toarray()
    X[3] *= 1e290
    np.testing.assert_allclose(codes[3] * 1e290, encode(X, D, OMP(4)).toarray()[3], rtol=1e-9)
    assert not encode(np.vstack([X, 1e-290 * X[:1]]), D, Lasso(0.1)).toarray()[-1].any()


def test_rows_whose_codes_vanish_are_no_reason_to_refuse_the_others():
    X, D = problem(np.float32)
    X[3] *= np.float32(1e-30)
    codes = encode(X, D * np.float32(1e10), OMP(4)).toarray()
    assert np.count_nonzero(codes[:3], axis=1).tolist() == [4, 4, 4]
    assert np.isfinite(codes).all()


def test_a_path_and_a_number_of_nonzeros_at_any_scale():
    X, D = problem(np.float64)
    path, small = lasso_path(X[0], D), lasso_path(X[0] * 1e-140, D * 1e120)
    np.testing.assert_allclose(small.lams * 1e20, path.lams, rtol=1e-9, atol=1e-12)
    close(small.codes.toarray() * 1e260, path.codes.toarray(), np.float64)
    _, info = encode(X, D, Lasso(mean_nonzeros=5), return_info=True)
    _, large = encode(X * 1e140, D, Lasso(mean_nonzeros=5), return_info=True)
    np.testing.assert_allclose(large.coder.lam / 1e140, info.coder.lam, rtol=1e-9)


def test_a_bound_near_the_smallest_number_is_kept():
    X, D = problem(np.float64)
    eps = 1e-5 * float(np.min(np.sum(X * X, axis=1)))
    A = encode(X, D, ErrorBound(eps)).toarray()
    small = encode(X * 2.0**-500, D * 2.0**150, ErrorBound(eps * 2.0**-1000))  # about 1e-304
    close(small.toarray() * 2.0**650, A, np.float64)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_learning_at_another_scale_gives_the_same_atoms(size):
    X = np.random.default_rng(0).standard_normal((300, 12))
    result = learn(X, 8, Lasso(0.5), random_state=0, max_steps=5)
    other = learn(X * size, 8, Lasso(0.5 * size), random_state=0, max_steps=5)
    np.testing.assert_allclose(other.D, result.D, atol=1e-9)


def test_samples_beyond_the_range_are_refused():
    X = np.random.default_rng(0).standard_normal((300, 12)).astype(np.float32)
    for size, kind in ((1e25, "more"), (1e-25, "less")):
        with pytest.raises(ValueError, match=f"reach .*, {kind} than the .* that float32"):
            learn(X * np.float32(size), 8, Lasso(0.1 * size), random_state=0)


@pytest.mark.parametrize(("size", "kind"), [(1e160, "more"), (1e-160, "less")])
@pytest.mark.parametrize("model", [NMF(3), SparsePCA(3), DictionaryLearning(3)])
def test_estimators_refuse_what_is_beyond_the_range(model, size, kind):
    A = np.abs(np.random.default_rng(0).standard_normal((50, 12)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=f"the values of X reach .*, {kind} than the .* that"):
            model.fit(A * size)
        for X, Y in ((A[:, :3] * size, A[:, 5:]), (A[:, 5:], A[:, :3] * size)):
            with pytest.raises(ValueError, match=f"reach .*, {kind} than the .* that"):
                SparseCCA(1).fit(X, Y)
        with pytest.raises(ValueError, match=f"the samples reach .*, {kind} than the .* that"):
            learn(A * size, 3, Lasso(0.5))


def test_a_stream_may_begin_with_silence():
    model = DictionaryLearning(5, coder=Lasso(0.5), random_state=0)
    model.partial_fit(np.zeros((1, 12)))
    for sample in np.random.default_rng(0).standard_normal((20, 1, 12)):
        model.partial_fit(sample)
    assert np.isfinite(model.components_).all()
    with pytest.raises(ValueError, match="nothing to learn lam from"):
        DictionaryLearning(5, random_state=0).partial_fit(np.zeros((1, 12)))


def test_group_lasso_of_tiny_signals_ends():
    X, D = problem(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = encode(X * 1e-150, D, GroupLasso(0.4e-150, GROUPS)).toarray()
    close(codes * 1e150, encode(X, D, GroupLasso(0.4, GROUPS)).toarray(), np.float64)


@pytest.mark.filterwarnings("ignore:every code is zero|eps is out|.* not proven optimal")
@pytest.mark.parametrize("size", [1.0, 2.0**100])  # an ordinary and an unusual size of signals
@pytest.mark.parametrize("number", [10**30, Fraction(1, 2), np.float32(0.5), 1])
@pytest.mark.parametrize(
    "make",
    [
        lambda v: Lasso(v, ridge=v),
        lambda v: GroupLasso(v, [0, 0, 1, 1], l1=v, ridge=v),
        lambda v: TreeLasso(v, [-1, 0, 0, 1], l1=v, ridge=v),
        JointLasso,
        Ridge,
        L1Ball,
        ErrorBound,
        L0,
        lambda v: Bridge(v, delta=v),
        lambda v: OMP(eps=v),
        lambda v: JointOMP(eps=v),
    ],
)
def test_numbers_of_any_type(make, number, size):
    rng = np.random.default_rng(0)
    X, D = size * rng.standard_normal((3, 6)), rng.standard_normal((4, 6))
    kept, info = encode(X, D, make(number), return_info=True)
    plain, same = encode(X, D, make(float(number)), return_info=True)
    np.testing.assert_array_equal(kept.toarray(), plain.toarray())
    np.testing.assert_array_equal(info.gap, same.gap)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ridge", [1e39, 1e150])
@pytest.mark.parametrize("positive", [False, True])
def test_a_huge_ridge_warns_of_nothing(dtype, ridge, positive):
    X, D = np.eye(4, dtype=dtype), np.eye(4, dtype=dtype)
    mask = np.eye(4, k=1, dtype=bool)
    kinds = {"ridge": ridge, "positive": positive}
    problems = [Lasso(0.1, **kinds), Lasso(0.0, **kinds), GroupLasso(0.1, [0, 0, 1, 1], **kinds)]
    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        for coder in problems:
            for hidden in (None, mask):
                codes = encode(X, D, coder, mask=hidden).toarray()
                wanted = (1.0 - coder.lam) / ridge * np.eye(4)
                slack = np.finfo(dtype).tiny  # smaller codes may vanish
                np.testing.assert_allclose(codes, wanted, rtol=1e-6, atol=slack)


def test_errors_that_were_not_measured_are_zero_however_large_the_signals():
    # Memory that was never written to could hold any number, which overflows when it is scaled.
    X, D = np.random.default_rng(0).standard_normal((2, 6, 4))
    for size in (1.0, 1e150):
        prepared = prepare(size * D, Ridge(0.3 * size**2), 1)
        assert not code_rows(Signals(size * X), prepared, None, 1, measured=False).fit.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(1e150 * X, 1e150 * D, Ridge(3e299), return_info=True)
