"""SPAMS's modes as smalto's coders and constraints."""

from __future__ import annotations

import math
from typing import NamedTuple

from smalto.checks import check_integer, check_number
from smalto.coders import L0, OMP, Coder, ErrorBound, L1Ball, Lasso, Ridge
from smalto.compat.spams.columns import refuse, required
from smalto.constraints import Constraint, ElasticNetBall, FusedLassoBall, L2Ball

# Problems of lasso, cd and trainDL.
L1COEFFS, L2ERROR, PENALTY, SPARSITY, L2ERROR2, PENALTY2, FISTAMODE = range(7)

# Sets of trainDL.
L2, L1L2, L1L2FL, L1L2MU = range(4)

SMALL_RIDGE = 1e-9  # SPAMS's default lambda2 of trainDL, a guard of its solver in all modes


def convex_coder(name: str, mode: int, lambda1: float, lambda2: float, pos: bool) -> Coder:
    """Return the coder for the modes of `lasso`: 0, 1 and 2."""
    if mode not in (L1COEFFS, L2ERROR, PENALTY):
        if mode in (SPARSITY, L2ERROR2, PENALTY2):
            option = {SPARSITY: "L", L2ERROR2: "eps", PENALTY2: "lambda1"}[mode]
            refuse(f"{name}(mode={mode})", f"use omp(X, D, {option}={lambda1:g})")
        message = f"mode must be 0 (L1COEFFS), 1 (L2ERROR) or 2 (PENALTY), got {mode!r}"
        raise ValueError(message)
    return coder(mode, lambda1, lambda2, pos)


def coder(mode: int, lambda1: float, lambda2: float, pos: bool) -> Coder:
    """Return the coder for the modes of `trainDL`: 0 to 5."""
    lambda1, lambda2 = required("lambda1", lambda1), required("lambda2", lambda2)
    if mode != PENALTY and lambda2 > SMALL_RIDGE:
        refuse(f"lambda2={lambda2:g} with mode={mode}", "only mode=2 (PENALTY) has a ridge term")
    if mode == L1COEFFS:
        return L1Ball(lambda1, positive=pos)
    if mode == L2ERROR:
        return ErrorBound(lambda1, positive=pos)
    if mode == PENALTY:
        if lambda1 == 0.0 < lambda2 and not pos:
            return Ridge(lambda2)
        if lambda1 == 0.0 and pos:  # as in SPAMS; it is faster than without any
            lambda2 = max(lambda2, 1e-10)
        return Lasso(lambda1, ridge=lambda2, positive=pos)
    if mode == SPARSITY:
        return OMP(max_nonzeros=int(lambda1), positive=pos)
    if mode == L2ERROR2:
        return OMP(eps=lambda1, positive=pos)
    if mode == PENALTY2:
        return L0(lambda1, positive=pos)
    if mode == FISTAMODE:
        refuse("trainDL(mode=6)", "use structTrainDL, which has the parameter regul")
    message = f"mode must be an integer from 0 to 5, got {mode!r}"
    raise ValueError(message)


class AtomSet(NamedTuple):
    """The set that atoms lie in: ``size`` times a constraint."""

    constraint: Constraint
    size: float = 1.0


def atom_set(modeD: int, gamma1: float, gamma2: float, posD: bool) -> AtomSet:
    """Return the set of atoms for the modes 0 to 3 of `trainDL`."""
    check_integer("modeD", modeD, low=0, high=3)
    gamma1 = check_number("gamma1", gamma1, low=0)
    gamma2 = check_number("gamma2", gamma2, low=0)
    if modeD == L2:
        return AtomSet(L2Ball(positive=posD))
    if modeD == L1L2:
        return AtomSet(ElasticNetBall(gamma1, positive=posD))
    if modeD == L1L2FL:
        return AtomSet(FusedLassoBall(gamma1, gamma2, positive=posD))
    if gamma1 >= 1.0:
        message = (
            f"gamma1 must be below 1 with modeD=3, got {gamma1:g}: the set is "
            "(1 - gamma1)‖d‖² + gamma1‖d‖₁ ≤ 1. For an ℓ1 ball write a constraint of your own "
            "with smalto.projections.project_l1_ball"
        )
        raise ValueError(message)
    # With d = size·u, the set (1 − γ)‖d‖² + γ‖d‖₁ ≤ 1 is ‖u‖² + γ·size·‖u‖₁ ≤ 1.
    size = 1.0 / math.sqrt(1.0 - gamma1)
    return AtomSet(ElasticNetBall(gamma1 * size, positive=posD), size)
