"""One list of small calls that need every kernel, in each dtype.

A call that compiles something which no task here does belongs into one of them:
`tests/kernels/test_warming_up.py` finds kernels that are missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders import (
    L0,
    OMP,
    Bridge,
    ErrorBound,
    GroupLasso,
    JointLasso,
    JointOMP,
    L1Ball,
    Lasso,
    Ridge,
    TreeLasso,
    encode,
    lasso_path,
)
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes, compressed
from smalto.coders.off_least_squares import off_roughly
from smalto.constraints import Constraint, ElasticNetBall, FusedLassoBall, L2Ball, Simplex
from smalto.kernels import compiled_files
from smalto.kernels.compiling import seconds_of_compiling

_N, _SIDE, _K = 160, 4, 24  # signals, side of the patches that they are, atoms
_LIMITS: dict[str, Any] = {"max_steps": 3, "n_threads": 1, "random_state": 0}


def _encode(X: Any, D: Array, coder: Any, **options: Any) -> Any:
    return encode(X, D, coder, n_threads=1, return_info=True, **options)[0]


def _run_lasso(X: Array, D: Array) -> None:
    codes = _encode(X, D, Lasso(0.3))
    _encode(X, D, Lasso(0.3), start=codes)
    _encode(scipy.sparse.csr_array(X), D, Lasso(0.3, ridge=0.1, positive=True))


def _run_masked_lasso(X: Array, D: Array) -> None:
    mask = np.random.default_rng(1).random(X.shape) < 0.2
    _encode(X, D, Lasso(0.3), mask=mask)
    _encode(X, D, Lasso(0.3, penalty_weights=np.ones(len(D))))
    _encode(X, D, Bridge(0.1))


def _run_lasso_path(X: Array, D: Array) -> None:
    lasso_path(X[0], D)
    _encode(X, D, Lasso(mean_nonzeros=4))


def _run_constrained(X: Array, D: Array) -> None:
    mask = np.random.default_rng(1).random(X.shape) < 0.2
    doubled = np.concatenate([D, D])  # rows left undecided, which the homotopy solves
    for coder in (L1Ball(1.0), ErrorBound(0.5)):
        _encode(X, D, coder)
        _encode(X, D, coder, mask=mask)
        _encode(X, doubled, coder)


def _run_homotopy(X: Array, D: Array) -> None:
    """Call what few signals of `_run_constrained` need for all signals."""
    from smalto.coders.chunks import padded_width
    from smalto.coders.constrained_solver import follow_rows
    from smalto.kernels.coding.arguments import SparseRows
    from smalto.kernels.coding.lars import AT_ERROR, Bounds
    from smalto.kernels.coding.lasso import make_search

    width = padded_width(len(D))
    G, Q = np.zeros((width, width)), np.zeros((len(X), width), X.dtype)
    G[: len(D), : len(D)], Q[:, : len(D)] = D @ D.T, X @ D.T
    bounds = Bounds(AT_ERROR, np.full(len(X), 0.5), np.einsum("ij,ij->i", X, X, dtype=float), False)
    size = len(X) * width
    out = SparseRows(
        np.zeros(len(X) + 1, np.int64), np.empty(size, np.int32), np.empty(size, X.dtype)
    )
    active = make_search(width, width, X.dtype).active
    follow_rows(G.reshape(-1), Q, 0, len(X), bounds, active, out)


def _run_pursuit(X: Array, D: Array) -> None:
    for coder in (OMP(4), OMP(4, positive=True), OMP(eps=0.1, look_ahead=False), L0(0.1)):
        codes = _encode_uncertified(X, D, coder)
    # what few codes of a pursuit need
    off_roughly(compressed(codes.toarray()), X, D.astype(np.float64), D @ D.T)


def _run_masked_pursuit(X: Array, D: Array) -> None:
    mask = np.random.default_rng(1).random(X.shape) < 0.2
    _encode_uncertified(X, D, OMP(4), mask=mask)


def _run_joint_pursuit(X: Array, D: Array) -> None:
    _encode_uncertified(X, D, JointOMP(4), groups=np.arange(len(X)) // 8)


def _encode_uncertified(X: Array, D: Array, coder: Any, **options: Any) -> Any:
    return encode(X, D, coder, n_threads=1, **options)


def _run_joint_lasso(X: Array, D: Array) -> None:
    _encode(X, D, JointLasso(0.5), groups=np.arange(len(X)) // 8)


def _run_groups(X: Array, D: Array) -> None:
    mask = np.random.default_rng(1).random(X.shape) < 0.2
    four = np.arange(len(D)).reshape(-1, 4).tolist()
    codes = _encode(X, D, GroupLasso(0.3, four))
    GroupLasso(0.3, four).penalty(codes)
    _encode(X, D, GroupLasso(0.3, four, positive=True), start=codes)
    _encode(X[:2], D, GroupLasso(0.3, four), mask=mask[:2])
    _encode(X, D, TreeLasso(0.3, [-1, *((np.arange(1, len(D)) - 1) // 2).tolist()]))


def _learn(X: Any, coder: Any = None, **options: Any) -> Any:
    from smalto import learn

    # Codes have few nonzeros: what many of them are added with is no kernel.
    return learn(X, _K, coder or Lasso(2.0), **{**_LIMITS, **options})


def _run_learning(X: Array, D: Array) -> None:
    from smalto.learners import SGD, Batch, Online

    _learn(X, validation=X[:20])
    _learn(scipy.sparse.csr_array(X))
    _learn(X, learner=Online(32, memory="replace"), max_steps=12)
    _learn(X, learner=Online(features=0.5))
    _learn(X, learner=Batch())
    _learn(X, learner=SGD(1.0, 10.0))
    _learn(X, sample_weight=np.ones(len(X)))
    _merge_codes(X)


def _merge_codes(X: Array) -> None:
    """Call what happens to stored codes when an atom is replaced."""
    from smalto.learning.memory.code_store import CodeStore

    store = CodeStore.empty(len(X), X.dtype)
    store.merge(0, 1, 1.0)


def _run_learning_masked(X: Array, D: Array) -> None:
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    _learn(holes, missing="nan")


def _run_learning_other_codes(X: Array, D: Array) -> None:
    _learn(X, OMP(3))
    _learn(X, Ridge(0.1))


@dataclass(frozen=True)
class _BestAtom(Coder):
    """Codes with one nonzero, found without any kernel: what remains are those of learning."""

    def solver(self, G: Array) -> Solver:
        def solve(chunk: Chunk) -> Codes:
            rows = np.arange(len(chunk.Q))
            atoms = np.abs(chunk.Q).argmax(axis=1).astype(np.int32)
            return Codes(np.arange(len(rows) + 1), atoms, chunk.Q[rows, atoms])

        return solve

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        return np.zeros(codes.shape[0])


def _run_constraints(*constraints: Constraint) -> Callable[[Array, Array], None]:
    def run(X: Array, D: Array) -> None:
        for constraint in constraints:
            _learn(X, _BestAtom(), constraint=constraint)
        atom = D[0].copy()
        constraints[0].project(atom)
        constraints[0].gauge(atom)

    return run


def _run_projections(X: Array, D: Array) -> None:
    from smalto import projections as p

    for positive in (False, True):
        p.project_l2_ball(X, positive=positive, n_threads=1)
        p.project_l1_ball(X, positive=positive, n_threads=1)
        p.project_elastic_net_ball(X, 0.3, positive=positive, n_threads=1)
    p.project_simplex(X, n_threads=1)
    for method in ("direct", "merge", "homotopy"):
        p.project_fused_lasso_ball(X, 0.3, 0.3, method=method, n_threads=1)
        p.fused_lasso_signal(X, 0.1, 0.1, method=method, n_threads=1)
    p.fused_lasso_path(X[0])


def _run_nmf(X: Array, D: Array) -> None:
    from smalto import NMF

    for lam in (0.0, 0.1):
        model = NMF(6, lam=lam, max_epochs=5, n_threads=1, random_state=0)
        model.fit(np.abs(X)).transform(np.abs(X))
        model.fit(scipy.sparse.csr_array(np.abs(X)))
    model.partial_fit(np.abs(X))
    sparse_atoms = ElasticNetBall(0.1, positive=True)
    NMF(6, constraint=sparse_atoms, max_epochs=3, n_threads=1, random_state=0).fit(np.abs(X))
    _encode(X, D, Lasso(0.0, positive=True))


def _run_sparse_pca(X: Array, D: Array) -> None:
    from smalto import SparsePCA

    problems: tuple[dict[str, Any], ...] = (
        {"gamma": 0.3},
        {"density": 0.5},
        {"gamma": 0.3, "fused": 0.3},
    )
    for options in problems:
        SparsePCA(4, **options, max_steps=2, n_threads=1, random_state=0).fit(X).transform(X)


def _run_sparse_cca(X: Array, D: Array) -> None:
    from smalto import SparseCCA

    SparseCCA(1, max_nonzeros_x=4).fit(X, np.roll(X, 1, axis=1)).transform(X)


def _picture(X: Array, channels: int = 1) -> Array:
    """A picture of 24 x 24 pixels in [0, 1]."""
    rows, columns = np.mgrid[:24, :24]
    gray = 0.5 + 0.3 * np.sin(rows / 3.0) * np.cos(columns / 4.0)
    noise = np.random.default_rng(0).standard_normal((24, 24, channels))
    return np.asarray(np.clip(gray[:, :, None] + 0.05 * noise, 0.0, 1.0), X.dtype)


_SMALL: dict[str, Any] = {"patch_size": _SIDE, "n_atoms": _K, **_LIMITS}


def _run_patches(X: Array, D: Array) -> None:
    from smalto.datasets import random_patches
    from smalto.image import PatchSource, reconstruct

    picture = _picture(X, 3)
    damage = np.zeros((24, 24), np.bool_)
    damage[3:6, 10:12] = True
    kinds = {"float32": 1, "float64": 1, "uint8": 255, "uint16": 65535}  # and their largest value
    for dtype, largest in kinds.items():
        pixels = (largest * picture).astype(dtype)
        for options in (
            {"min_contrast": 0.01, "by_channel": True},
            {"mask": damage},
            {"mask": damage, "min_known": 0.5},
        ):
            source = PatchSource(pixels, _SIDE, dtype=X.dtype, n_threads=1, **options)
            source.rows(np.arange(40))
        random_patches(pixels, _SIDE, 40, dtype=X.dtype, random_state=0)
    plain = {"center": False, "normalize": False, "skip_constant": False}
    source = PatchSource(picture, _SIDE, dtype=X.dtype, **plain)
    reconstruct(source.rows(np.arange(source.n_rows)), picture.shape, _SIDE)


def _run_denoise(X: Array, D: Array) -> None:
    from smalto.image import denoise, estimate_noise

    picture = _picture(X)[:, :, 0]
    estimate_noise(picture)
    denoise(picture, 0.05, effort=0, **_SMALL)


def _run_joint_denoise(X: Array, D: Array) -> None:
    from smalto.image import denoise

    denoise(_picture(X)[:, :, 0], 0.05, effort=2, **_SMALL)


def _run_inpaint(X: Array, D: Array) -> None:
    from smalto.image import inpaint

    damage = np.zeros((24, 24), np.bool_)
    damage[3:6, 10:12] = True
    inpaint(_picture(X)[:, :, 0], damage, n_rounds=1, **_SMALL)


def _run_video(X: Array, D: Array) -> None:
    from smalto.image import FrameLearner, denoise_video, inpaint_video

    frames = [_picture(X)[:, :, 0]] * 4
    options = {name: value for name, value in _SMALL.items() if name != "max_steps"}
    FrameLearner(_SIDE, _K, n_threads=1, random_state=0).partial_fit(frames[0])
    for _ in denoise_video(frames, 0.05, steps_per_frame=1, effort=1, **options):
        pass
    for _ in inpaint_video(frames, np.eye(24, dtype=np.bool_), n_threads=1):
        pass


# Those that compile longest come first, so that no process is left with one of them at the end.
_FAMILIES: dict[str, Callable[[Array, Array], None]] = {
    "lasso": _run_lasso,
    "groups": _run_groups,
    "projections": _run_projections,
    "constrained": _run_constrained,
    "joint_lasso": _run_joint_lasso,
    "masked_pursuit": _run_masked_pursuit,
    "masked_lasso": _run_masked_lasso,
    "pursuit": _run_pursuit,
    "FusedLassoBall": _run_constraints(
        FusedLassoBall(0.3, 0.3), FusedLassoBall(density=0.5, gamma2=0.3)
    ),
    "ElasticNetBall": _run_constraints(ElasticNetBall(0.3), ElasticNetBall(density=0.5)),
    "Simplex": _run_constraints(Simplex()),
    "patches": _run_patches,
    "joint_pursuit": _run_joint_pursuit,
    "L2Ball": _run_constraints(L2Ball(), L2Ball(positive=True)),
    "learning": _run_learning,
    "sparse_pca": _run_sparse_pca,
    "nmf": _run_nmf,
    "lasso_path": _run_lasso_path,
    "homotopy": _run_homotopy,
    "denoise": _run_denoise,
    "joint_denoise": _run_joint_denoise,
    "inpaint": _run_inpaint,
    "video": _run_video,
    "learning_masked": _run_learning_masked,
    "learning_other_codes": _run_learning_other_codes,
    "sparse_cca": _run_sparse_cca,
}


def names(only: Sequence[str] | None = None) -> list[str]:
    """Return the names of the tasks, as "lasso:float32".

    ``only`` may restrict them to families ("lasso") or to tasks. An unknown one is a ValueError.
    """
    dtypes = ("float32", "float64")  # in this order: the latter also use kernels of the former
    everything = [f"{family}:{dtype}" for dtype in dtypes for family in _FAMILIES]
    if only is None:
        return everything
    unknown = sorted(set(only) - set(_FAMILIES) - set(everything))
    if unknown:
        message = f"kernels must be of {', '.join(_FAMILIES)}, got {', '.join(unknown)}"
        raise ValueError(message)
    return [name for name in everything if name in only or name.split(":")[0] in only]


def run(name: str) -> dict[str, Any]:
    """Run a task; return the seconds of compiling, and the files that were read and written."""
    family, dtype = name.split(":")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((_N, _SIDE * _SIDE)).astype(dtype)
    D = rng.standard_normal((_K, _SIDE * _SIDE)).astype(dtype)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    before = seconds_of_compiling()
    with warnings.catch_warnings(), compiled_files.recorded() as files:
        warnings.simplefilter("ignore")
        _FAMILIES[family](X, D)
    seconds = seconds_of_compiling() - before
    return {"seconds": seconds, "read": sorted(files.read), "made": sorted(files.made)}
