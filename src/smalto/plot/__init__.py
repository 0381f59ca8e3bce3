"""Pictures of dictionaries, costs, codes and results, with matplotlib.

``pip install "smalto[plot]"``. Every function draws into the axes it is given, or into a figure
of its own that needs no display, and returns what it has drawn:
``dictionary_mosaic(D).figure.savefig("dictionary.png")``. Nothing is shown and no global state
of pyplot is touched.
"""

from smalto.plot.curves import atom_use, cost_curve, path_curve
from smalto.plot.mosaics import dictionary_mosaic, mosaic
from smalto.plot.pictures import before_after

__all__ = [
    "atom_use",
    "before_after",
    "cost_curve",
    "dictionary_mosaic",
    "mosaic",
    "path_curve",
]
