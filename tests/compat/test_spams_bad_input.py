"""Wrong input to `smalto.compat.spams`, which makes SPAMS abort or go on silently."""

import numpy as np
import pytest
from spams_problems import unit

from smalto.compat import spams

RNG = np.random.default_rng(0)
X, D = unit(RNG, 8, 12), unit(RNG, 8, 10)
KNOWN = np.ones((8, 12), bool)
CODES = np.zeros((10, 12))
HOLED = X.copy()
HOLED[3, 5] = np.nan
TREE = {"eta_g": [1.0], "groups": np.zeros((1, 1), bool), "own_variables": [0]}

WRONG = {
    "lambda1 must be given": lambda: spams.lasso(X, D),
    r"lambda1 must be >= 0, got -1": lambda: spams.lasso(X, D, lambda1=-1),
    "lambda1 must be finite, got inf": lambda: spams.cd(X, D, CODES, lambda1=np.inf),
    "needs D, or both Q and q": lambda: spams.lasso(X, lambda1=1),
    "needs both Q and q, or D": lambda: spams.lasso(X, Q=D.T @ D, lambda1=1),
    "Q must be symmetric": lambda: spams.lasso(X, Q=np.triu(D.T @ D), q=D.T @ X, lambda1=1),
    "Q must be positive semidefinite": lambda: spams.lasso(X, Q=-np.eye(10), q=D.T @ X, lambda1=1),
    r"D has 7 rows \(features\), expected 8": lambda: spams.lasso(X, D[:7], lambda1=1),
    r"columns are signals\), got shape \(8,\); for a single one": lambda: spams.omp(
        X[:, 0], D, L=2
    ),
    r"X contains NaN or infinity: 1 such value, the first \(NaN\) at \(3, 5\)": lambda: spams.lasso(
        HOLED, D, lambda1=1
    ),
    r"X is empty: its shape is \(8, 0\)": lambda: spams.trainDL(X[:, :0], K=3, lambda1=1),
    "X must hold real numbers": lambda: spams.lasso(X.astype(complex), D, lambda1=1),
    "mode must be 0": lambda: spams.lasso(X, D, lambda1=1, mode=9),
    r"B must have shape \(8, 12\)": lambda: spams.lassoMask(X, D, KNOWN[:5], lambda1=1),
    "B must hold bool": lambda: spams.ompMask(X, D, KNOWN.astype(float), L=2),
    r"W must have shape \(10, 12\)": lambda: spams.lassoWeighted(X, D, CODES.T, lambda1=1),
    "W must be above 0, got 0": lambda: spams.lassoWeighted(X, D, CODES, lambda1=1),
    "omp needs a limit": lambda: spams.omp(X, D),
    "lambda1 has 3 numbers": lambda: spams.omp(X, D, lambda1=[1.0, 2.0, 3.0]),
    "L must be given": lambda: spams.somp(X, D, [0]),
    "list_groups must start with 0": lambda: spams.somp(X, D, [0, 5, 5], L=2),
    "list_groups must be a vector": lambda: spams.somp(X, D, [0.0, 2.0], L=2),
    r"alpha0 must have shape \(10, 12\)": lambda: spams.l1L2BCD(X, D, X, [0], lambda1=1),
    r"A0 must have shape \(10, 12\)": lambda: spams.cd(X, D, X, lambda1=1),
    r"numThreads must be -1 \(every core\)": lambda: spams.lasso(X, D, lambda1=1, numThreads=0),
    "K, the number of atoms, must be given": lambda: spams.trainDL(X, lambda1=0.1),
    "D has 10 atoms, but K=4": lambda: spams.trainDL(X, D=D, K=4, lambda1=0.1),
    "model needs D": lambda: spams.trainDL(X, model={}, K=4, lambda1=0.1),
    "model must be a dictionary with A, B": lambda: spams.trainDL(X, model={}, D=D, lambda1=0.1),
    r"model\['A'\] must have shape \(10, 10\)": lambda: spams.trainDL(
        X, model={"A": X, "B": X, "iter": 1}, D=D, lambda1=0.1
    ),
    "rho must be >= 0, got -15": lambda: spams.trainDL(X, D=D, lambda1=1, modeParam=1, rho=-15),
    "modeD must be <= 3": lambda: spams.trainDL(X, D=D, lambda1=1, modeD=4),
    "gamma1 must be below 1 with modeD=3": lambda: spams.trainDL(
        X, D=D, lambda1=1, modeD=3, gamma1=1.0
    ),
    "loss must be 'square'": lambda: spams.fistaFlat(X, D, CODES, regul="l1", loss="cubic"),
    "regul must be the name": lambda: spams.fistaFlat(X, D, CODES, regul="l7", loss="square"),
    "groups must have an integer from 1": lambda: spams.proximalFlat(
        X, regul="group-lasso-l2", groups=np.zeros(8, int)
    ),
    "tree must be a dictionary with": lambda: spams.proximalTree(X, TREE, regul="tree-l2"),
    "own variables of the groups": lambda: spams.proximalTree(
        X, TREE | {"N_own_variables": [5]}, regul="tree-l2"
    ),
    "mode must be an integer from 1 to 6": lambda: spams.sparseProject(X, mode=7),
    "A must be two-dimensional": lambda: spams.im2col_sliding(X[None], 2, 2),
    "m must be <= 8": lambda: spams.im2col_sliding(X, 9, 2),
    "width of A must be a multiple of 3": lambda: spams.im2col_sliding(X[:, :7], 2, 2, True),
    "neither p x p nor": lambda: spams.displayPatches(X[:7]),
}

