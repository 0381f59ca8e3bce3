"""Groups of patches that look alike and lie near each other."""

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
def group_alike(flat, line, channels, height, span, first, lines, columns, reach, bound, most,
                distances, found, labels):  # fmt: skip
    """Give each patch of some lines of places the label of its group; returns how many groups.

    In the order of places, a patch that has no group yet founds one, which the nearest of those
    around it (at most ``reach`` rows and columns away, within these lines) join that have none
    and whose squared distance from it is at most ``bound``, until it has ``most`` members.
    ``labels`` (lines, columns) is written; ``distances`` and ``found`` have room for ``most``.
    """
    labels[:, :] = -1
    groups = 0
    for row in range(lines):
        for column in range(columns):
            if labels[row, column] >= 0:
                continue
            labels[row, column] = groups
            here = (first + row) * line + column * channels
            count, limit = 0, bound
            for r in range(row, min(row + reach + 1, lines)):
                # Places above, and to the left in this line, have their groups.
                left = column + 1 if r == row else max(column - reach, 0)
                for c in range(left, min(column + reach + 1, columns)):
                    if labels[r, c] >= 0:
                        continue
                    there = (first + r) * line + c * channels
                    distance = _distance(flat, here, there, line, height, span, limit)
                    if distance > limit or most == 1:
                        continue
                    if count == most - 1:  # full: the farthest leaves, if it is farther
                        if distance >= distances[count - 1]:
                            continue
                        count -= 1
                    place = count
                    while place > 0 and distances[place - 1] > distance:
                        distances[place] = distances[place - 1]
                        found[place] = found[place - 1]
                        place -= 1
                    distances[place] = distance
                    found[place] = r * columns + c
                    count += 1
                    if count == most - 1:
                        limit = distances[count - 1]
            for i in range(count):
                labels[found[i] // columns, found[i] % columns] = groups
            groups += 1
    return groups
