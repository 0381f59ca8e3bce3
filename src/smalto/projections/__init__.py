"""Euclidean projections onto the constraint sets of the paper (Section 5.2, Appendix B).

Every function takes a vector (m,) or the rows of a matrix (n, m), keeps float32 and float64
(other types become float64), leaves its input unchanged, and distributes rows over threads.
Solutions are exact: the multiplier of the constraint has a closed form, and zeros of the solution
are exact zeros. A point inside the set is returned unchanged, bit for bit.
"""

from smalto.projections.elastic_net import elastic_net_main_form, project_elastic_net_ball
from smalto.projections.fused_lasso import project_fused_lasso_ball
from smalto.projections.fused_lasso_signal import (
    FusedLassoPath,
    fused_lasso_path,
    fused_lasso_signal,
)
from smalto.projections.l1 import project_l1_ball
from smalto.projections.l2 import project_l2_ball
from smalto.projections.simplex import project_simplex

__all__ = [
    "FusedLassoPath",
    "elastic_net_main_form",
    "fused_lasso_path",
    "fused_lasso_signal",
    "project_elastic_net_ball",
    "project_fused_lasso_ball",
    "project_l1_ball",
    "project_l2_ball",
    "project_simplex",
]
