"""The dictionary sweep (Algorithm 2), one block of atoms at a time.

The update of atom j is ``u = (b_j − a_j D)/A_jj + d_j`` followed by a projection, and each
atom sees those already updated. For a block J the residual ``R = B_J − A_J D`` comes from one
matrix product; here the block is walked through, and after each atom only the rows of R that
are still to come are corrected. The result is that of the plain sweep, to rounding.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.jit import kernel, summing

# Which set the atoms live in: one number per built-in constraint.
L2_BALL = 0


@summing
def project_l2_ball(atom, positive):
    """Project onto ``‖u‖₂ ≤ 1`` (and u ≥ 0), in place."""
    if positive:
        for i in range(atom.size):
            atom[i] = max(atom[i], 0.0)
    square = 0.0
    for i in range(atom.size):
        square += np.float64(atom[i]) * np.float64(atom[i])
    if square > 1.0:
        scale = atom.dtype.type(1.0 / np.sqrt(square))
        for i in range(atom.size):
            atom[i] *= scale


@kernel
def project(kind, positive, atom):
    """Project an atom onto the built-in set ``kind``, in place."""
    if kind == L2_BALL:
        project_l2_ball(atom, positive)


@kernel
def add_scaled(part, scale, out):
    """``out += scale * part``, from float64 to the dtype of the dictionary."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += out.dtype.type(scale * part[i, j])


@summing
def _move(D, j, atom, R, A_jj, later, A_block, row):
    """Put ``atom`` in place of D[j], correct the rows of R below; the change of the surrogate."""
    m = atom.size
    linear, square = 0.0, 0.0
    for i in range(m):
        difference = atom[i] - D[j, i]
        D[j, i] = atom[i]
        atom[i] = difference
        linear += np.float64(difference) * np.float64(R[row, i])
        square += np.float64(difference) * np.float64(difference)
    if square > 0.0:
        for below in range(row + 1, later):
            a = A_block[below, j]
            if a != 0.0:
                for i in range(m):
                    R[below, i] -= a * atom[i]
    return 0.5 * A_jj * square - linear


@kernel
def sweep_block(D, R, A_block, first, smallest, kind, positive, atom):
    """Update the atoms of one block in turn; returns the change of ``½Σ A∘DDᵀ − Σ B∘D``.

    ``R`` (b, m) holds ``B_J − A_J D`` for the atoms J = first, first + 1, ..., ``A_block``
    (b, k) their rows of A. Atoms with A_jj <= smallest are left alone. ``atom`` is scratch.
    """
    change = 0.0
    for row in range(R.shape[0]):
        j = first + row
        diagonal = A_block[row, j]
        if not diagonal > smallest:
            continue
        for i in range(atom.size):
            atom[i] = R[row, i] / diagonal + D[j, i]
        project(kind, positive, atom)
        change += _move(D, j, atom, R, diagonal, R.shape[0], A_block, row)
    return change
