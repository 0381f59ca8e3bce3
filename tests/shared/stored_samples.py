"""The same samples in every kind of file and array that can be learned from."""

import numpy as np
import pytest

pytest.importorskip("zarr")
pytest.importorskip("h5py")
pytest.importorskip("pyarrow")

X = np.random.default_rng(0).standard_normal((503, 6)).astype(np.float32)


def make_npy(folder):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def make_npz(folder):
    np.savez(folder / "x.npz", only=X)
    return folder / "x.npz"


def make_memmap(folder):
    return np.load(make_npy(folder), mmap_mode="r")


def make_zarr(folder):
    import zarr

    array = zarr.create_array(
        str(folder / "x.zarr"), shape=X.shape, chunks=(40, 4), dtype=X.dtype, zarr_format=2
    )
    array[:] = X
    return str(folder / "x.zarr")


def make_sharded_zarr(folder):
    import zarr

    path = folder / "s.zarr"
    array = zarr.create_array(str(path), shape=X.shape, chunks=(20, 6), shards=(40, 6), dtype="f4")
    array[:] = X
    return array


def make_hdf5(folder):
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("group/data", data=X, chunks=(50, 6))
        file.create_dataset("labels", data=np.arange(len(X)))
    return folder / "x.h5"


def make_contiguous_hdf5(folder):
    import h5py

    with h5py.File(folder / "c.h5", "w") as file:
        file["a"], file["b"] = X, X[:1]
    return f"{folder / 'c.h5'}::a"


def table():
    import pyarrow as pa

    return pa.table({f"feature {i}": X[:, i] for i in range(X.shape[1])})


def make_parquet(folder):
    from pyarrow import parquet

    parquet.write_table(table(), folder / "x.parquet", row_group_size=60)
    return folder / "x.parquet"


def make_vectors(folder):
    import pyarrow as pa
    from pyarrow import parquet

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    parquet.write_table(pa.table({"embedding": vectors}), folder / "v.parquet", row_group_size=60)
    return folder / "v.parquet"


def make_arrow(folder):
    from pyarrow import feather

    feather.write_feather(table(), folder / "x.arrow", compression="uncompressed")
    return folder / "x.arrow"


def make_table(folder):
    return table()


def make_dask(folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(70, 3))


MAKERS = [
    make_npy, make_npz, make_memmap, make_zarr, make_sharded_zarr, make_hdf5,
    make_contiguous_hdf5, make_parquet, make_vectors, make_arrow, make_table, make_dask,
]  # fmt: skip
