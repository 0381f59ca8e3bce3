"""Compile or load every kernel before it is needed: for Dockerfiles, clusters and CI."""

from __future__ import annotations

from smalto.warming_up.workers import Warmup, warmup

__all__ = ["Warmup", "warmup"]
