"""Sparse coding problems (coders), and `encode`, which solves them."""

from smalto.coders._encode import Info, encode
from smalto.coders.base import Coder
from smalto.coders.bridge import Bridge
from smalto.coders.certificates import duality_gap
from smalto.coders.error_bound import ErrorBound
from smalto.coders.group_lasso import GroupLasso
from smalto.coders.joint_lasso import JointLasso
from smalto.coders.joint_omp import JointOMP
from smalto.coders.l0 import L0
from smalto.coders.l1_ball import L1Ball
from smalto.coders.lasso import Lasso
from smalto.coders.lasso_paths import Path, lasso_path
from smalto.coders.omp import OMP
from smalto.coders.ridge import Ridge
from smalto.coders.tree_lasso import TreeLasso

__all__ = [
    "L0",
    "OMP",
    "Bridge",
    "Coder",
    "ErrorBound",
    "GroupLasso",
    "Info",
    "JointLasso",
    "JointOMP",
    "L1Ball",
    "Lasso",
    "Path",
    "Ridge",
    "TreeLasso",
    "duality_gap",
    "encode",
    "lasso_path",
]
