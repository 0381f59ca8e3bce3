"""The documentation: ``pip install ".[docs]" && sphinx-build -W docs docs/_build/html``.

With the environment variable ``SMALTO_GALLERY=skip`` the examples of the gallery are not executed.
Without it their pages have the code alone, and committed thumbnails where there are any.
"""

import os
import sys
from pathlib import Path

import smalto

sys.path.insert(0, str(Path(__file__).parent))

project = "smalto"
author = "The smalto developers"
copyright = f"2026, {author}"
version = release = smalto.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "thumbnails"]
templates_path = ["_templates"]
default_role = "py:obj"

# Markdown
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

# The reference of the API
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
autosummary_context = {
    # Classes whose methods users call or write; those of others are the methods of their base.
    "with_methods": [
        *(f"smalto.{name}" for name in ("NMF", "DictionaryLearning", "SparseCCA", "SparsePCA")),
        *(f"smalto.{name}" for name in ("Model", "Result", "State")),
        *(f"smalto.learning.{name}" for name in ("Callback", "OneByOne")),
        "smalto.coders.Coder",
        "smalto.constraints.Constraint",
        "smalto.datasets.ImageSet",
        "smalto.image.FrameLearner",
        "smalto.image.PatchAverage",
        "smalto.image.PatchSource",
        "smalto.learners.Learner",
        "smalto.sources.Source",
        "smalto.sources.ChunkedSource",
        "smalto.sources.Stream",
    ],
}

# The gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [
        f"../examples/{name}"
        for name in ("pictures", "factorizations", "codes", "models", "streams")
    ],
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", "gallery_pictures.use_style"),
    "plot_gallery": os.environ.get("SMALTO_GALLERY") != "skip",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("smalto",),
    "reference_url": {"smalto": None},
    "write_computation_times": False,
    "min_reported_time": 3600,  # how long a script took says more about the machine than about it
    "show_memory": False,
    "download_all_examples": False,
    "show_signature": False,
    "copyfile_regex": "",
}

# The pages
html_theme = "pydata_sphinx_theme"
html_title = "smalto"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "smalto", "alt_text": "smalto, to the first page"},
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"start": [], "choosing": [], "faq": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Add what is in the files beside this one."""
    from gallery_pictures import NameThumbnails, copy_thumbnails
    from linked_names import LinkNames

    app.add_post_transform(LinkNames)
    app.add_post_transform(NameThumbnails)
    app.connect("builder-inited", copy_thumbnails, priority=900)
