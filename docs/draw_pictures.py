"""Run the Python blocks of the pages, and keep the pictures that they save.

``python docs/draw_pictures.py [page.md ...]`` writes them into the folder ``figures`` beside each
page. The blocks of a page follow each other, as in a notebook.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
PICTURE = re.compile(r"!\[(.*?)\]\((figures/[\w-]+\.(?:png|jpg))\)", re.DOTALL)


def blocks(page):
    """Return the Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def pages():
    """Return the pages with code to run: all but the measurements, which have tests of their own."""
    found = [*FOLDER.glob("*.md"), *FOLDER.glob("guide/*.md")]
    return sorted(page for page in found if blocks(page) and page.name != "scaling.md")


def run(page, folder):
    """Run the blocks of a page in a folder; return the names of the pictures that it shows."""
    before = Path.cwd()
    names = {}
    os.chdir(folder)
    try:
        for block in blocks(page):
            exec(compile(block, str(page), "exec"), names)
    finally:
        os.chdir(before)
    drawn = {f"figures/{path.name}" for path in Path(folder).iterdir()}
    return [name for _, name in PICTURE.findall(page.read_text(encoding="utf-8")) if name in drawn]


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    for page in chosen:
        with tempfile.TemporaryDirectory() as folder:
            for name in run(page, folder):
                target = page.parent / name
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(Path(folder) / Path(name).name, target)