NOT_THERE = {
    "lasso.mode=3.*omp.X, D, L=2": lambda: spams.lasso(X, D, lambda1=2, mode=3),
    "ols=True.*lstsq": lambda: spams.lasso(X, D, lambda1=1, ols=True),
    "max_length_path=2.*L limits": lambda: spams.lasso(X, D, lambda1=1, max_length_path=2),
    "lambda2=0.1 with mode=1": lambda: spams.lasso(X, D, lambda1=1, lambda2=0.1, mode=1),
    "lambda2=0.1 with Q.*diagonal": lambda: spams.lasso(
        X, Q=D.T @ D, q=D.T @ X, lambda1=1, lambda2=0.1
    ),
    "cd.mode=0.*lasso": lambda: spams.cd(X, D, CODES, lambda1=1, mode=0),
    "l1L2BCD.mode=1.*somp": lambda: spams.l1L2BCD(X, D, CODES, [0], lambda1=1, mode=1),
    "modeParam=2.*modeParam=1": lambda: spams.trainDL(X, D=D, lambda1=1, modeParam=2),
    "trainDL.mode=6.*structTrainDL": lambda: spams.trainDL(X, D=D, lambda1=1, mode=6),
    "log_deprecated=True.*callbacks": lambda: spams.trainDL(X, D=D, lambda1=1, log_deprecated=True),
    "modeParam=1.*old codes": lambda: spams.trainDL_Memory(X, D=D, lambda1=1, modeParam=1),
    "graph.*tree": lambda: spams.structTrainDL(X, D=D, lambda1=1, regul="graph"),
    "tree-linf.*tree-l2": lambda: spams.structTrainDL(X, D=D, lambda1=1, regul="tree-linf"),
    "model.*trainDL": lambda: spams.nmf(abs(X), K=3, model={}),
    "logistic.*scikit-learn": lambda: spams.fistaFlat(X, D, CODES, regul="l1", loss="logistic"),
    "trace-norm.*CVXPY": lambda: spams.fistaFlat(X, D, CODES, regul="trace-norm", loss="square"),
    "log=True": lambda: spams.fistaFlat(X, D, CODES, regul="l1", loss="square", log=True),
    "transpose=True.*U.T": lambda: spams.proximalFlat(X, regul="l1", transpose=True),
    "lambda3=0.*lambda3 > 0": lambda: spams.sparseProject(X, mode=6, lambda2=1.0),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_input_is_refused_in_plain_words(message):
    with pytest.raises((ValueError, TypeError), match=message):
        WRONG[message]()


@pytest.mark.parametrize("message", NOT_THERE)
def test_what_cannot_be_honored_names_the_way_out(message):
    with pytest.raises(NotImplementedError, match=message):
        NOT_THERE[message]()


def test_inputs_of_any_order_and_type_are_taken_and_not_written_to():
    plain = spams.lasso(X, D, lambda1=0.1).toarray()
    kept = X.copy(), D.copy()
    np.testing.assert_array_equal(
        spams.lasso(np.ascontiguousarray(X), D.tolist(), lambda1=0.1).toarray(), plain
    )
    spams.trainDL(X, D=D, lambda1=0.1, iter=2)
    spams.lassoMask(X, D, KNOWN, lambda1=0.1)
    assert spams.lasso((10 * X).astype(int), D, lambda1=0.1).dtype == float
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(D, kept[1])
