"""Similar patches that lie near each other."""

from __future__ import annotations

from typing import NamedTuple

from smalto.kernels.jit import kernel
from smalto.kernels.simd import above, fma, lanes, load, lowest_bit, splat, store, zero

AT_ONCE = 64  # numbers after the end of a picture that may be read, and are never used


class Planes(NamedTuple):
    """Where the numbers of a patch are in a flat picture, one channel after the other."""

    line: int  # numbers in a line of the picture
    plane: int  # numbers in a channel
    channels: int
    height: int  # lines of a patch
    width: int  # numbers in a line of a patch


@kernel
def _distances(flat, planes, here, there, limit, out):
    """``‖x − y‖²`` of the patch x at ``here`` and those that begin at ``there``, ``there + 1``, ...

    There are four vectors of them. Return an integer with a bit for each that is at most ``limit``;
    if it is 0, nothing has been written.
    """
    line, plane, channels, height, width = planes
    step = lanes(flat)
    bound = splat(flat.dtype.type(limit))
    everything = (1 << step) - 1
    p, q, r, s = zero(flat), zero(flat), zero(flat), zero(flat)
    for a in range(height):
        for b in range(a * line, a * line + width):
            for at in range(b, b + channels * plane, plane):
                x = splat(flat[here + at])
                y = x - load(flat, there + at)
                p = fma(y, y, p)
                y = x - load(flat, there + at + step)
                q = fma(y, y, q)
                y = x - load(flat, there + at + 2 * step)
                r = fma(y, y, r)
                y = x - load(flat, there + at + 3 * step)
                s = fma(y, y, s)
        if a % 2 or a == height - 1:
            far = above(p, bound) & above(q, bound) & above(r, bound) & above(s, bound)
            if far == everything:
                return 0
    store(out, 0, p)
    store(out, step, q)
    store(out, 2 * step, r)
    store(out, 3 * step, s)
    near = (everything ^ above(p, bound)) | (everything ^ above(q, bound)) << step
    near |= (everything ^ above(r, bound)) << 2 * step
    return near | (everything ^ above(s, bound)) << 3 * step


@kernel
def _enter(distance, number, distances, found, count):
    """Enter a patch into the nearest so far, by distance and number; return how many these are."""
    place = count
    if count == distances.size:
        place -= 1  # full: the farthest leaves
    else:
        count += 1
    while place > 0 and (
        distances[place - 1] > distance
        or (distances[place - 1] == distance and found[place - 1] > number)
    ):
        distances[place] = distances[place - 1]
        found[place] = found[place - 1]
        place -= 1
    distances[place] = distance
    found[place] = number
    return count


@kernel
def nearest_alike(flat, planes, shape, row, places, reach, distances, scratch, found):
    """Find the patches most similar to some patches of one row of patches.

    There are ``shape`` (rows, columns) patches, numbered row by row; the patches to compare with
    others are those of row ``row`` in the columns ``places``. The others are at most ``reach``
    rows and columns away; of equally similar ones, the first count. ``found`` (len(places), most)
    receives the numbers of the ``most`` nearest ones, by increasing distance and the patch itself
    first; there must be that many. ``flat`` ends with `AT_ONCE` numbers more than the picture has.
    ``distances`` (most,) and ``scratch`` (AT_ONCE,), of the type of the picture, are overwritten.
    """
    line = planes.line
    lines, columns = shape
    most = distances.size
    at_once = 4 * lanes(flat)
    for i in range(places.size):
        column = places[i]
        here = row * line + column
        first, end = max(column - reach, 0), min(column + reach + 1, columns)
        own = row * columns + column
        count = _enter(-1.0, own, distances, found[i], 0)  # before all that are equal to it
        # Rows nearby first: their patches are the most similar, and others are given up sooner.
        for away in range(2 * reach + 1):
            r = row - (away + 1) // 2 if away % 2 else row + away // 2
            if not 0 <= r < lines:
                continue
            for c in range(first, end, at_once):
                limit = distances[most - 1] if count == most else float("inf")
                near = _distances(flat, planes, here, r * line + c, limit, scratch)
                while near:
                    p = lowest_bit(near)
                    near &= near - 1
                    if p >= end - c:
                        break
                    distance, number = float(scratch[p]), r * columns + c + p
                    if number == own or distance > limit:
                        continue
                    if count == most and distance == limit and number > found[i, most - 1]:
                        continue
                    count = _enter(distance, number, distances, found[i], count)
                    if count == most:
                        limit = distances[most - 1]
