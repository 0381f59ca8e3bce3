"""How the gallery gets the picture of an example: each script saves it where its argument says."""

import re
import shutil
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_gallery.scrapers import figure_rst

PICTURE = Path(tempfile.mkdtemp()) / "picture.png"


def arguments(gallery_conf, script_vars):
    """Return the command line of an example: the path of the picture that it should draw."""
    PICTURE.unlink(missing_ok=True)
    return [str(PICTURE)]


def scrape(block, block_vars, gallery_conf):
    """Return reStructuredText that shows the picture, if there is a new one."""
    if not PICTURE.is_file():
        return ""
    target = next(block_vars["image_path_iterator"])
    shutil.move(PICTURE, target)
    title = (block_vars["example_globals"].get("__doc__") or "picture").strip().splitlines()[0]
    return figure_rst([target], gallery_conf["src_dir"], title)


def copy_thumbnails(app):
    """Put committed thumbnails in the place of those that examples make when they are run."""
    if app.config.sphinx_gallery_conf["plot_gallery"]:
        return
    folder = Path(app.srcdir) / "gallery/images/thumb"
    for path in sorted((Path(app.srcdir) / "thumbnails").glob("*.png")):
        shutil.copyfile(path, folder / f"sphx_glr_{path.stem}_thumb.png")


class NameThumbnails(SphinxPostTransform):
    """Give thumbnails an alternative text."""

    default_priority = 5  # before pictures are given new names

    def run(self):
        """Make it from the name of the example."""
        for image in self.document.findall(nodes.image):
            found = re.search(r"sphx_glr_(\w+)_thumb", image["uri"])
            if found and not image.get("alt"):
                image["alt"] = "Example: " + found[1].replace("_", " ")
