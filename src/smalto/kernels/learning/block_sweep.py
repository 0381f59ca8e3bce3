"""The dictionary sweep (Algorithm 2), one block of atoms at a time.

The update of atom j is ``u = (b_j − a_j D)/A_jj + d_j`` followed by a projection, and each
atom sees those already updated. For a block J the residual ``R = B_J − A_J D`` comes from one
matrix product; here the block is walked through, and after each atom only the rows of R that
are still to come are corrected. The result is that of the plain sweep, to rounding.

Each constraint set has its own sweep, compiled when it is first used. It returns the change of
``½ Σ A∘DDᵀ − Σ B∘D``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.jit import kernel, summing
from smalto.kernels.projecting import elastic_net_ball
from smalto.kernels.projecting.elastic_net_ball import project_elastic_net
from smalto.kernels.projecting.fused_lasso_ball import project_fused_lasso
from smalto.kernels.projecting.l2_ball import project_l2


class Block(NamedTuple):
    """A block of b atoms to update, and the dictionary that they belong to."""

    D: Any  # (k, m)
    R: Any  # (b, m): B_J − A_J D
    A: Any  # (b, k): rows of A
    first: int  # number of the first atom of the block
    smallest: float  # atoms with A_jj up to this are left alone
    atom: Any  # (m,): scratch


def make_block(D: Any, R: Any, A: Any, first: int, smallest: float) -> Block:
    """A block with its scratch."""
    return Block(D, R, A, first, smallest, np.empty(D.shape[1], D.dtype))


@kernel
def add_scaled(part, scale, out):
    """``out += scale * part``, from float64 to the dtype of the dictionary."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += out.dtype.type(scale * part[i, j])


@kernel
def _propose(block, row):
    """Write the update of an atom before its projection; False if nothing is known of it."""
    D, R, A, first, smallest, atom = block
    diagonal = A[row, first + row]
    if not diagonal > smallest:
        return False
    for i in range(atom.size):
        atom[i] = R[row, i] / diagonal + D[first + row, i]
    return True


@summing
def _replace(block, row):
    """Put ``atom`` in its place, correct the rows of R below; the change of the surrogate."""
    D, R, A, first, _, atom = block
    m = atom.size
    j = first + row
    linear, square = 0.0, 0.0
    for i in range(m):
        difference = atom[i] - D[j, i]
        D[j, i] = atom[i]
        atom[i] = difference
        linear += np.float64(difference) * np.float64(R[row, i])
        square += np.float64(difference) * np.float64(difference)
    if square > 0.0:
        for below in range(row + 1, R.shape[0]):
            a = A[below, j]
            if a != 0.0:
                for i in range(m):
                    R[below, i] -= a * atom[i]
    return 0.5 * A[row, j] * square - linear


@kernel
def sweep_l2(block, positive):
    """Atoms in ``‖d‖₂ ≤ 1``."""
    change = 0.0
    for row in range(block.R.shape[0]):
        if _propose(block, row):
            project_l2(block.atom, positive)
            change += _replace(block, row)
    return change


@kernel
def sweep_elastic_net(block, gamma, positive, work):
    """Atoms in ``‖d‖₂² + gamma ‖d‖₁ ≤ 1``."""
    change = 0.0
    for row in range(block.R.shape[0]):
        if _propose(block, row):
            project_elastic_net(block.atom, gamma, positive, work)
            change += _replace(block, row)
    return change


@kernel
def sweep_fused_lasso(block, gamma1, gamma2, positive, work):
    """Atoms in ``‖d‖₂² + gamma1 ‖d‖₁ + gamma2 FL(d) ≤ 1``."""
    change = 0.0
    for row in range(block.R.shape[0]):
        if _propose(block, row):
            project_fused_lasso(block.atom, gamma1, gamma2, positive, work)
            change += _replace(block, row)
    return change


@kernel
def sweep_simplex(block, work):
    """Atoms in ``d ≥ 0, Σ d = 1``."""
    change = 0.0
    for row in range(block.R.shape[0]):
        if _propose(block, row):
            elastic_net_ball.project(
                block.atom, block.atom, 1.0, 0.0, 1.0, elastic_net_ball.RAW, work
            )
            change += _replace(block, row)
    return change
