"""SPAMS."""
from smalto.compat.spams.decomposition import cd, l1L2BCD, lasso, lassoMask, lassoWeighted, somp
from smalto.compat.spams.pursuit import omp, ompMask
