"""Plots of dictionaries, costs, codes and restored pictures, with matplotlib.

Install it with ``pip install "smalto[plot]"``. Functions draw into the given axes or into a new
figure and return it: ``dictionary_mosaic(D).figure.savefig("dictionary.png")``. They need no
display, show nothing, and do not touch the global state of pyplot.
"""

from smalto.plot.before_after import before_after
from smalto.plot.curves import atom_use, cost_curve, path_curve, use_curve
from smalto.plot.lines import along_chromosomes, atom_lines
from smalto.plot.mosaics import dictionary_mosaic, mosaic

__all__ = [
    "along_chromosomes",
    "atom_lines",
    "atom_use",
    "before_after",
    "cost_curve",
    "dictionary_mosaic",
    "mosaic",
    "path_curve",
    "use_curve",
]
