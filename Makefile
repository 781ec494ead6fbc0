PYTHON ?= python3
NEWEST := .venv
OLDEST := .venv-oldest
DOCS := .venv-docs

PYTEST := python -m pytest -n 2 --dist worksteal
USUAL := -m "not slow and not exhaustive"
# What meets more of scikit-learn than `clone`, or diffprivlib, for the oldest ones; the rest is the same with both
OF_OLDEST := $(shell grep -rE '^(from|import) sklearn' tests/estimators tests/preprocessing --include='test_*.py' | \
  grep -v 'sklearn.base import clone$$' | cut -d: -f1 | sort -u) \
  tests/benchmarks/test_frames.py tests/test_imports.py tests/privacy/ledger/test_diffprivlib.py \
  tests/benchmarks/test_benchmarks.py::test_diffprivlib_gets_epsilon_and_norm

# Tests start many processes: without files of bytecode, each would compile the package again
unexport PYTHONDONTWRITEBYTECODE

# Two processes share the cores already
check test test-oldest test-slow test-all: export OMP_NUM_THREADS = 1

.PHONY: demo check test test-oldest test-slow test-all lint docs clean

demo: $(NEWEST)/.ready
	$(NEWEST)/bin/python -m skdp demo

# While working: what changed since the branch left main, by the rules at the top of tests/changed.py
check: lint
	@files=$$($(NEWEST)/bin/python tests/changed.py) && if [ -n "$$files" ]; then $(NEWEST)/bin/$(PYTEST) -m "not exhaustive" $$files; fi

# What shows that everything works, in minutes
test: $(NEWEST)/.ready
	$(NEWEST)/bin/$(PYTEST) $(USUAL)

# What meets scikit-learn, with the oldest one
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/$(PYTEST) $(USUAL) $(OF_OLDEST)

# What `test` leaves out: cases that take more than a quarter of a second; what is marked `exhaustive` is in `test-all` alone
test-slow: $(NEWEST)/.ready
	$(NEWEST)/bin/$(PYTEST) -m "slow and not exhaustive" tests

# Everything, in both environments
test-all: lint $(OLDEST)/.ready
	$(NEWEST)/bin/$(PYTEST)
	$(OLDEST)/bin/$(PYTEST)

lint: $(NEWEST)/.ready
	$(NEWEST)/bin/ruff format --check .
	$(NEWEST)/bin/ruff check .
	$(NEWEST)/bin/mypy
	$(NEWEST)/bin/python -m numpydoc lint $$(find skdp -name '*.py')

# The site, in docs/_build/html; runs the examples
docs: export OMP_NUM_THREADS = 1
docs: $(DOCS)/.ready
	$(DOCS)/bin/python -m sphinx -W --keep-going -j auto -b html -d docs/_build/doctrees docs docs/_build/html

# The newest scikit-learn that this Python can have
$(NEWEST)/.ready: pyproject.toml skdp/_version.py
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[test,lint]'
	touch $@

# The oldest supported scikit-learn, under which diffprivlib imports
$(OLDEST)/.ready: pyproject.toml skdp/_version.py
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --editable '.[test]' 'scikit-learn==1.6.*' diffprivlib==0.6.6
	touch $@

$(DOCS)/.ready: pyproject.toml skdp/_version.py
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --upgrade --editable '.[docs]'
	touch $@

clean:
	rm -rf $(NEWEST) $(OLDEST) $(DOCS) docs/_build docs/api/generated docs/auto_examples docs/generated build dist *.egg-info
