"""Learning on a cluster, with Dask: nothing else here imports it.

The dictionary is sent to the workers, these code their parts of a batch, and the client takes
the codes, or their statistics where that is less to send, and updates the dictionary. How a
batch is cut depends on the data alone, and parts are taken in a fixed order: so the result
does not depend on the number of workers, nor on those that were lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster, default_client

from smalto.checks import Array, check_integer, float_dtype
from smalto.coders.base import Coder
from smalto.coders.encode import encode as encode_rows
from smalto.distributed.blocks import Blocks, ClusterSource
from smalto.distributed.worker_batches import ClusterBatches
from smalto.learning.loop import Result
from smalto.learning.loop import learn as learn_from
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
    """Learn a dictionary on a cluster: `smalto.learn`, with the coding done by Dask workers.

    Parameters
    ----------
    source : Dask array, Dask bag, or list of arrays, sources, paths or delayed objects
        Training samples, one per row. A path must mean the same file for all workers. The
        parts of a bag are lists of samples.
    n_atoms, coder, constraint, learner
        As for `smalto.learn`.
    client : Client or address, optional
        The cluster. By default the client that is in use, or else a cluster of one process per
        core of this machine, for the time of the run.
    staleness : int, default 0
        How many batches may be under way over older dictionaries. 0 is the algorithm as it is
        on one machine, to rounding: each batch is coded over the dictionary that the one before
        it has led to. With s > 0 a batch is coded over the dictionary of s steps before: workers
        never wait, each step is worth a little less, and the surrogate is not recorded.
    blocks_at_once : int, default 8
        Blocks of the data whose rows are shuffled together; twice as many are held by the
        workers. Where the data has no more blocks, the order is that of an array. A batch is
        cut by blocks, and into tasks of at most 4096 rows: have as many blocks as workers.
    **options
        Everything else that `smalto.learn` has, but for weights, masks and groups.

    Returns
    -------
    Result

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
    """Sparse codes of the rows of a Dask array, as a lazy Dask array (n, k), block by block.

    Parameters
    ----------
    X : Dask array (n, m)
    D : array (k, m)
    coder : coder
        With everything decided, such as `Result.coder`: each block is coded by itself.
    sparse_output : bool, default False
        Let the blocks be SciPy CSR arrays.

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
        message = f"D has {D.shape[1]} features (rows are atoms), the data has {X.shape[1]}"
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


def _client_in_use() -> Client | None:
    try:
        return default_client()
    except ValueError:
        return None


@contextmanager
def _connected(client: Client | str | None) -> Iterator[Client]:
    """The client that is meant; what is started here is ended here."""
    if isinstance(client, Client):
        yield client
        return
    if isinstance(client, str):
        with Client(client, set_as_default=False) as connection:
            yield connection
        return
    in_use = _client_in_use()
    if in_use is not None:
        yield in_use
        return
    with (
        LocalCluster(
            n_workers=available_cores(), threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as connection,
    ):
        yield connection
