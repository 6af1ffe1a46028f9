"""Settings of the documentation: `make docs` builds the pages of this folder and the reference of
the library."""

import importlib.metadata

project = "placecell"
author = "The placecell developers"
copyright = "the placecell developers"
version = release = importlib.metadata.version("placecell")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
default_role = "code"  # docstrings write `names` as Markdown does
suppress_warnings = [
    "myst.xref_missing",  # links to files beside the README, followed by a test
    "ref.python",  # a type in a docstring that several modules have, such as Table
]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"exclude-members": "extra_repr"}  # torch's own words
autodoc_type_aliases = {"Array": "Array"}
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "placecell"
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 8,
    "use_edit_page_button": False,
}
html_sidebars = {"**": []}  # all pages stand in the bar above
html_show_sourcelink = False
