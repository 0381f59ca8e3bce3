"""What is prepared for coding is given back at once."""

import gc
import weakref

import numpy as np
import pytest

from smalto.coders import OMP, Lasso, Ridge
from smalto.coders.coding import code_rows
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "coder", [Lasso(0.1), Lasso(0.1, penalty_weights=[2.0] * 20), OMP(3), OMP(eps=0.01), Ridge(0.1)]
)
def test_a_gram_matrix_does_not_wait_for_the_garbage_collector(coder, dtype):
    X, D = np.random.default_rng(0).standard_normal((2, 20, 10)).astype(dtype)
    gc.collect()
    gc.disable()
    try:
        prepared = prepare(D, coder, 1)
        code_rows(Signals(X), prepared, None, 1)
        gone = weakref.ref(prepared)
        del prepared
        assert gone() is None
    finally:
        gc.enable()
