# Quorate: every target sets up what it needs in .venv; none asks for root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_JOBS ?= 2

.PHONY: help setup demo up lint test test-kube record-conformance kubectl bench bench-kube crds manifests image lock clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

setup: $(STAMP)  ## create .venv and install the locked dependencies

demo: $(STAMP)  ## a guided tour of about a minute
	$(BIN)/quorate demo

up: $(STAMP)  ## start the local cluster
	$(BIN)/quorate up

kubectl: $(STAMP)  ## say where the tests find kubectl; builds one when there is none
	@command -v kubectl || $(BIN)/python tests/kube/binaries.py kubectl

lint: $(STAMP)  ## ruff and strict type checking
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/basedpyright --level error

test: $(STAMP)  ## the whole test suite
	$(BIN)/pytest -n $(PYTEST_JOBS) --dist worksteal --ignore=tests/kube tests

model-check: $(STAMP)  ## search all layouts in both voter modes, run the mutants, walk beyond (at most 30 minutes on two cores)
	$(BIN)/quorate model-check --jobs 2 --markdown
	$(BIN)/quorate model-check --mutant all --jobs 2 --markdown
	$(BIN)/quorate model-check --rulings --jobs 2 --markdown
	$(BIN)/quorate model-check --walks 25 --depth 300 --seed 1 --jobs 2 --markdown

test-kube: $(STAMP)  ## the tests that need a real kube-apiserver and etcd (found, or built once and cached)
	QUORATE_CONFORMANCE=kube $(BIN)/pytest tests/conformance tests/kube

record-conformance: $(STAMP)  ## record anew what a real kube-apiserver answers in the API conformance cases
	QUORATE_CONFORMANCE=kube QUORATE_RECORD=1 $(BIN)/pytest tests/conformance -k kube

bench-kube: $(STAMP)  ## figures on a real API server, as a table and as JSON
	$(BIN)/python -m bench.kube

bench: $(STAMP)  ## figures, as a table and as JSON
	$(BIN)/python -m bench

crds: $(STAMP)  ## regenerate deploy/crds
	$(BIN)/quorate crds --write deploy/crds

manifests: $(STAMP)  ## bring the chart's copies and deploy/manifests up to date (finds Helm, or builds it once)
	$(BIN)/python -m tests.deploy.helm

image:  ## build the image with podman or docker
	$$(command -v podman || command -v docker) build -t quorate:0.1.0 -f Containerfile .

lock: $(STAMP)  ## refresh the lock: versions and hashes, no addresses
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --extra local --extra cli --group dev pyproject.toml -o requirements.lock
	sed 's/ \\$$//; /--hash/d' requirements.lock > $(VENV)/constraints.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --extra local --extra cli -c $(VENV)/constraints.txt pyproject.toml -o deploy/image/requirements.lock
	echo hatchling | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  -c $(VENV)/constraints.txt - -o deploy/image/build.lock

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .quorate
