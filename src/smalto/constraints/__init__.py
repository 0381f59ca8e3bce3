"""Constraints: the convex sets that atoms must lie in (Section 5.2 of the paper)."""

from smalto.constraints.base import Constraint
from smalto.constraints.elastic_net_ball import ElasticNetBall
from smalto.constraints.fused_lasso_ball import FusedLassoBall
from smalto.constraints.l2_ball import L2Ball
from smalto.constraints.simplex import Simplex

__all__ = ["Constraint", "ElasticNetBall", "FusedLassoBall", "L2Ball", "Simplex"]
