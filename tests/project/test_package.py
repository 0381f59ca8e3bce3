"""The package as a whole: what it exports, how fast it comes, that its examples are true."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smalto

MODULES = [
    module.name
    for module in pkgutil.walk_packages(smalto.__path__, "smalto.")
    if not module.name.startswith("smalto.kernels")
]


@pytest.mark.parametrize("name", ["smalto", *MODULES])
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module)
    assert failed == 0


def test_everything_exported_exists():
    for name in smalto.__all__:
        assert getattr(smalto, name) is not None
        assert name in dir(smalto)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        smalto.nothing  # noqa: B018


def test_import_does_not_bring_in_what_is_seldom_used():
    code = "import sys, smalto; print(*sorted(set(sys.modules) & {'sklearn', 'matplotlib', 'pandas', 'PIL', 'typer'}))"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.split() == []


def test_simd_without_compilation_means_the_same():
    """The NumPy statement of each vector operation agrees with what is compiled."""
    code = """
import numba
import numpy as np
from smalto import encode
from smalto.coders import OMP, Lasso
rng = np.random.default_rng(0)
D = rng.standard_normal((40, 8)); X = rng.standard_normal((3, 8))
for dtype in (np.float32, np.float64):
    for positive in (False, True):
        for coder in (Lasso(0.3, positive=positive), OMP(3, positive=positive)):
            codes = encode(X.astype(dtype), D.astype(dtype), coder, n_threads=1).toarray()
            np.save(f"{type(coder).__name__}-{dtype.__name__}-{positive}.npy", codes)
"""
    import os
    import tempfile

    results = []
    for disabled in ("0", "1"):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
            subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)
            results.append([np.load(path) for path in sorted(Path(folder).iterdir())])
    assert len(results[0]) == 8
    for compiled, plain in zip(*results, strict=True):
        assert np.count_nonzero(compiled) > 5
        np.testing.assert_allclose(
            compiled, plain, atol=1e-5 if compiled.dtype == np.float32 else 1e-12
        )
