"""Families of problems with planted faults, for worker processes of the campaign."""

import os
import time

from benchmarks.campaign.families import Family


def fine(rng, report):
    report.cases += 1
    report.check("fine", rng.random() < 2)


def crash(rng, report):
    os.abort()


def hang(rng, report):
    time.sleep(3600)


def wrong(rng, report):
    raise ArithmeticError("planted")


def load():
    return {run.__name__: Family(run, 1) for run in (fine, crash, hang, wrong)}
