"""Sphinx settings of the book."""

project = "ncc"
author = "the ncc developers"
copyright = "the ncc developers, Apache-2.0"
extensions = ["myst_parser"]
html_theme = "furo"
exclude_patterns = ["_build", "labs/*/*.hlo"]
