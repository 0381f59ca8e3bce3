"""Similar patches that lie near each other."""

from __future__ import annotations

from smalto.kernels.jit import kernel, summing


@summing
def _distance(flat, here, there, line, height, span, bound):
    """``‖x − y‖²`` of two patches; where it exceeds ``bound``, some number above ``bound``."""
    total = 0.0
    for a in range(height):
        part = flat.dtype.type(0.0)
        for b in range(span):
            difference = flat[here + a * line + b] - flat[there + a * line + b]
            part += difference * difference
        total += part
        if total > bound:
            break
    return total


@kernel
def nearest_alike(flat, layout, shape, row, places, reach, distances, found):
    """Find the patches most similar to some patches of one row of patches.

    There are ``shape`` (rows, columns) patches, numbered row by row; the patches to compare with
    others are those of row ``row`` in the columns ``places``. The others are at most ``reach``
    rows and columns away; of equally similar ones, the first count. ``found`` (len(places), most)
    receives the numbers of the ``most`` nearest ones, the patch itself among them, by increasing
    distance; there must be that many. ``distances`` (most,) is scratch.
    """
    line, height, span, channels = layout
    lines, columns = shape
    most = distances.size
    for i in range(places.size):
        column = places[i]
        here = row * line + column * channels
        count, limit = 0, float("inf")
        for r in range(max(row - reach, 0), min(row + reach + 1, lines)):
            for c in range(max(column - reach, 0), min(column + reach + 1, columns)):
                there = r * line + c * channels
                distance = _distance(flat, here, there, line, height, span, limit)
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
