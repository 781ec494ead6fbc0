PYTHON ?= python3
NEWEST := .venv
OLDEST := .venv-oldest
DOCS := .venv-docs

# Two processes share the cores already
test: export OMP_NUM_THREADS = 1

.PHONY: demo test lint docs clean

demo: $(NEWEST)/.ready
	$(NEWEST)/bin/python -m skdp demo

test: lint $(OLDEST)/.ready
	$(NEWEST)/bin/python -m pytest -n 2 --dist worksteal
	$(OLDEST)/bin/python -m pytest -n 2 --dist worksteal

lint: $(NEWEST)/.ready
	$(NEWEST)/bin/ruff format --check .
	$(NEWEST)/bin/ruff check .
	$(NEWEST)/bin/mypy
	$(NEWEST)/bin/python -m numpydoc lint $$(find skdp -name '*.py')

# The site, in docs/_build/html; runs the examples
docs: export OMP_NUM_THREADS = 1
docs: $(DOCS)/.ready
	$(DOCS)/bin/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html

# The newest scikit-learn that this Python can have
$(NEWEST)/.ready: pyproject.toml
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[test,lint]'
	touch $@

# The oldest supported scikit-learn, under which diffprivlib imports
$(OLDEST)/.ready: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --editable '.[test]' 'scikit-learn==1.6.*' diffprivlib==0.6.6
	touch $@

$(DOCS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --upgrade --editable '.[docs]'
	touch $@

clean:
	rm -rf $(NEWEST) $(OLDEST) $(DOCS) docs/_build docs/api/generated docs/auto_examples docs/generated build dist *.egg-info
