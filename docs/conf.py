"""Configuration of the documentation site: ``make docs``."""

import os
import re
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml import converter as latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

DOCS = Path(__file__).resolve().parent
REPOSITORY = DOCS.parent
sys.path.insert(0, str(DOCS))

import formulas  # noqa: E402
import generated  # noqa: E402

import skdp  # noqa: E402

project = "skdp"
author = "The skdp developers"
copyright = author
version = release = skdp.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "generated/*"]
templates_path = ["_templates"]

# Pages in Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_update_mathjax = False
html_math_renderer = "mathml"  # browsers draw it without a script from the network
myst_heading_anchors = 4
copybutton_exclude = ".linenos, .gp, .go"  # copies what is typed, without prompts and output

# Reference from docstrings
default_role = "py:obj"  # names in single backticks become links
nitpicky = True  # warn of those that lead nowhere
nitpick_ignore_regex = [
    (r"py:\w+", r"(sklearn|numpy|scipy|pandas)\..*"),  # known with intersphinx only
    ("py:obj", "X|y|fit_params|steps|Pipeline"),  # parameters and classes, in docstrings inherited from scikit-learn
]
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # numpydoc's sections say the types
numpydoc_show_class_members = False  # the template of classes lists them
INHERITED = {
    "fit_transform",
    "get_params",
    "score",
    "set_params",
}  # worth showing; other methods of scikit-learn's are about metadata

# Inventories come from the network: SKDP_INTERSPHINX=1 fetches them, so that names of other libraries become links
MANUALS = {
    "numpy": "https://numpy.org/doc/stable",
    "pandas": "https://pandas.pydata.org/docs",
    "python": "https://docs.python.org/3",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "sklearn": "https://scikit-learn.org/stable",
}
intersphinx_mapping = {name: (url, None) for name, url in MANUALS.items()} if os.environ.get("SKDP_INTERSPHINX") == "1" else {}
intersphinx_timeout = 10

# Examples, without those whose data set is missing: they are shown, not run
DATA = Path(os.environ.get("SKDP_DATA", REPOSITORY.parent / "shared" / "data"))
TABLE = re.compile(r'SKDP_DATA.*"(\S+?\.csv\.gz)"')
tables = {path: TABLE.search(path.read_text()) for path in sorted((REPOSITORY / "examples").glob("plot_*.py"))}
left_out = [path.stem for path, table in tables.items() if table and not (DATA / table[1]).exists()]
if left_out:
    print(f"Examples that are not run, as SKDP_DATA names no directory with their tables: {', '.join(sorted(left_out))}")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "thumbnail_size": (480, 300),
    "filename_pattern": "|".join(rf"{path.stem}\.py$" for path in tables if path.stem not in left_out),
    "abort_on_example_error": True,
    "copyfile_regex": r".*\.json",
    "doc_module": ("skdp",),
    "backreferences_dir": "generated/backreferences",
    "inspect_global_variables": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "generated.example_place",
}

# Look
html_theme = "pydata_sphinx_theme"
html_title = "skdp"
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "skdp"},
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
}

LINKS = (  # of files outside of the site, which have a page in it
    (re.compile(r"\((?:\.\./)+examples/(plot_\w+)\.py"), r"(/auto_examples/\1.rst"),
    (re.compile(r"\((?:\.\./)+benchmarks/results/(\w+)\.md"), r"(/benchmarks/\1.md"),
)


FILE_NAME = re.compile(r"\[`?[\w/]+\.(md|py)`?\](?=\([\w./]+\.(md|py)(#[\w-]+)?\))")  # as a link; the site shows the title
DOCTEST = re.compile(r"(```python\n>>> .*?)\n\n```\n", re.DOTALL)  # ends in an empty line, which ends the output for the test


def adapt_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Lead links to examples and benchmark results to their pages, by title; drop the empty lines at the end of doctests."""
    source[0] = DOCTEST.sub(r"\1\n```\n", source[0])
    source[0] = FILE_NAME.sub("[]", source[0])
    for pattern, page in LINKS:
        source[0] = pattern.sub(page, source[0])


def write_formula(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, and warn of commands that it cannot express."""
    block, formula = isinstance(node, nodes.math_block), node.astext().replace(r"\arg", r"\operatorname{arg}")
    aligned = block and "&" in formula and r"\begin" not in formula
    formula = rf"\begin{{align*}}{formula}\end{{align*}}" if aligned else formula
    written = latex2mathml.convert(formula, display="block" if block else "inline")
    if "\\" in written:
        logging.getLogger(__name__).warning("formula that cannot be written as MathML: %s", formula, location=node)
    self.body.append(f'<div class="formula">{written}</div>' if block else formulas.breakable(written))
    raise nodes.SkipNode


def skip_foreign(app: Sphinx, what: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Leave out methods that scikit-learn defines, but for those in `INHERITED`."""
    module = getattr(member, "__module__", None) or ""
    return True if not module.startswith("skdp") and callable(member) and name not in INHERITED else None


def adapt_docstring(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Turn labels of scikit-learn's guide into plain text, and keep initials of authors from beginning a numbered list."""
    lines[:] = [re.sub(r":ref:`(.*?)\s*<.*?>`", r"\1", line) for line in lines]
    lines[:] = [re.sub(r"^(\.\. \[\S+\]) ([A-Z]\.)", r"\1 \\\2", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Write what is generated before pages are looked for."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("config-inited", lambda app, config: generated.write(DOCS))
    app.connect("source-read", adapt_page)
    app.connect("autodoc-process-docstring", adapt_docstring)
    app.connect("autodoc-skip-member", skip_foreign)
