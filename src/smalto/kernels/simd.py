"""Vectors of 64 bytes inside Numba kernels.

The loops of sparse coding are short (a dozen active atoms). The compiler would run them one
number at a time, because it cannot prove that two arrays do not overlap or that a length fills a
register. The operations below are vectors by construction. A vector holds 16 float32 or 8 float64
numbers; on a machine with narrower registers LLVM splits it. Offsets count elements of a
one-dimensional array, bounds are not checked, and rounding does not depend on choices of the
compiler: every build for a machine gives the same bits.

With ``NUMBA_DISABLE_JIT=1`` the same names work on NumPy slices; those definitions, at the end, are
also the shortest statement of what each one means.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    register_model,
    type_callable,
)

WIDTH = 64  # bytes in a vector

__all__ = [
    "WIDTH",
    "above",
    "fma",
    "fnma",
    "hmax",
    "hsum",
    "label",
    "labelled",
    "lanes",
    "load",
    "lowest_bit",
    "ratio",
    "splat",
    "store",
    "subtract_scaled",
    "vabs",
    "vmax",
    "zero",
]


class Vector(types.Type):  # type: ignore[misc]
    """The Numba type of a vector of ``lanes`` numbers of one dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.lanes = WIDTH * 8 // dtype.bitwidth
        super().__init__(name=f"vector{self.lanes}x{dtype}")

    @property
    def suffix(self) -> str:
        """The suffix of LLVM's overloaded intrinsics for this type."""
        return f"v{self.lanes}f{self.dtype.bitwidth}"


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Vector) -> None:
        element = dmm.lookup(fe_type.dtype).get_value_type()
        super().__init__(dmm, fe_type, ir.VectorType(element, fe_type.lanes))


def address_of(context: Any, builder: Any, array_type: Any, array: Any, i: Any, vector: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), vector.as_pointer())


def splatted(builder: Any, x: Any, kind: Any) -> Any:
    none = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(none, x, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, first, places)


def call_llvm(builder: Any, name: str, result: Any, args: list[Any], fastmath: tuple = ()) -> Any:
    kind = ir.FunctionType(result, [a.type for a in args])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, args, fastmath=fastmath)


