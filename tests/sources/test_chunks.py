"""Sources that are read chunk by chunk, and the order they are read in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples
from stored_samples import MAKERS, X, make_dask, make_hdf5, make_npy, make_parquet, make_zarr

from smalto.sources import ChunkedSource, ChunkOrder, Order, as_source
from smalto.sources.chunked import even_starts


@pytest.mark.parametrize("make", MAKERS)
def test_every_kind_of_file_gives_the_rows_of_the_array(make, tmp_path):
    source = as_source(make(tmp_path))
    assert (source.n_rows, source.n_features, source.dtype) == (*X.shape, np.float32)
    numbers = np.random.default_rng(1).permutation(len(X))
    for part in (numbers, numbers[:1], numbers[:0], np.repeat(numbers[:3], 2)):
        np.testing.assert_array_equal(source.rows(part), X[part])


@pytest.mark.parametrize("make", [make_npy, make_zarr, make_hdf5, make_parquet, make_dask])
def test_chunks_are_read_once_an_epoch_and_few_are_held(make, tmp_path):
    source = as_source(make(tmp_path), buffer_rows=130)
    reads = []
    inner = source._read
    source._read = lambda a, b: reads.append((a, b)) or inner(a, b)
    order = source.order(5)
    assert isinstance(order, ChunkOrder)
    for epoch in range(2):
        seen = []
        for place in range(0, len(X), 37):
            numbers = order.take(epoch, place, place + 37)
            np.testing.assert_array_equal(source.rows(numbers), X[numbers])
            source.warm(order, epoch, min(place + 37, len(X)))
            seen += numbers.tolist()
            assert len(source._slab) <= 2 * 160
        assert sorted(seen) == list(range(len(X)))
    # Each chunk at most twice, and those of the first buffer of the epoch that does not come.
    assert sum(b - a for a, b in set(reads)) == len(X)
    assert len(reads) <= 2 * len(set(reads)) + source._per_buffer


@examples(40)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    per_buffer=st.integers(1, 6),
    step=st.integers(1, 50),
)
def test_chunk_order_is_a_permutation_in_any_pieces(sizes, per_buffer, step):
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n = int(starts[-1])
    order = ChunkOrder(starts, per_buffer, seed=9)
    whole = order.take(3, 0, n)
    assert sorted(whole.tolist()) == list(range(n))
    pieces = [ChunkOrder(starts, per_buffer, 9).take(3, a, a + step) for a in range(0, n, step)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert order.take(3, n, n + 5).size == 0
    # At the end of a buffer, what follows is what comes next, also in the next epoch.
    for place in (*range(0, n, step), n):
        now, following, share = order.around(3, place)
        coming = order.take(3, place, place + 1) if place < n else order.take(4, 0, 1)
        chunk = np.searchsorted(starts, coming[0], side="right") - 1
        assert chunk in (now if place < n else following)
        assert 0 <= share <= 1
        assert (share == 1) == (place == n)


def test_chunk_order_mixes_chunks_and_changes_with_epoch_and_seed():
    starts = even_starts(10_000, 100)
    orders = [ChunkOrder(starts, 10, seed).take(epoch, 0, 1000) for seed, epoch in
              ((0, 0), (0, 1), (1, 0))]  # fmt: skip
    for taken in orders:
        chunks, counts = np.unique(taken // 100, return_counts=True)
        assert len(chunks) == 10
        assert counts.min() == 100
        assert len(np.unique(taken[:100] // 100)) == 10  # a batch has rows of all of them
        assert np.ptp(chunks) > 20
    assert len({tuple(order) for order in orders}) == 3


def test_what_fits_into_the_buffer_has_the_order_of_an_array(tmp_path):
    source = as_source(make_zarr(tmp_path))
    assert source.order(3) == Order(len(X), 3)


def test_small_chunks_are_read_together():
    reads = []

    def read(a, b):
        reads.append((a, b))
        return np.zeros((b - a, 16))

    source = ChunkedSource(read, (100_000, 16), np.float64, even_starts(100_000, 10))
    source.rows(np.arange(5))
    assert reads[0][1] - reads[0][0] >= 8000


def test_nan_is_named_by_its_place_in_the_file(tmp_path):
    bad = X.copy()
    bad[400, 2] = np.nan
    bad[77, 5] = -np.inf
    np.save(tmp_path / "x.npy", bad)
    source = as_source(tmp_path / "x.npy")
    with pytest.raises(ValueError, match=r"1 such value, the first \(infinity\) at \(77, 5\)"):
        source.rows(np.array([401, 400, 77]))
    import pyarrow as pa

    missing = as_source(pa.table({"a": [1.0, None, 3.0]}))
    with pytest.raises(ValueError, match=r"NaN\) at \(1, 0\)"):
        missing.rows(np.arange(3))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    import zarr

    path = make_npy(tmp_path)
    source = as_source(path, buffer_rows=20)
    source.rows(np.arange(3))
    with path.open("r+b") as file:
        file.truncate(2000)
    with pytest.raises(RuntimeError, match=r"x\.npy changed while it was being read"):
        source.rows(np.array([400]))
    source = as_source(make_zarr(tmp_path), buffer_rows=80)
    source.rows(np.arange(len(X)))
    zarr.open(str(tmp_path / "x.zarr"), mode="r+")[3, 3] = 7.0
    with pytest.raises(RuntimeError, match="rows 0 to 40 of the source have changed since"):
        source.rows(np.arange(len(X)))


def test_a_writable_map_keeps_its_changes(tmp_path):
    path = make_npy(tmp_path)
    private = np.load(path, mmap_mode="c")
    private[3] = 5.0
    source = as_source(private)
    np.testing.assert_array_equal(source.rows(np.array([3, 2])), private[[3, 2]])
    assert np.all(private[3] == 5.0)
    shared = np.load(path, mmap_mode="r+")
    shared[4] = 6.0
    np.testing.assert_array_equal(as_source(shared).rows(np.array([4])), shared[[4]])
    assert np.all(shared[4] == 6.0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", b"\x93NUMPY\x01\x00v\x00{'desc", "not a readable .npy"),
        ("x.npy", b"", "not a readable .npy"),
        ("x.h5", b"no", "not a readable HDF5"),
        ("x.parquet", b"no", "not a readable Parquet"),
        ("x.arrow", b"not arrow at all", "not a readable Arrow"),
        ("x.npz", b"no", "not a readable .npz"),
        ("x.csv", b"1,2", "must end in one of .npy"),
    ],
)
def test_unreadable_files_are_refused(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        as_source(tmp_path / name)


def test_what_is_not_a_table_of_numbers_is_refused(tmp_path):
    import h5py
    import pyarrow as pa

    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.npy"):
        as_source(tmp_path / "gone.npy")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"], file["c"] = X, X, np.arange(3)
    with pytest.raises(ValueError, match="several arrays; available: a, b"):
        as_source(tmp_path / "x.h5")
    with pytest.raises(ValueError, match="no array 'z'"):
        as_source(f"{tmp_path}/x.h5::z")
    np.save(tmp_path / "x.npy", np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="two-dimensional"):
        as_source(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.zeros((0, 4)))
    with pytest.raises(ValueError, match="no samples"):
        as_source(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.zeros((3, 4), complex))
    with pytest.raises(TypeError, match="real numbers, got dtype complex"):
        as_source(tmp_path / "x.npy")
    with pytest.raises(TypeError, match="column 'b' must hold real numbers, got string"):
        as_source(pa.table({"a": [1.0], "b": ["text"]}))
    with pytest.raises(ValueError, match="buffer_rows must be >= 1, got 0"):
        as_source(np.load(tmp_path / "x.npy", mmap_mode="r").real, buffer_rows=0)


def test_a_folder_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'\.' is a folder, and a file must end in one of"):
        as_source(".")
