"""Slow NumPy twins of the norms over nested groups and of the coders that use them."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def lists(coder):
    """The groups of a coder as lists of atoms, and their weights."""
    if getattr(coder, "parents", None) is not None:
        k = len(coder.parents)
        groups = [[] for _ in range(k)]
        for atom in range(k):
            above = atom
            while above >= 0:
                groups[above].append(atom)
                above = coder.parents[above]
    elif isinstance(coder.atom_groups[0], tuple):
        groups = [list(group) for group in coder.atom_groups]
    else:
        labels = np.array(coder.atom_groups)
        groups = [list(np.flatnonzero(labels == g)) for g in range(labels.max() + 1)]
    return groups, np.ones(len(groups)) if coder.group_weights is None else np.array(
        coder.group_weights
    )


def penalty(a, coder):
    """ψ of one code, from its definition."""
    groups, weights = lists(coder)
    total = sum(w * np.linalg.norm(a[g]) for g, w in zip(groups, weights, strict=True))
    return coder.lam * total + coder.l1 * np.abs(a).sum() + 0.5 * coder.ridge * (a @ a)


def prox(v, coder, step=1.0):
    """``argmin_u ½‖u − v‖² + step ψ(u)`` without the ridge: group by group, small ones first."""
    groups, weights = lists(coder)
    v = np.maximum(v, 0.0) if coder.positive else v
    v = np.sign(v) * np.maximum(np.abs(v) - step * coder.l1, 0.0)
    for g in sorted(range(len(groups)), key=lambda g: len(groups[g])):
        norm, less = np.linalg.norm(v[groups[g]]), step * coder.lam * weights[g]
        v[groups[g]] *= 1.0 - less / norm if norm > less else 0.0
    return v


def dual_norm(c, coder):
    """The least t for which the proximal operator of tψ takes c to zero, by bisection."""
    low, high = 0.0, 1.0
    while prox(c, coder, high).any():
        high *= 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if prox(c, coder, middle).any() else (low, middle)
    return high


def encode(x, D, coder, steps=20_000):
    """Proximal gradient steps with Nesterov's momentum, restarted."""
    G, q = D @ D.T + coder.ridge * np.eye(len(D)), D @ x
    step = 1.0 / np.linalg.eigvalsh(G)[-1]
    a = b = np.zeros(len(D))
    t = 1.0
    for _ in range(steps):
        new = prox(b + step * (q - G @ b), coder, step)
        if (b - new) @ (new - a) > 0:
            t = 1.0
        following = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        b = new + (t - 1) / following * (new - a)
        a, t = new, following
    return a


def objective(x, D, a, coder):
    """``½‖x − aD‖² + ψ(a)``."""
    return 0.5 * np.sum((x - a @ D) ** 2) + penalty(a, coder)


def violation(X, D, codes, coder):
    """How far each code is from ``α = prox(α − gradient)``, which holds just at the optimum."""
    C = (X - codes @ D) @ D.T - coder.ridge * codes
    return np.array([np.abs(a - prox(a + c, coder)).max() for a, c in zip(codes, C, strict=True)])