@intrinsic
def load(typingctx, array, i):
    """The vector at ``array[i:]``."""
    vector = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(vector)
        address = address_of(context, builder, signature.args[0], args[0], args[1], kind)
        return builder.load(address, align=array.dtype.bitwidth // 8)

    return vector(array, types.intp), codegen


@intrinsic
def store(typingctx, array, i, v):
    """``array[i:] = v``."""

    def codegen(context, builder, signature, args):
        address = address_of(context, builder, signature.args[0], args[0], args[1], args[2].type)
        builder.store(args[2], address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, v), codegen


@intrinsic
def splat(typingctx, x):
    """The vector whose every lane is ``x``."""
    vector = Vector(x)

    def codegen(context, builder, signature, args):
        return splatted(builder, args[0], context.get_value_type(vector))

    return vector(x), codegen


@intrinsic
def zero(typingctx, array):
    """The zero vector of the array's dtype."""
    vector = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        return ir.Constant(context.get_value_type(vector), [0.0] * vector.lanes)

    return vector(array), codegen


@intrinsic
def fma(typingctx, x, y, z):
    """``x * y + z``, rounded once where the machine can."""

    def codegen(context, builder, signature, args):
        return call_llvm(builder, f"llvm.fmuladd.{x.suffix}", args[0].type, args)

    return x(x, x, x), codegen


@intrinsic
def fnma(typingctx, x, y, z):
    """``z - x * y``, rounded once where the machine can."""

    def codegen(context, builder, signature, args):
        return call_llvm(
            builder, f"llvm.fmuladd.{x.suffix}", args[0].type, [builder.fneg(args[0]), *args[1:]]
        )

    return x(x, x, x), codegen


@intrinsic
def vabs(typingctx, x):
    """``|x|``, lane by lane."""

    def codegen(context, builder, signature, args):
        return call_llvm(builder, f"llvm.fabs.{x.suffix}", args[0].type, args)

    return x(x), codegen


@intrinsic
def vmax(typingctx, x, y):
    """The larger of two vectors, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return x(x, x), codegen


@intrinsic
def ratio(typingctx, x, y):
    """``x / y``, lane by lane, accurate to a few units in the last place: for comparisons."""

    def codegen(context, builder, signature, args):
        return builder.fdiv(*args, flags=("arcp", "afn", "contract"))

    return x(x, x), codegen


@intrinsic
def hsum(typingctx, x):
    """The sum of the lanes, as a tree."""

    def codegen(context, builder, signature, args):
        element = args[0].type.element
        operands = [ir.Constant(element, 0.0), args[0]]
        name = f"llvm.vector.reduce.fadd.{x.suffix}"
        return call_llvm(builder, name, element, operands, fastmath=("reassoc", "nsz"))

    return x.dtype(x), codegen


@intrinsic
def hmax(typingctx, x):
    """The largest lane."""

    def codegen(context, builder, signature, args):
        name = f"llvm.vector.reduce.fmax.{x.suffix}"
        return call_llvm(builder, name, args[0].type.element, args, fastmath=("nnan",))

    return x.dtype(x), codegen


def _integers(vector: Vector) -> Any:
    return ir.VectorType(ir.IntType(vector.dtype.bitwidth), vector.lanes)


@intrinsic
def labelled(typingctx, x, number, mask):
    """``x`` with those of its last bits that are set in ``mask`` replaced by ``number``."""

    def codegen(context, builder, signature, args):
        kind = _integers(x)
        number, mask = (
            splatted(builder, builder.trunc(a, kind.element) if x.dtype.bitwidth < 64 else a, kind)
            for a in args[1:]
        )
        bits = builder.and_(builder.bitcast(args[0], kind), builder.not_(mask))
        return builder.bitcast(builder.or_(bits, number), args[0].type)

    return x(x, types.int64, types.int64), codegen


@intrinsic
def label(typingctx, x, mask):
    """The number that `labelled` has put into the last bits of ``x``."""

    def codegen(context, builder, signature, args):
        bits = builder.bitcast(args[0], ir.IntType(x.bitwidth))
        if x.bitwidth < 64:
            bits = builder.zext(bits, ir.IntType(64))
        return builder.and_(bits, args[1])

    return types.int64(x, types.int64), codegen


@intrinsic
def above(typingctx, x, y):
    """An integer whose bit ``l`` is set where ``x[l] > y[l]``."""

    def codegen(context, builder, signature, args):
        bits = builder.bitcast(builder.fcmp_ordered(">", *args), ir.IntType(x.lanes))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(x, x), codegen


@intrinsic
def lowest_bit(typingctx, bits):
    """The position of the lowest set bit of an integer that is not zero."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def lanes(typingctx, array):
    """The number of lanes of a vector of the array's dtype."""

    def codegen(context, builder, signature, args):
        return context.get_constant(types.int64, WIDTH * 8 // array.dtype.bitwidth)

    return types.int64(array), codegen


@intrinsic(prefer_literal=True)
def subtract_scaled(typingctx, buffer, width, q, start, G, atoms, i, count):
    """``buffer[:width] = q[start:] - Σ_l buffer[width + i + l] * G[atoms[i + l]]``, l < count.

    G is flat, with rows of ``width`` numbers, and ``count`` is a literal: all these rows are read in
    one pass. (A loop in a kernel does the same and takes half a second to compile.)
    """
    vector = Vector(buffer.dtype)
    kinds = (buffer, types.int64, q, types.int64, G, atoms, types.int64, count)

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(vector)
        width, start, i = args[1], args[3], args[6]

        def number(which, place):
            data = context.make_array(kinds[which])(context, builder, args[which]).data
            return builder.load(builder.gep(data, [place]))

        def vector_of(which, place):
            address = address_of(context, builder, kinds[which], args[which], place, kind)
            return builder.load(address, align=vector.dtype.bitwidth // 8)

        scales, rows = [], []
        for l in range(count.literal_value):
            place = builder.add(i, i.type(l))
            scale = builder.fneg(number(0, builder.add(width, place)))
            scales.append(splatted(builder, scale, kind))
            rows.append(builder.mul(number(5, place), width))
        step = width.type(vector.lanes)
        with cgutils.for_range_slice(builder, width.type(0), width, step) as (j, _):
            value = vector_of(2, builder.add(start, j))
            for scale, row in zip(scales, rows, strict=True):
                terms = [scale, vector_of(4, builder.add(row, j)), value]
                value = call_llvm(builder, f"llvm.fmuladd.{vector.suffix}", kind, terms)
            address = address_of(context, builder, buffer, args[0], j, kind)
            builder.store(value, address, align=vector.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(*kinds), codegen


def _operator(op: Any, instruction: str) -> None:
    @type_callable(op)
    def type_operator(context):
        return lambda a, b: a if isinstance(a, Vector) and a == b else None

    @lower_builtin(op, Vector, Vector)
    def lower_operator(context, builder, signature, args):
        return getattr(builder, instruction)(*args)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")


if config.DISABLE_JIT:

    def lanes(array):
        return WIDTH // array.itemsize

    def load(array, i):
        return array[i : i + lanes(array)].copy()

    def store(array, i, v):
        array[i : i + lanes(array)] = v

    def splat(x):
        return np.full(WIDTH // np.dtype(type(x)).itemsize, x)

    def zero(array):
        return np.zeros(lanes(array), array.dtype)

    def fma(x, y, z):
        return x * y + z

    def fnma(x, y, z):
        return z - x * y

    def subtract_scaled(buffer, width, q, start, G, atoms, i, count):
        value = q[start : start + width].copy()
        for l in range(i, i + count):
            row = atoms[l] * width
            value -= buffer[width + l] * G[row : row + width]
        buffer[:width] = value

    def ratio(x, y):
        return x / y

    def labelled(x, number, mask):
        kind = np.dtype(f"i{x.itemsize}").type
        return ((x.view(kind) & ~kind(mask)) | kind(number)).view(x.dtype)

    def label(x, mask):
        return int(np.asarray(x).view(f"i{x.itemsize}")) & mask

    vabs, vmax, hsum, hmax = np.abs, np.maximum, np.sum, np.max

    def above(x, y):
        return sum(1 << int(i) for i in np.flatnonzero(x > y))

    def lowest_bit(bits):
        return (bits & -bits).bit_length() - 1
