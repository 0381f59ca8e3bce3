"""What a coder is: a sparse coding problem, and a way to solve it for rows of signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows


class Codes(NamedTuple):
    """Sparse codes of some rows, as CSR arrays."""

    indptr: Array  # int64, one more than rows
    indices: Array  # int32, increasing within a row
    values: Array

    def as_csr(self, n_atoms: int) -> Any:
        """These codes as a SciPy array (n, n_atoms), sharing indices and values."""
        shape = (len(self.indptr) - 1, n_atoms)
        # SciPy wants both index arrays of one type, and the smaller one where it will do.
        kind = np.int32 if len(self.indices) < 2**31 else np.int64
        indptr, indices = self.indptr.astype(kind), self.indices.astype(kind, copy=False)
        codes = sparse.csr_array((self.values, indices, indptr), shape=shape)
        codes.has_canonical_format = True
        return codes


def stack(parts: list[Codes]) -> Codes:
    """Codes of consecutive rows, one below the other."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0] + [int(part.indptr[-1]) for part in parts])
    indptr = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Codes(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


# Codes of the rows with correlations Q = X Dᵀ (n, width) and squared norms ‖x‖² (n,),
# starting from given codes where there are any; the slice says which of the rows given to
# `encode` they are, None that they are rows of a stream. Called from several threads at once.
Solver: TypeAlias = Callable[[Array, Array, Codes | None, slice | None], Codes]


@runtime_checkable
class Coder(Protocol):
    """A sparse coding problem ``min_α ½‖x − αD‖² + ψ(α)``, as a frozen dataclass."""

    def resolve(self, X: Rows, D: Array, n_threads: int) -> Coder:
        """This problem with everything that depends on data decided, from sample rows X."""

    def fixed(self) -> Coder:
        """This problem, resolved, with nothing left that would be decided again."""

    def matching(self, other: Coder) -> Coder:
        """This problem with what is undecided taken from the other one, to compare them."""

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G.

        G is (width, width), C-contiguous, and must not be written to. The dictionary is
        filled up with zero atoms to a width that is a multiple of `PADDING`.
        """

    def penalty(self, codes: Any) -> Array:
        """ψ of each row of a CSR array of codes."""


PADDING = 16  # numbers in a vector of float32
