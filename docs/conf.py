"""Settings of the documentation: `make docs` builds the pages of this folder and the reference of
the library."""

import importlib.metadata

project = "placecell"
author = "The placecell developers"
copyright = "the placecell developers"
version = release = importlib.metadata.version("placecell")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "notebooks", "gallery/index.rst"]
myst_enable_extensions = ["colon_fence"]
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

# docs/notebooks/*.py are run, and become pages and notebooks of docs/gallery
sphinx_gallery_conf = {
    "examples_dirs": "notebooks",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/used",
    "filename_pattern": r"\.py",
    "abort_on_example_error": True,
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "placecell"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "use_edit_page_button": False,
    "secondary_sidebar_items": {"**": [], "api": ["page-toc"]},  # so that 100 columns of code fit
}
html_sidebars = {"index": []}  # the first page has its doors instead
html_show_sourcelink = False
