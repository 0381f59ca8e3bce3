"""Run examples of the gallery, and draw their thumbnails again.

``python docs/draw_thumbnails.py [name ...]`` writes them into ``docs/thumbnails``.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

FOLDER = Path(__file__).parent
STYLE = FOLDER / "gallery.mplstyle"
SIZE = (400, 280)
LARGEST = 60_000  # bytes

# Runs a script as a user would, and keeps what plt.show() would have shown.
_RUN = f"""
import runpy, sys
import matplotlib.pyplot as plt
plt.style.use({STYLE.as_posix()!r})
script, folder = sys.argv.pop(), sys.argv.pop()
runpy.run_path(script, run_name="__main__")
for number in plt.get_fignums():
    plt.figure(number).savefig(f"{{folder}}/{{number}}.png")
"""


def examples():
    """Return the scripts of the gallery."""
    return sorted((FOLDER.parent / "examples").glob("*/*.py"))


def run(script, folder):
    """Run a script, with warnings as errors; return what it prints, and the files of its figures."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:FigureCanvasAgg", "-c", _RUN, folder, script],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "agg", "SMALTO_DATA": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        message = f"{script}\n{done.stdout}{done.stderr}"
        raise RuntimeError(message)
    return done.stdout, sorted(Path(folder).glob("*.png"))


def draw_thumbnail(script, figures):
    """Draw the thumbnail of a script from the figure that it asks for, the first by default."""
    from PIL import Image

    asked = re.search(r"sphinx_gallery_thumbnail_number = (\d+)", script.read_text("utf-8"))
    with Image.open(figures[int(asked[1]) - 1 if asked else 0]) as figure:
        small = figure.convert("RGB")
    small.thumbnail(SIZE, Image.Resampling.LANCZOS)
    thumbnail = Image.new("RGB", SIZE, "white")
    thumbnail.paste(small, tuple((a - b) // 2 for a, b in zip(SIZE, small.size, strict=True)))
    target = FOLDER / "thumbnails" / f"{script.stem}.png"
    for colors in (256, 128, 64, 32):
        thumbnail.quantize(colors).save(target, optimize=True)
        if target.stat().st_size < LARGEST:
            break
    return target


if __name__ == "__main__":
    for script in examples():
        if sys.argv[1:] and script.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            begin = perf_counter()
            _, figures = run(script, folder)
            seconds = perf_counter() - begin
            target = draw_thumbnail(script, figures)
        print(f"{script.stem}: {seconds:.1f} s, {target.stat().st_size / 1000:.0f} kB")
