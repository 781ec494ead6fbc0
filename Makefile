PYTHON ?= python3
NEWEST := .venv
OLDEST := .venv-oldest

# Two processes share the cores already
test: export OMP_NUM_THREADS = 1

.PHONY: demo test lint clean

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

clean:
	rm -rf $(NEWEST) $(OLDEST) build dist *.egg-info
