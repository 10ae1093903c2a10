"""Sphinx's settings of the documentation site; scripts/docs.sh builds it."""
project = "Kiln"
author = "The Kiln authors"
copyright = "The Kiln authors, Apache License 2.0"  # noqa: A001: Sphinx's name for it
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "Kiln"
html_static_path = ["_static"]
html_css_files = ["kiln.css"]
html_copy_source = False
html_show_sourcelink = False
nitpicky = True
highlight_language = "none"
# The fence of a command with its output is the shell's: Pygments marks the prompt.
suppress_warnings = ["misc.highlighting_failure"]
