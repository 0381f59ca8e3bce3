"""Patches that look alike and lie near each other."""

from __future__ import annotations

from smalto.kernels.jit import kernel, summing


@summing
def _distance(flat, here, there, line, height, span, bound):
    """``‖x − y‖²`` of two patches, or something larger than ``bound`` where it is larger."""
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
def nearest_alike(flat, line, channels, height, span, lines, columns, row, places, reach,
                  distances, found):  # fmt: skip
    """Write the places of the patches that are most alike to some patches of one line of places.

    ``places`` says in which columns those begin. Looked at are the patches at most ``reach`` rows
    and columns away, of all in ``lines`` and ``columns`` of places; of equals, the first count.
    ``found`` (len(places), most) gets the nearest, itself among them, as numbers of places in
    order of their distance; there must be so many. ``distances`` has room for ``most``.
    """
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
