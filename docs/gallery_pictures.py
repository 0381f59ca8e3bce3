"""The style of the gallery's pictures, and its thumbnails where examples are not run."""

import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
from docutils import nodes
from draw_thumbnails import STYLE, examples
from sphinx.transforms.post_transforms import SphinxPostTransform


def use_style(gallery_conf, script):
    """Have what follows drawn in the style of the gallery."""
    plt.style.use(STYLE)


def copy_thumbnails(app):
    """Put committed thumbnails in the place of those that examples make when they are run."""
    if app.config.sphinx_gallery_conf["plot_gallery"]:
        return
    source = Path(app.srcdir)
    for script in examples():
        thumbnail = source / "thumbnails" / f"{script.stem}.png"
        folder = source / "gallery" / script.parent.name / "images/thumb"
        shutil.copyfile(thumbnail, folder / f"sphx_glr_{script.stem}_thumb.png")


class NameThumbnails(SphinxPostTransform):
    """Give thumbnails an alternative text."""

    default_priority = 5  # before pictures are given new names

    def run(self):
        """Make it from the name of the example."""
        for image in self.document.findall(nodes.image):
            found = re.search(r"sphx_glr_(\w+)_thumb", image["uri"])
            if found and not image.get("alt"):
                image["alt"] = "Example: " + found[1].replace("_", " ")
