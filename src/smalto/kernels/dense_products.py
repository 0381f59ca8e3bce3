"""Products of dense matrices: ``x Dᵀ`` for signals and atoms, ``A D`` for the dictionary update.

A number of the result is ``Σ_l x_l d_l``, added up in blocks of `BLOCK` terms, one after another: the
same bits whatever rows are beside it, however wide the registers are, and in any build. A tile of 6 rows
and one vector of atoms fills the registers of most processors, one of two vectors those of AVX-512.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from smalto.kernels.jit import kernel
from smalto.kernels.prebuilt_files import prebuilt
from smalto.kernels.simd import Vector, address_of, call_llvm, lanes, load, splat, splatted, store

BLOCK = 256  # terms: with two vectors of atoms they fit into the fastest cache
SIDE = 8  # of the squares that `mirror` copies: their rows, far apart, fit there, too


@functools.cache
def vectors_at_once() -> int:
    """Return how many vectors of atoms a tile has in the code that this process runs."""
    if config.CPU_NAME is not None or prebuilt().level is not None:  # a level below AVX-512
        return 1
    try:
        return 2 if binding.get_host_cpu_features().get("avx512f", False) else 1
    except RuntimeError:  # unknown to LLVM
        return 1


def _tile(typingctx, x, start, m, panels, first, terms, out, to, stride, add, rows, vectors):
    """Write the sums of some terms for a tile of ``rows`` rows and ``vectors`` vectors of atoms.

    ``out[to + r stride + v lanes:] = Σ_l x[start + r m + l] * panels[first + (l vectors + v) lanes:]``,
    l < terms, which is added to what is there if ``add``. Rows and vectors are literals.
    """
    vector, count = Vector(panels.dtype), vectors.literal_value
    integer = types.int64
    kinds = (x, integer, integer, panels, integer, integer, out, integer, integer, types.boolean)

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(vector)
        _, start, m, _, first, terms, _, to, stride, add = args[:10]
        nothing = ir.Constant(kind, [0.0] * vector.lanes)
        sums = [
            [cgutils.alloca_once_value(builder, nothing) for _ in range(count)]
            for _ in range(rows.literal_value)
        ]

        def after(place, number, size):
            return builder.add(place, builder.mul(size, size.type(number)))

        def vector_at(which, place):
            return address_of(context, builder, kinds[which], args[which], place, kind)

        align = vector.dtype.bitwidth // 8
        data = context.make_array(x)(context, builder, args[0]).data
        signals = [builder.gep(data, [after(start, r, m)]) for r in range(len(sums))]
        with cgutils.for_range(builder, terms) as loop:
            place = after(first, count * vector.lanes, loop.index)
            atoms = [
                builder.load(vector_at(3, after(place, v, place.type(vector.lanes))), align=align)
                for v in range(count)
            ]
            for signal, row in zip(signals, sums, strict=True):
                value = splatted(builder, builder.load(builder.gep(signal, [loop.index])), kind)
                for total, atom in zip(row, atoms, strict=True):
                    added = [value, atom, builder.load(total)]
                    new = call_llvm(builder, f"llvm.fmuladd.{vector.suffix}", kind, added)
                    builder.store(new, total)
        for r, row in enumerate(sums):
            for v, total in enumerate(row):
                address = vector_at(6, after(after(to, r, stride), v, to.type(vector.lanes)))
                before = builder.select(add, builder.load(address, align=align), nothing)
                builder.store(builder.fadd(before, builder.load(total)), address, align=align)
        return context.get_dummy_value()

    return types.void(*kinds, rows, vectors), codegen


def _tile_in_python(x, start, m, panels, first, terms, out, to, stride, add, rows, vectors):
    """Do what `_tile` does."""
    step = lanes(panels)
    for r in range(rows):
        for v in range(vectors):
            total, o = splat(out.dtype.type(0)), to + r * stride + v * step
            for l in range(terms):
                atoms = load(panels, first + (l * vectors + v) * step)
                total = total + x[start + r * m + l] * atoms
            store(out, o, load(out, o) + total if add else total)


tile: Any = _tile_in_python if config.DISABLE_JIT else intrinsic(prefer_literal=True)(_tile)


@kernel
def pack(D, vectors, width, panels):
    """Write the rows of D (k, m) as panels: for each feature, the numbers of some atoms.

    A panel has ``vectors`` vectors of atoms, the last one perhaps fewer; the atoms from k to
    ``width``, a whole number of vectors, are zero.
    """
    k, m = D.shape
    step = lanes(panels)
    for first in range(0, width, vectors * step):
        size = min(vectors * step, width - first)
        for j in range(size):
            to = first * m + j
            if first + j < k:
                for l in range(m):
                    panels[to + l * size] = D[first + j, l]
            else:
                for l in range(m):
                    panels[to + l * size] = 0.0


@kernel
def pack_terms(D, begin, end, vectors, width, panels):
    """Write rows ``begin`` to ``end`` of D (k, m) as terms of the panels of ``A D``.

    Here panels have some features, of which those from m to ``width`` are zero.
    """
    k, m = D.shape
    step = lanes(panels)
    for first in range(0, width, vectors * step):
        size = min(vectors * step, width - first)
        for l in range(begin, end):
            to = first * k + l * size
            for j in range(size):
                panels[to + j] = D[l, first + j] if first + j < m else panels.dtype.type(0)


@kernel
def multiply(x, n, m, begin, end, panels, width, vectors, out, stride):
    """Write the sums of the terms ``begin`` to ``end``, of m, of a product (n, width).

    ``x`` and ``out`` are flat, with rows of m and of ``stride`` numbers, the panels are as `pack` or
    `pack_terms` have written them, and ``width`` is a whole number of vectors.
    """
    step = lanes(panels)
    for j in range(0, width, vectors * step):
        two = vectors == 2 and width - j > step
        size = 2 * step if two else step
        for l in range(begin, end, BLOCK):
            terms, first, add = min(BLOCK, end - l), j * m + l * size, l > begin
            i = 0
            while i + 6 <= n:
                if two:
                    tile(
                        x,
                        i * m + l,
                        m,
                        panels,
                        first,
                        terms,
                        out,
                        i * stride + j,
                        stride,
                        add,
                        6,
                        2,
                    )
                else:
                    tile(
                        x,
                        i * m + l,
                        m,
                        panels,
                        first,
                        terms,
                        out,
                        i * stride + j,
                        stride,
                        add,
                        6,
                        1,
                    )
                i += 6
            while i < n:
                if two:
                    tile(
                        x,
                        i * m + l,
                        m,
                        panels,
                        first,
                        terms,
                        out,
                        i * stride + j,
                        stride,
                        add,
                        1,
                        2,
                    )
                else:
                    tile(
                        x,
                        i * m + l,
                        m,
                        panels,
                        first,
                        terms,
                        out,
                        i * stride + j,
                        stride,
                        add,
                        1,
                        1,
                    )
                i += 1


@kernel
def mirror(G, begin, end):
    """Copy the entries of some rows of a lower triangle, those left of ``begin``, to the upper one."""
    for i in range(begin, end, SIDE):
        for j in range(0, begin, SIDE):
            for a in range(j, min(j + SIDE, begin)):
                for b in range(i, min(i + SIDE, end)):
                    G[a, b] = G[b, a]
