"""Learning and coding on a Dask cluster; no other part of smalto imports Dask.

The client sends the dictionary to the workers. They code their parts of a batch and return the
codes, or their statistics if these are cheaper to receive. The client then updates the
dictionary. How a batch is cut depends on the data alone, and parts are added in a fixed order.
Hence the result depends neither on the number of workers nor on workers lost during the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from distributed import Client, LocalCluster, as_completed, default_client

from smalto.checks import Array, check_integer, float_dtype
from smalto.coders._encode import encode as encode_rows
from smalto.coders.base import Coder
from smalto.distributed.blocks import Blocks, ClusterSource
from smalto.distributed.worker_batches import ClusterBatches
from smalto.learning._learn import Result
from smalto.learning._learn import learn as learn_from
from smalto.threads import available_cores

__all__ = ["encode", "learn"]


def learn(
    source: Any,
    n_atoms: int,
    coder: Coder | None = None,
    constraint: Any = None,
    learner: Any = None,
    *,
    client: Client | str | None = None,
    staleness: int = 0,
    blocks_at_once: int = 8,
    **options: Any,
) -> Result:
    """Learn a dictionary as `smalto.learn` does, with the coding done by Dask workers.

    Parameters
    ----------
    source : Dask array, Dask bag, or list of arrays, sources, paths or delayed objects
        Training samples, one per row. A path must name the same file on all workers. The
        partitions of a bag are lists of samples.
    n_atoms, coder, constraint, learner
        As for `smalto.learn`.
    client : Client or address, optional
        The cluster. By default the current Dask client; if there is none, a local cluster with
        one process per core, for the duration of the run.
    staleness : int, default 0
        Number of steps by which the dictionary that a batch is coded over is out of date. With 0
        the algorithm is that of one machine, up to rounding. With s > 0 a batch is coded over the
        dictionary of s steps before: workers never wait, but each step makes a little less
        progress, and the surrogate is not recorded.
    blocks_at_once : int, default 8
        Number of blocks of the data whose rows are shuffled together; the workers hold up to
        twice as many. If the data has no more blocks than this, the order is that of an array.
        A batch is cut at blocks, and into tasks of at most 4096 rows: use at least as many
        blocks as workers.
    **options
        Any other option of `smalto.learn`, except ``sample_weight``, ``mask``, ``missing`` and
        ``groups``.

    Returns
    -------
    Result
        As from `smalto.learn`.

    See Also
    --------
    smalto.learn : The same on one machine.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from smalto import distributed
    >>> from smalto.coders import Lasso
    >>> X = da.random.default_rng(0).standard_normal((4000, 16), chunks=(1000, 16))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     result = distributed.learn(X, 24, Lasso(0.5), client=client, random_state=0)
    >>> result.D.shape
    (24, 16)
    """
    staleness = check_integer("staleness", staleness, low=0)
    blocks_at_once = check_integer("blocks_at_once", blocks_at_once)
    with _connected(client) as connection:
        data = ClusterSource(Blocks.of(source, connection), connection, blocks_at_once)
        return learn_from(
            ClusterBatches(data, staleness), n_atoms, coder, constraint, learner, **options
        )


def encode(X: Any, D: Array, coder: Coder, *, sparse_output: bool = False) -> Any:
    """Encode the rows of a Dask array lazily, block by block.

    Parameters
    ----------
    X : Dask array (n, m)
        Signals, one per row.
    D : array (k, m)
        The dictionary, one atom per row.
    coder : coder
        A coder with nothing left to choose from the data, such as `Result.coder`: each block is
        coded on its own.
    sparse_output : bool, default False
        Whether the blocks are SciPy CSR arrays.

    Returns
    -------
    Dask array (n, k)
        Sparse codes, one per row, not yet computed.

    See Also
    --------
    smalto.encode : The same for arrays.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from smalto import distributed
    >>> from smalto.coders import Lasso
    >>> codes = distributed.encode(da.ones((4, 2), chunks=(2, 2)), np.eye(2), Lasso(0.25))
    >>> codes.compute()[0]
    array([0.75, 0.75])
    """
    if X.shape[1] != D.shape[1]:
        message = f"D has {D.shape[1]} features (rows are atoms), but X has {X.shape[1]}"
        raise ValueError(message)
    X = X.rechunk({1: -1})
    return X.map_blocks(
        _encode_block,
        dask.delayed(D, pure=True),
        coder,
        sparse_output,
        dtype=float_dtype(X.dtype),
        chunks=(X.chunks[0], (len(D),)),
        meta=np.empty((0, 0), float_dtype(X.dtype)),
    )


def _encode_block(X: Array, D: Array, coder: Coder, sparse_output: bool) -> Any:
    codes = encode_rows(X, D, coder, n_threads=1)
    return codes if sparse_output else codes.toarray()


def each_on_workers(
    task: Callable[..., Any], data: Any, arguments: Sequence[tuple[Any, ...]], client: Client | str
) -> Iterator[tuple[int, Any]]:
    """Yield the number and the result of each ``task(data, *arguments[number])``, as they end.

    The data is sent to every worker that needs it, once.
    """
    with _connected(client) as connection:
        sent = connection.scatter(data, broadcast=True, hash=False)
        futures = [
            connection.submit(task, sent, *own, pure=False, key=f"smalto-{uuid4()}")
            for own in arguments
        ]
        numbers = {future.key: number for number, future in enumerate(futures)}
        try:
            for future, result in as_completed(futures, with_results=True):
                yield numbers[future.key], result
        finally:
            connection.cancel(futures)


def current_client() -> Client | None:
    """Return the client that Dask uses now, if there is one."""
    try:
        return default_client()
    except ValueError:
        return None


@contextmanager
def _connected(client: Client | str | None) -> Iterator[Client]:
    """Yield the given client, the current one or that of a new local cluster, in this order.

    Whatever was started here is closed at the end.
    """
    if isinstance(client, Client):
        yield client
        return
    if isinstance(client, str):
        with Client(client, set_as_default=False) as connection:
            yield connection
        return
    current = current_client()
    if current is not None:
        yield current
        return
    with (
        LocalCluster(
            n_workers=available_cores(), threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as connection,
    ):
        yield connection
