"""SPAMS's functions, solved by smalto: ``import smalto.compat.spams as spams``.

Names, parameters, their order and defaults, the orientation (signals and atoms are columns) and the
outputs (csc matrices, arrays in Fortran order) are those of SPAMS 2.6. Inputs need not be in Fortran
order nor of a float type, nothing is printed, wrong input raises, and Ctrl-C works.

========================  ==========================================================================
function                  here
========================  ==========================================================================
lasso                     modes 0, 1, 2: `L1Ball`, `ErrorBound`, `Lasso`, exact
lassoMask                 the same with a mask; ``lambda1`` times the share of known entries (1, 2)
lassoWeighted             the same with ``penalty_weights``
cd                        as lasso, modes 1 and 2
omp, ompMask              `OMP`, `L0`; limits may be arrays; ``eps`` times the share of known entries
somp                      `JointOMP`
l1L2BCD                   ``JointLasso(lambda1 / 2, by_size=True)``, mode 2
trainDL                   ``learn`` with `Online`, `Batch` or `SGD`; modes 0 to 5, modeD 0 to 3
trainDL_Memory            ``learn`` with ``Online(memory="replace")``
structTrainDL             regul "l0", "l1", "l2", "elastic-net", "tree-l2", "none"
nmf, nnsc                 `NMF`, or ``learn`` where parameters ask for it
fistaFlat                 loss "square", "square-missing"; regul "l0", "l1", "l2", "l2-not-squared",
                          "l1-constraint", "elastic-net", "group-lasso-l2",
                          "sparse-group-lasso-l2", "l1l2", "none"
fistaTree                 the same losses; regul "tree-l2"
proximalFlat              as fistaFlat, and "linf", "fused-lasso", "group-lasso-linf"
proximalTree              regul "tree-l2", "tree-linf"
sparseProject             all modes, exact
normalize                 the same; columns of zeros stay zero
im2col_sliding            the same
displayPatches            the same; atoms of 3p² values are colored
linear algebra, graphs,   NotImplementedError that says what to use instead
archetypes, group trees
========================  ==========================================================================

What happens to parameters:

======================================  ============================================================
parameter                               here
======================================  ============================================================
lambda1                                 smalto's ``lam``, ``radius`` or ``eps``, never rescaled but
                                        in lassoMask (above) and l1L2BCD (halved, as in SPAMS)
lambda2                                 ``ridge``: of ``½‖α‖²`` (what SPAMS does, not what it says)
numThreads                              number of threads; results do not depend on it
batchsize=-1                            512 (SPAMS: 256 · (threads + 1))
iter                                    mini-batches; negative: seconds
t0                                      ``Online(t0=)``
modeParam, rho                          0: ``Online(rho=3)``; 1: ``Online(rho=)``, with the paper's
                                        sign; 2: NotImplementedError
clean                                   ``Replacement()``, or no replacement
whiten                                  subtracts the mean of each sample
model                                   A, B and iter go on, and are returned
L (lasso)                               codes with more nonzeros are points of their paths
max_length_path                         below its default: NotImplementedError
ols, log, log_deprecated, transpose,    if true: NotImplementedError
is_inner_weights
pos, posAlpha                           honored everywhere (SPAMS ignores it in greedy modes and for
                                        the fused lasso), but not available for "l1l2" in fistaFlat
itermax, max_it, tol, it0, L0, gamma,   no effect: solutions are exact
fixed_step, ista, subgrad, admm,
compute_gram, cholesky, ...
verbose, expand, logName                no effect
A0, alpha0, W0                          checked; exact solutions do not depend on the start
======================================  ============================================================

Examples
--------
>>> import numpy as np
>>> import smalto.compat.spams as spams
>>> rng = np.random.default_rng(0)
>>> X = spams.normalize(rng.standard_normal((16, 1000)))
>>> D = spams.trainDL(X, K=32, lambda1=0.15, iter=20)
>>> alpha = spams.lasso(X, D, lambda1=0.15)
>>> D.shape, alpha.shape, alpha.format
((16, 32), (32, 1000), 'csc')
"""

from smalto.compat.spams.decomposition import cd, l1L2BCD, lasso, lassoMask, lassoWeighted, somp
from smalto.compat.spams.dictionary_learning import (
    nmf,
    nnsc,
    structTrainDL,
    trainDL,
    trainDL_Memory,
)
from smalto.compat.spams.elsewhere import (
    archetypalAnalysis,
    bayer,
    calcAAt,
    calcXAt,
    calcXtY,
    calcXY,
    calcXYt,
    conjGrad,
    decompSimplex,
    fistaGraph,
    graphOfGroupStruct,
    groupStructOfString,
    invSym,
    mult,
    proximalGraph,
    readGroupStruct,
    simpleGroupTree,
    sort,
    treeOfGroupStruct,
)
from smalto.compat.spams.modes import L1COEFFS, L2ERROR, L2ERROR2, PENALTY, PENALTY2, SPARSITY
from smalto.compat.spams.pictures import displayPatches, im2col_sliding
from smalto.compat.spams.projecting import normalize, sparseProject
from smalto.compat.spams.proximal import proximalFlat, proximalTree
from smalto.compat.spams.pursuit import omp, ompMask
from smalto.compat.spams.regression import fistaFlat, fistaTree

__all__ = [
    "L1COEFFS",
    "L2ERROR",
    "L2ERROR2",
    "PENALTY",
    "PENALTY2",
    "SPARSITY",
    "archetypalAnalysis",
    "bayer",
    "calcAAt",
    "calcXAt",
    "calcXY",
    "calcXYt",
    "calcXtY",
    "cd",
    "conjGrad",
    "decompSimplex",
    "displayPatches",
    "fistaFlat",
    "fistaGraph",
    "fistaTree",
    "graphOfGroupStruct",
    "groupStructOfString",
    "im2col_sliding",
    "invSym",
    "l1L2BCD",
    "lasso",
    "lassoMask",
    "lassoWeighted",
    "mult",
    "nmf",
    "nnsc",
    "normalize",
    "omp",
    "ompMask",
    "proximalFlat",
    "proximalGraph",
    "proximalTree",
    "readGroupStruct",
    "simpleGroupTree",
    "somp",
    "sort",
    "sparseProject",
    "structTrainDL",
    "trainDL",
    "trainDL_Memory",
    "treeOfGroupStruct",
]
