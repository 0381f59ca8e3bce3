"""Similar patches that lie near each other."""

from __future__ import annotations

from smalto.kernels.jit import kernel, summing


@summing
def _distances(flat, here, there, layout, out):
    """``‖x − y‖²`` of the patch x at ``here`` and those that begin at ``there``, ``there + 1``, ..."""
    line, height, span, _ = layout
    out[:] = 0.0
    for a in range(height):
        begin = there + a * line
        for b in range(span):
            value = flat[here + a * line + b]
            for p in range(out.size):
                difference = value - flat[begin + b + p]
                out[p] += difference * difference


@kernel
def nearest_alike(flat, layout, shape, row, places, reach, distances, scratch, found):
    """Find the patches most similar to some patches of one row of patches.

    There are ``shape`` (rows, columns) patches, numbered row by row; the patches to compare with
    others are those of row ``row`` in the columns ``places``. The others are at most ``reach``
    rows and columns away; of equally similar ones, the first count. ``found`` (len(places), most)
    receives the numbers of the ``most`` nearest ones, by increasing distance and the patch itself
    first; there must be that many. ``distances`` (most,) and ``scratch``, with
    ``(2 reach + 1) channels`` values of the type of the picture, are overwritten.
    """
    line, _, _, channels = layout
    lines, columns = shape
    most = distances.size
    for i in range(places.size):
        column = places[i]
        here = row * line + column * channels
        first, end = max(column - reach, 0), min(column + reach + 1, columns)
        row_of = scratch[: (end - first - 1) * channels + 1]
        count, limit = 0, float("inf")
        for r in range(max(row - reach, 0), min(row + reach + 1, lines)):
            _distances(flat, here, r * line + first * channels, layout, row_of)
            if r == row:
                row_of[(column - first) * channels] = -1.0  # before all that are equal to it
            for c in range(first, end):
                distance = row_of[(c - first) * channels]
                if count == most:
                    if distance >= limit:
                        continue
                    count -= 1  # full: the farthest leaves
                place = count
                while place > 0 and distances[place - 1] > distance:
                    distances[place] = distances[place - 1]
                    found[i, place] = found[i, place - 1]
                    place -= 1
                distances[place] = distance
                found[i, place] = r * columns + c
                count += 1
                if count == most:
                    limit = distances[most - 1]
