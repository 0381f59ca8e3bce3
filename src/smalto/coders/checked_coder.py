"""Checks of what a coder of a user's own returns; the library's coders need none."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array, check_finite, is_built_in, named
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes


def solver_of(coder: Coder, G: Array, n_atoms: int, slack: float = 0.0) -> Solver:
    """Return the solver of a coder; if the coder is a user's own, one that checks its codes."""
    # A subclass that has another solver only is asked for that one.
    rough = slack and issubclass(_origin(coder, "rough_solver"), _origin(coder, "solver"))
    with named(coder, "solver"):
        solve = coder.rough_solver(G, slack) if rough else coder.solver(G)
    if is_built_in(coder):
        return solve
    name = f"the solver of {type(coder).__name__}"

    def checked(chunk: Chunk) -> Codes:
        with named(coder, "solver"):
            codes = solve(chunk)
        _check_codes(name, codes, len(chunk.Q), n_atoms)
        return Codes(
            np.asarray(codes.indptr, np.int64),
            np.asarray(codes.indices, np.int32),
            np.asarray(codes.values, G.dtype),
        )

    return checked


def penalty_of(coder: Coder, codes: Codes, n_atoms: int, groups: Array | None) -> Array:
    """Return ψ of each row of codes; raise if a user's own coder returns anything else."""
    if is_built_in(coder):
        return coder.penalty_of_codes(codes, n_atoms, groups)
    with named(coder, "penalty"):
        values = np.asarray(coder.penalty(codes.as_csr(n_atoms), groups))
    n, name = len(codes.indptr) - 1, f"{type(coder).__name__}.penalty"
    if values.shape != (n,) or values.dtype.kind not in "fiu":
        message = (
            f"{name} must return a number for each of the {n} rows, got "
            f"{values.dtype} of shape {values.shape}"
        )
        raise ValueError(message)
    check_finite(f"what {name} returned", values)
    return values.astype(np.float64, copy=False)


def _origin(coder: Coder, method: str) -> type:
    """Return the class that a method of a coder comes from."""
    return next(kind for kind in type(coder).__mro__ if method in vars(kind))


def _check_codes(name: str, codes: Any, n_rows: int, n_atoms: int) -> None:
    """Raise unless these are valid sparse codes: kernels read them without checks."""
    if not isinstance(codes, Codes):
        message = f"{name} must return Codes, got {type(codes).__name__}"
        raise TypeError(message)
    indptr, indices, values = map(np.asarray, codes)
    if indptr.shape != (n_rows + 1,) or indptr.dtype.kind != "i" or indptr[0] != 0:
        message = (
            f"{name} must return an indptr of {n_rows + 1} integers from 0 on, got "
            f"{indptr.dtype} of shape {indptr.shape}"
        )
        raise ValueError(message)
    counts = np.diff(indptr)
    if counts.min(initial=0) < 0 or indices.shape != (indptr[-1],) or values.shape != indices.shape:
        message = (
            f"{name} returned {indices.shape} indices and {values.shape} values for an indptr "
            f"that ends at {indptr[-1]}"
        )
        raise ValueError(message)
    if indices.dtype.kind != "i" or values.dtype.kind != "f":
        message = f"{name} returned indices of {indices.dtype} and values of {values.dtype}"
        raise TypeError(message)
    rising = np.diff(indices) > 0
    ends = indptr[1:-1] - 1
    rising[ends[(ends >= 0) & (ends < len(rising))]] = True  # from one row to the next
    if indices.min(initial=0) < 0 or indices.max(initial=0) >= n_atoms or not rising.all():
        message = f"{name} must return increasing indices from 0 to {n_atoms - 1} in each row"
        raise ValueError(message)
    check_finite(f"what {name} returned", values)
