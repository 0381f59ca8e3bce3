"""
A constraint of your own
========================

Faces are nearly symmetric. Could atoms for faces be exactly symmetric? There is no such constraint
in the library, but it takes a few lines of plain Python: say how to find the nearest allowed atom,
and how far an atom is from being allowed.
"""

# %%
# Two methods
# -----------
#
# The nearest symmetric picture is the mean of the picture and its mirror image. Then the atom is
# scaled down if its norm is above 1.

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import lfw_subset

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.constraints import Constraint, L2Ball
from smalto.plot import dictionary_mosaic


def mirrored(atom):
    """The mirror image of a picture of 25 x 25 pixels."""
    return atom.reshape(25, 25)[:, ::-1].ravel()


@dataclass(frozen=True)
class Symmetric(Constraint):
    """Atoms of norm at most 1 whose left and right halves are mirror images."""

    def project(self, atom):
        """Replace an atom by the nearest one in the set."""
        atom[:] = (atom + mirrored(atom)) / 2
        atom /= max(1.0, np.linalg.norm(atom))

    def gauge(self, atom):
        """Return a number that is at most 1 just when the atom is in the set."""
        if np.allclose(atom, mirrored(atom), atol=1e-6):
            return float(np.linalg.norm(atom))
        return float("inf")


# %%
# It is used like any other
# -------------------------

X = lfw_subset()[:100].reshape(100, -1)
X -= X.mean(axis=0)
X /= np.linalg.norm(X, axis=1, keepdims=True)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for ax, constraint in zip(axes, [L2Ball(), Symmetric()], strict=True):
    D = learn(X, 25, Lasso(lam=0.1), constraint, random_state=0).D
    codes = encode(X, D, Lasso(lam=0.1))
    error = np.linalg.norm(X - codes @ D) ** 2 / np.linalg.norm(X) ** 2
    off = max(abs(atom - mirrored(atom)).max() for atom in D)
    print(f"{constraint}: {error:.0%} of the faces left over, off symmetry by {off:.0e}")
    dictionary_mosaic(D, (25, 25), ax=ax)
    ax.set_title(str(constraint))
assert off < 1e-12
plt.show()
