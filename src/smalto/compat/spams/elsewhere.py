"""Functions of SPAMS that are not available here: they raise, and say what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from smalto.compat.spams.columns import refuse

_TREE = (
    "write the dictionary yourself, with eta_g, groups, own_variables and N_own_variables "
    "(see fistaTree)"
)
_GRAPH = "fistaTree and proximalTree take groups that are nested or disjoint"

WAYS_OUT = {
    "sort": "use numpy.sort(X)",
    "calcAAt": "use A @ A.T",
    "calcXAt": "use X @ A.T",
    "mult": "use X @ Y",
    "calcXY": "use X @ Y",
    "calcXYt": "use X @ Y.T",
    "calcXtY": "use X.T @ Y",
    "bayer": "use slices of NumPy arrays",
    "conjGrad": "use scipy.sparse.linalg.cg(A, b)",
    "invSym": "use numpy.linalg.inv(A)",
    "fistaGraph": _GRAPH,
    "proximalGraph": _GRAPH,
    "archetypalAnalysis": "smalto has none; smalto.learn with constraint=Simplex() is the nearest",
    "decompSimplex": "smalto has no codes on the simplex; lasso(mode=0, pos=True) is the nearest",
    "simpleGroupTree": _TREE,
    "readGroupStruct": _TREE,
    "groupStructOfString": _TREE,
    "treeOfGroupStruct": _TREE,
    "graphOfGroupStruct": _GRAPH,
}


def _unavailable(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **options: Any) -> NoReturn:
        refuse(name, WAYS_OUT[name])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raise NotImplementedError: {WAYS_OUT[name]}."
    return function


sort = _unavailable("sort")
calcAAt = _unavailable("calcAAt")
calcXAt = _unavailable("calcXAt")
mult = _unavailable("mult")
calcXY = _unavailable("calcXY")
calcXYt = _unavailable("calcXYt")
calcXtY = _unavailable("calcXtY")
bayer = _unavailable("bayer")
conjGrad = _unavailable("conjGrad")
invSym = _unavailable("invSym")
fistaGraph = _unavailable("fistaGraph")
proximalGraph = _unavailable("proximalGraph")
archetypalAnalysis = _unavailable("archetypalAnalysis")
decompSimplex = _unavailable("decompSimplex")
simpleGroupTree = _unavailable("simpleGroupTree")
readGroupStruct = _unavailable("readGroupStruct")
groupStructOfString = _unavailable("groupStructOfString")
treeOfGroupStruct = _unavailable("treeOfGroupStruct")
graphOfGroupStruct = _unavailable("graphOfGroupStruct")
