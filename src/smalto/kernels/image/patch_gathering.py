"""Cutting patches out of pictures, and putting them back.

Pictures are flat: pixel (r, c) of frame f of a stack (frames, height, width, channels) begins
at ``((f·height + r)·width + c)·channels``. They may have any number of axes: a patch is a number of
lines, each of them contiguous.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from smalto.kernels.jit import kernel, summing

MEAN, LOW, HIGH, CONTRAST = 0, 1, 2, 3  # columns of the measures of patches
# Columns of sums over the patches that cover a value: the first one that it received, the sum of
# weighted values relative to it, and that of weights. Side by side, since pictures whose sides are
# powers of two would else have too much in the same lines of the cache.
ORIGIN, TOTAL, PATCH_WEIGHT = 0, 1, 2


class Layout(NamedTuple):
    """Where the numbers of a patch are in a picture of two axes: ``height`` lines of ``span``."""

    line: int  # numbers in a line of the picture
    height: int  # lines of a patch
    span: int  # numbers in a line of a patch: its width times the channels
    channels: int


class Lines(NamedTuple):
    """Where the numbers of a patch with any number of axes are: lines of ``span`` numbers."""

    starts: Any  # where each line begins, from the corner of the patch on
    span: int  # numbers in a line of a patch: its width times the channels
    channels: int


class Treatment(NamedTuple):
    """What is done to patches: values are scaled, means subtracted, norms made 1."""

    scale: float
    groups: int  # means: 1 for all numbers, the number of channels for each channel, or 0
    normalize: bool


@summing
def measure(flat, corners, lines, scale, measures):
    """Measure the patches that begin at ``corners``, with values multiplied by ``scale``.

    ``measures`` (n, 4) receives the mean, the smallest and the largest value, and the mean over
    channels of the variance over pixels.
    """
    starts, span, channels = lines
    height = starts.size
    size = height * span
    for i in range(corners.size):
        start = corners[i]
        low = high = flat[start]
        total = contrast = 0.0
        for channel in range(channels):
            origin = float(flat[start + channel])  # values relative to it, so that little cancels
            sums = squares = 0.0
            for a in range(height):
                begin = start + starts[a]
                for at in range(begin + channel, begin + span, channels):
                    low = min(low, flat[at])
                    high = max(high, flat[at])
                    value = flat[at] - origin
                    sums += value
                    squares += value * value
            total += sums + origin * (size // channels)
            contrast += max(squares - sums * sums * channels / size, 0.0)
        measures[i, MEAN] = scale * (total / size)
        measures[i, LOW] = scale * low
        measures[i, HIGH] = scale * high
        measures[i, CONTRAST] = scale * scale * contrast / size


@summing
def gather(flat, corners, lines, treatment, out, means):
    """Copy the patches that begin at ``corners`` to the rows of ``out``.

    The means that are subtracted go to ``means`` (n, groups). Everything is computed in float64
    and rounded once.
    """
    starts, span, _ = lines
    height = starts.size
    scale, groups, normalize = treatment
    size = height * span
    step = max(groups, 1)
    for i in range(corners.size):
        start = corners[i]
        for g in range(groups):
            origin = float(flat[start + g])
            mean = 0.0
            for a in range(height):
                begin = start + starts[a]
                for at in range(begin + g, begin + span, step):
                    mean += flat[at] - origin
            means[i, g] = scale * (origin + mean * step / size)
        factor = 1.0
        if normalize:
            squares = 0.0
            for g in range(step):
                mean = means[i, g] if groups else 0.0
                for a in range(height):
                    begin = start + starts[a]
                    for at in range(begin + g, begin + span, step):
                        value = scale * flat[at] - mean
                        squares += value * value
            factor = 1.0 / squares**0.5 if squares > 0.0 else 0.0
        for g in range(step):
            mean = means[i, g] if groups else 0.0
            for a in range(height):
                begin = start + starts[a]
                for b in range(g, span, step):
                    out[i, a * span + b] = (scale * flat[begin + b] - mean) * factor


@kernel
def extremes(flat, begin, lines, lows, highs, out_low, out_high):
    """The smallest and the largest value of each patch in one row of patches.

    Their upper left corners are in the line of the picture that starts at ``begin``; ``lows`` and
    ``highs`` are scratch for a line of pixels.
    """
    starts, span, channels = lines
    height = starts.size
    pixels = lows.size
    for p in range(pixels):
        lows[p] = highs[p] = flat[begin + p * channels]
    for a in range(height):
        at = begin + starts[a]
        for channel in range(channels):
            for p in range(pixels):
                value = flat[at + p * channels + channel]
                lows[p] = min(lows[p], value)
                highs[p] = max(highs[p], value)
    places = out_low.size
    for p in range(places):
        out_low[p] = lows[p]
        out_high[p] = highs[p]
    for b in range(1, span // channels):
        for p in range(places):
            out_low[p] = min(out_low[p], lows[p + b])
            out_high[p] = max(out_high[p], highs[p + b])


@kernel
def contrasts(flat, begin, lines, sums, squares, out):
    """The mean over channels of the variance over pixels, of each patch in one row of patches.

    Sums are taken afresh for each patch, relative to a pixel nearby: nothing drifts, little
    cancels. ``sums`` and ``squares`` are scratch for a line of pixels.
    """
    starts, span, channels = lines
    height = starts.size
    width = span // channels
    count = height * width
    places = out.size
    out[:] = 0.0
    for channel in range(channels):
        origin = float(flat[begin + channel])
        for p in range(places + width - 1):
            total = square = 0.0
            at = begin + p * channels + channel
            for a in range(height):
                value = flat[at + starts[a]] - origin
                total += value
                square += value * value
            sums[p] = total
            squares[p] = square
        for p in range(places):
            total = square = 0.0
            for b in range(width):
                total += sums[p + b]
                square += squares[p + b]
            out[p] += max(square - total * total / count, 0.0) / (count * channels)


@kernel
def put(patches, means, corners, weights, lines, line, sums, part, parts):
    """Add patches, with their ``means`` (n, groups) added back, to sums of weighted values.

    Where all patches agree the average is exact. ``sums`` (values of the picture, 3) has columns
    `ORIGIN`, `TOTAL` and `PATCH_WEIGHT`. Only those lines of the picture, of ``line`` values each, are
    added to whose numbers are ``part`` modulo ``parts``: the sums do not depend on how many there are.
    """
    starts, span, _ = lines
    groups = means.shape[1]
    for i in range(corners.size):
        w = weights[i]
        for a in range(starts.size):
            at = corners[i] + starts[a]
            if parts > 1 and at // line % parts != part:
                continue
            for g in range(groups):
                mean = means[i, g]
                for b in range(g, span, groups):
                    value = patches[i, a * span + b] + mean
                    known = sums[at + b, PATCH_WEIGHT]
                    first = sums[at + b, ORIGIN] if known > 0.0 else value
                    sums[at + b, ORIGIN] = first
                    sums[at + b, TOTAL] += w * (value - first)
                    sums[at + b, PATCH_WEIGHT] = known + w


@summing
def decode(indptr, indices, values, D, out):
    """Write ``out = αD`` for codes α in CSR."""
    m = D.shape[1]
    for i in range(out.shape[0]):
        out[i, :] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            value, j = values[place], indices[place]
            for b in range(m):
                out[i, b] += value * D[j, b]


@kernel
def gather_known(flat, mask, corners, lines, treatment, hole, outputs):
    """Copy patches as `gather` does where pixels are missing; means and norms are of known ones.

    ``mask`` (flat, one number per pixel) is nonzero where a pixel is missing; its values become
    ``hole``. ``outputs`` are patches (n, m), means (n, groups), and whether a value is missing
    (n, m).
    """
    starts, span, channels = lines
    height = starts.size
    scale, groups, normalize = treatment
    out, means, missing = outputs
    step = max(groups, 1)
    for i in range(corners.size):
        start = corners[i]
        for g in range(step):
            mean, known = 0.0, 0
            for a in range(height):
                begin = start + starts[a]
                for b in range(g, span, step):
                    missing[i, a * span + b] = mask[(begin + b) // channels] != 0
                    if not missing[i, a * span + b]:
                        mean += scale * flat[begin + b]
                        known += 1
            if groups:
                means[i, g] = mean / known if known else 0.0
        squares = 0.0
        for g in range(step):
            mean = means[i, g] if groups else 0.0
            for a in range(height):
                begin = start + starts[a]
                for b in range(g, span, step):
                    if missing[i, a * span + b]:
                        out[i, a * span + b] = hole
                    else:
                        value = scale * flat[begin + b] - mean
                        squares += value * value
                        out[i, a * span + b] = value
        if normalize and squares > 0.0:
            factor = 1.0 / squares**0.5
            for place in range(height * span):
                out[i, place] *= factor


@kernel
def count_missing(mask, begin, starts, width, columns, out):
    """Count the masked pixels of each patch in one row of patches; the mask is flat, of uint8.

    ``starts`` and ``begin`` count pixels; ``columns`` is scratch for a line of them.
    """
    for p in range(columns.size):
        count = 0
        for a in range(starts.size):
            count += mask[begin + starts[a] + p]
        columns[p] = count
    for p in range(out.size):
        count = 0
        for b in range(width):
            count += columns[p + b]
        out[p] = count
