"""Similar patches of neighboring frames, found by following the motion."""

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
def _search(flat, layout, shape, here, frame, center, reach, distances, found, count):
    """Enter the patches of one frame around a place into the nearest ones so far.

    ``found`` holds ``count`` of them by increasing ``distances``. Return the new count, and row and
    column of the most similar patch of this frame.
    """
    line, height, span, channels = layout
    _, lines, columns = shape
    most = distances.size
    picture = frame * (lines + height - 1) * line
    least, row, column = float("inf"), center[0], center[1]
    for r in range(max(center[0] - reach, 0), min(center[0] + reach + 1, lines)):
        for c in range(max(center[1] - reach, 0), min(center[1] + reach + 1, columns)):
            limit = distances[most - 1] if count == most else float("inf")
            there = picture + r * line + c * channels
            distance = _distance(flat, here, there, line, height, span, max(limit, least))
            if there == here:
                distance = -1.0  # before all that are equal to it
            if distance < least:
                least, row, column = distance, r, c
            if distance >= limit:
                continue
            if count == most:
                count -= 1  # full: the farthest leaves
            place = count
            while place > 0 and distances[place - 1] > distance:
                distances[place] = distances[place - 1]
                found[place] = found[place - 1]
                place -= 1
            distances[place] = distance
            found[place] = (frame * lines + r) * columns + c
            count += 1
    return count, row, column


@kernel
def nearest_along_motion(flat, layout, shape, reaches, frame, row, places, distances, found):
    """Find the patches of all frames that are most similar to some patches of one row of a frame.

    ``shape`` is (frames, rows, columns) of patches, numbered in this order. In the frame itself they
    are at most ``reaches[0]`` rows and columns away; in the others ``reaches[1]`` from where the
    motion from the frame before leads. ``found`` (len(places), most) receives the numbers of the
    nearest ones by increasing distance; there must be that many. ``distances`` (most,) is scratch.
    """
    line, height, _, channels = layout
    frames, lines, _ = shape
    for i in range(places.size):
        column = places[i]
        here = (frame * (lines + height - 1) + row) * line + column * channels
        count, _, _ = _search(
            flat, layout, shape, here, frame, (row, column), reaches[0], distances, found[i], 0
        )
        for way in (-1, 1):
            before, center = (row, column), (row, column)
            other = frame + way
            while 0 <= other < frames:
                count, r, c = _search(
                    flat, layout, shape, here, other, center, reaches[1], distances, found[i], count
                )
                center = (2 * r - before[0], 2 * c - before[1])  # the motion goes on
                before = (r, c)
                other += way
