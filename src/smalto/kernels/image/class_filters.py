"""A filter for each class of pixels."""

from __future__ import annotations

from smalto.kernels.jit import summing


@summing
def apply_filters(planes, filters, classes, first, out):
    """Filter some rows of pixels of several planes at once, each pixel by the filter of its class.

    ``planes`` (count, height + 2r, width + 2r) are padded pictures, ``filters`` (classes, count,
    2r + 1, 2r + 1); ``classes`` and ``out`` (rows, width) are those of the rows from ``first`` on.
    """
    rows, width = out.shape
    count, side = filters.shape[1], filters.shape[2]
    for i in range(rows):
        for j in range(width):
            number = classes[i, j]
            total = 0.0
            for p in range(count):
                for a in range(side):
                    for b in range(side):
                        total += filters[number, p, a, b] * planes[p, first + i + a, j + b]
            out[i, j] = total
