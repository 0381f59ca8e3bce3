"""Kernels that call kernels."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import config

from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


def make_kernels():
    @kernel
    def inner(x, power):
        if power < 0:
            raise ValueError("a negative power")
        return x**power

    @kernel
    def outer(x, power):
        return inner(x, power) + 1.0

    for each in (inner, outer):
        each._cache.disable()
    return inner, outer


def test_a_kernel_that_only_kernels_call_has_no_machine_code():
    inner, outer = make_kernels()
    assert outer(3.0, 2) == 10.0
    assert inner.signatures == []
    assert len(outer.signatures) == 1


@pytest.mark.parametrize("first", ["inner", "outer"])
def test_python_and_kernels_may_call_the_same_kernel_in_any_order(first):
    inner, outer = make_kernels()
    calls = {"inner": lambda: inner(3.0, 2), "outer": lambda: outer(3.0, 2)}
    found = {name: calls[name]() for name in sorted(calls, key=lambda name: name != first)}
    assert found == {"inner": 9.0, "outer": 10.0}
    assert outer(3.0, 2) == 10.0
    assert inner(np.float32(2.0), 3) == 8.0


def test_what_an_inner_kernel_raises_reaches_python():
    inner, outer = make_kernels()
    for each in (outer, inner):
        with pytest.raises(ValueError, match="a negative power"):
            each(3.0, -1)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 0), (2, 3, 4)])
@pytest.mark.parametrize("readonly", [False, True])
def test_flat_is_a_view(shape, readonly):
    @kernel
    def total(x):
        row, s = flat(x), 0.0
        for i in range(row.size):
            s += (i + 1) * row[i]
        return s

    total._cache.disable()
    x = np.random.default_rng(0).standard_normal(shape)
    x.flags.writeable = not readonly
    row = x.reshape(-1)
    assert total(x) == pytest.approx((np.arange(1, row.size + 1) * row).sum())


def test_flat_can_be_written_to():
    @kernel
    def double(x):
        row = flat(x)
        for i in range(row.size):
            row[i] *= 2

    double._cache.disable()
    x = np.arange(12.0).reshape(3, 4)
    double(x)
    assert np.array_equal(x, 2 * np.arange(12.0).reshape(3, 4))


def test_kernels_are_right_with_debug_information(tmp_path):
    code = (
        "import numpy as np\nfrom smalto.projections import project_l2_ball\n"
        "print(np.linalg.norm(project_l2_ball(np.ones((1, 40)))))"
    )
    environment = {**os.environ, "NUMBA_DEBUGINFO": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1.0)
