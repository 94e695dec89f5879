"""Sphinx settings: `make docs` builds the pages with warnings as errors, without any network."""

from __future__ import annotations

import sys
from pathlib import Path

import unicr

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "unicr"
author = "The unicr developers"
project_copyright = "The unicr developers, Apache-2.0"
version = release = unicr.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "drawn_math",
    "plain_docstrings",
    "plain_math",
    "unicr_commands",
]
exclude_patterns = ["_ext"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

autodoc_inherit_docstrings = False
autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = f"unicr {release}"
html_math_renderer = "drawn"
html_copy_source = False
