"""Write ``docs/experiments.md`` from the results of the experiments.

A section consists of what its script says about the experiment, its claims and their rules, and
the results in ``docs/figures/NAME.json``. What is to be said about results, such as why a claim did
not hold, is in ``remarks/NAME.md``.
"""

from __future__ import annotations

import importlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.paper.frame import HELD, IN_PART, NOT_HELD, Study, markdown

EXPERIMENTS = (
    "online_batch",
    "sgd",
    "batch_size",
    "forgetting",
    "inner",
    "nmf",
    "features",
    "genomics",
    "inpainting",
    "projections",
    "convergence",
)
HERE = Path(__file__).parent
NOT_YET = "not yet run at scale"
HEAD = """\
# The paper's experiments

<!-- Written by `python -m benchmarks.paper page --docs docs`: edit benchmarks/paper instead. -->

Every experiment of *Online Learning for Matrix Factorization and Sparse Coding* (Mairal, Bach, Ponce,
Sapiro; JMLR 2010), at the sizes of the paper. All of this page comes from these commands:

```sh
pip install ".[bench]"
python -m benchmarks.paper all --processes 2 --minutes 20 --docs docs    # repeat until nothing is left
python -m benchmarks.paper plan                                          # what is left, and how long it takes
python -m benchmarks.paper all --quick                                   # a minute, without any data
```

An experiment consists of parts of at most 20 minutes, which are kept: a run that was stopped goes on where
it was. The data sets are read from `--data`, or from the folder that the environment variable `SMALTO_DATA`
names; what is missing is named, with its size and where it can be had, and something out of the installed
packages stands in for it. All numbers are in `figures/*.json` of this folder.

- **Data**: A, B and C are patches of 80 of the 5 304 pictures of PASCAL VOC'06, drawn independently; 20 others give the column
  *other pictures*. D is MIT's CBCL faces, E the Extended Yale B faces, F 16 × 16 patches of the same pictures. The paper draws
  from all pictures of VOC'06, 1.25·10⁶ patches for each of A, B and C as here.
- **Times** are processor seconds of one thread, unless it says otherwise. The paper's are of cores at 2.4 and 2.66 GHz in 2009. The
  load average is noted for each part, with its least and most below: with two experiments at work, on two cores, it is 2.
- **Tests** are drawn as in the paper: from the pictures learned from (20 000 patches, and 250 000 for last
  dictionaries). Costs on other pictures are a second column. Parameters are chosen by the training cost where
  the paper did so.
- **Rules**: each claim is judged by a rule that its script states. They were written down before the runs
  at scale. One that was changed after that: "Rates a/(ηt + b) are much better" asked for a lower cost, by however little,
  which held by 0.03 %; it now asks for more than 0.1 %, and does not hold.
- **OL1, OL2, OL3** have the floor of the authors' program, which never keeps less than 95 % of the past in
  a step (`Online(keep=0.95)`): the paper says that it forgets "after a few iterations". OL1 without the floor is
  shown as the bare formula. Unused atoms are replaced by random patches, as in the paper.
- **SPAMS** (the authors' later program: `trainDL` as it is by default, run anew for each point of a curve), **scikit-learn**
  (`MiniBatchDictionaryLearning`, `fit_algorithm="cd"`, mini-batches of 512) and smalto's defaults are on the same axes.

## The claims
"""


def take(study: Study, docs: Path) -> None:
    """Copy the figure and the numbers of a finished study into the documentation; write the page."""
    figures = docs / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    shutil.copy(study.out / f"{study.name}.json", figures)
    picture = study.out / f"{study.name}.png"
    if study.name == "inpainting":  # photographs
        from PIL import Image

        with Image.open(picture) as image:
            image.convert("RGB").save(figures / f"{study.name}.jpg", quality=88)
    else:
        shutil.copy(picture, figures)
    write(docs)


def write(docs: Path | None) -> None:
    """Write the page from what is in ``docs/figures``."""
    docs = docs or Path("docs")
    modules = {name: importlib.import_module(f"benchmarks.paper.{name}") for name in EXPERIMENTS}
    found = {name: _results(docs, name) for name in EXPERIMENTS}
    text = HEAD + _claims(modules, found)
    for name, module in modules.items():
        text += f"\n## {module.TITLE}\n\n{_section(docs, name, module, found[name])}"
    (docs / "experiments.md").write_text(text, encoding="utf-8")
    print(f"written: {docs / 'experiments.md'}")


def _results(docs: Path, name: str) -> dict[str, Any] | None:
    path = docs / "figures" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _claims(modules: dict[str, Any], found: dict[str, dict[str, Any] | None]) -> str:
    """Return the table of all claims, and how many of them held."""
    rows = []
    for name, module in modules.items():
        results = found[name]
        if results is None:
            rows += [[claim.said, NOT_YET, ""] for claim in module.CLAIMS]
        else:
            rows += [
                [verdict["said"], _bold(verdict["state"]), _brief(verdict["evidence"])]
                for verdict in results["verdicts"]
            ]
    count = Counter(row[1].strip("*") for row in rows)
    said = ", ".join(f"{count[s]} {s}" for s in (HELD, IN_PART, NOT_HELD, NOT_YET) if count[s])
    return f"\nOf {len(rows)} claims: {said}.\n\n{markdown(['the paper says', 'here', ''], rows)}\n"


def _section(docs: Path, name: str, module: Any, results: dict[str, Any] | None) -> str:
    about = module.__doc__.split("\n\n", 1)[1].strip()
    if results is None:
        rows = [[claim.said, claim.rule] for claim in module.CLAIMS]
        return f"{about}\n\n{markdown(['the paper says', 'rule'], rows)}\n"
    least, most = results["machine"]["load_average"]
    ending = "jpg" if (docs / "figures" / f"{name}.jpg").is_file() else "png"
    verdicts = [
        [v["said"], v["rule"], _bold(v["state"]), v["evidence"]] for v in results["verdicts"]
    ]
    lines = [
        about,
        "",
        (
            f"`python -m benchmarks.paper {name}`: {results['minutes']:.0f} minutes of one core in parts of "
            f"at most {results['longest_part']:.1f}, load average {least:.1f} to {most:.1f}, "
            f"{results['machine']['cores']} cores of {results['machine']['processor']}."
        ),
        "",
        f"![{module.TITLE}](figures/{name}.{ending})",
        "",
        markdown(["the paper says", "rule", "here", ""], verdicts),
        "",
        *(f"- Missing: {missing}" for missing in results["missing"]),
        *(f"- {note}" for note in results["notes"]),
        "",
        markdown(results["header"], results["rows"]),
        "",
    ]
    remarks = HERE / "remarks" / f"{name}.md"
    if remarks.is_file():
        lines.append(remarks.read_text("utf-8"))
    return "\n".join(lines)


def _bold(state: str) -> str:
    return state if state == HELD else f"**{state}**"


def _brief(evidence: str) -> str:
    """Return the first part of the evidence."""
    return evidence.split(";")[0]
