# kclient's commands. `make help` lists them. Another interpreter: make PYTHON=python3.12 demo

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# PySpark finds the data source "kclient" only where kclient is installed as users install it, hence apart.
SPARK_VENV ?= .venv-spark
SPARK_BIN := $(SPARK_VENV)/bin
# Another version: make spark-env SPARK_VENV=.venv-spark-4.0.0 PYSPARK=pyspark==4.0.0
PYSPARK ?= pyspark
# A wheel of kclient that is there already, to be installed in place of a new one.
WHEEL ?=
SOURCES := $(shell find kclient -name '*.py' -o -name '*.py[xi]' -o -name '*.p[yx][xid]' -o -name '*.h')
# Three test processes even on two processors: most tests wait for sockets, not for the processor.
JOBS ?= 3
# The tests of a soak: without the long ones in its short form.
SOAKED := soak$(if $(SOAK_SECONDS), and not long)
# Never long without a word, on a terminal and elsewhere.
WITH_PROGRESS = $(PYTHON) .ci/with_progress.py
# What the native body is built from: installed again when one of them changes.
NATIVE := $(wildcard kclient/_accel/native/*.p[yx][xid] kclient/_accel/native/*.h)

.PHONY: help demo demo-spark test check unit spark-env soak bench bench-spark bench-spark-scale bench-tls bench-broker bench-partitions bench-share docs build clean python-ok

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

demo: $(VENV)/.installed  ## produce and consume 100,000 records on an embedded broker, verified
	@$(BIN)/kclient demo

demo-spark: $(SPARK_VENV)/.installed  ## generated orders through the flagship pipeline on Spark, verified
	@$(SPARK_BIN)/kclient pipeline demo

test: $(VENV)/.installed-dev  ## everything: lint, types, unit, golden, embedded-broker, foreign-client and real-Kafka tests
	@$(BIN)/python .ci/tests.py --jobs $(JOBS) --spark-environment $(SPARK_VENV)

spark-env: $(SPARK_VENV)/.installed-dev  ## the environment of the tests on Spark, which `make test` makes where there is Java

check: $(VENV)/.installed-dev  ## lint and types alone
	@$(BIN)/python .ci/tests.py --only checks

unit: $(VENV)/.installed-dev  ## the tests that start no other program
	@$(BIN)/python .ci/tests.py --only unit --jobs $(JOBS)

soak: $(VENV)/.installed-dev  ## faults and memory for a long time; SOAK_SECONDS=60 for a short form
	@$(BIN)/python -m pytest tests/soak tests/test_packaging.py tests/kafka -m "$(SOAKED)" -n $(JOBS) --dist loadgroup -rs -q
	@if [ -e $(SPARK_VENV)/.installed-dev ]; then $(SPARK_BIN)/python -m pytest tests/spark -m "$(SOAKED)" -rs -q && \
	  $(BIN)/python .ci/tests.py --only connector --jobs $(JOBS) --spark-environment $(SPARK_VENV); \
	  else echo "note: without 'make spark-env' the long tests on Spark are skipped"; fi

bench: $(VENV)/.installed-dev  ## kclient beside its peers on a real broker, as ratios
	@$(BIN)/python -m benchmarks

bench-spark:  ## the data source beside Spark's own connector, as ratios
	@$(MAKE) --no-print-directory spark-env SPARK_VENV=$(SPARK_VENV)-4.0.0 PYSPARK=pyspark==4.0.0
	@$(SPARK_VENV)-4.0.0/bin/python -m benchmarks.spark

bench-spark-scale: $(SPARK_VENV)/.installed-dev  ## the data source with 1,000 partitions, on clusters of one worker and of two
	@$(SPARK_BIN)/python -m benchmarks.spark_scale

bench-tls: $(VENV)/.installed-dev  ## the price of TLS, beside confluent-kafka and a bare loop over OpenSSL
	@$(BIN)/python -m benchmarks.tls

bench-broker: $(VENV)/.installed-dev  ## the embedded broker beside a real one, and its own figures
	@$(BIN)/python -m benchmarks.embedded

bench-partitions: $(VENV)/.installed-dev  ## a consumer with 1,000 partitions and little to read, beside confluent-kafka
	@$(BIN)/python -m benchmarks.partitions

bench-share: $(VENV)/.installed-dev  ## a share consumer beside Java's
	@$(BIN)/python -m benchmarks.share

docs: $(VENV)/.installed-dev  ## write the reference page and the types of the settings again
	@$(BIN)/python -m kclient.config.docs kclient.producer.config:ProducerConfig \
	  kclient.consumer.config:ConsumerConfig kclient.consumer.share_config:ShareConsumerConfig \
	  kclient.admin.config:AdminConfig > docs/configuration.md
	@$(BIN)/python -m kclient.config.typed_dicts kclient.producer.config:ProducerConfig \
	  kclient.consumer.config:ConsumerConfig kclient.consumer.share_config:ShareConsumerConfig \
	  kclient.admin.config:AdminConfig

build: $(VENV)/.installed-dev  ## wheel and sdist in dist/
	@$(BIN)/python -m build --outdir dist .

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) $(SPARK_VENV) $(SPARK_VENV)-* build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/harness/real_kafka/.cache
	rm -f kclient/_accel/native/*.c kclient/_accel/native/*.so

python-ok:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "There is no '$(PYTHON)' here. Install Python 3.11 or newer, or name one: make PYTHON=python3.12 demo"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "kclient needs Python 3.11 or newer and '$(PYTHON)' is older. Name another: make PYTHON=python3.12 demo"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "'$(PYTHON)' has no venv module. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

$(VENV)/bin/python:
	@$(MAKE) --no-print-directory python-ok
	@echo "==> creating $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	@echo "==> installing kclient and what it needs into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	@echo "==> installing kclient, its test tools and the other Kafka clients it is tested against into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,peers]'
	@touch $@ $(VENV)/.installed

$(SPARK_VENV)/bin/python:
	@$(MAKE) --no-print-directory python-ok
	@echo "==> creating $(SPARK_VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv $(SPARK_VENV)

$(SPARK_VENV)/.installed: pyproject.toml $(SOURCES) | $(SPARK_VENV)/bin/python
	@rm -rf $(SPARK_VENV)/wheel build/lib*  # setuptools would pack modules that are not there any more
	@if [ -n "$(WHEEL)" ]; then mkdir $(SPARK_VENV)/wheel && cp $(WHEEL) $(SPARK_VENV)/wheel/; else \
	  echo "==> building kclient, with its native modules where there is a compiler"; \
	  $(WITH_PROGRESS) $(SPARK_BIN)/python -m pip wheel --disable-pip-version-check --no-deps \
	    --wheel-dir $(SPARK_VENV)/wheel .; fi
	@echo "==> installing it with PySpark into $(SPARK_VENV): the first time half a gigabyte comes, for a minute or two"
	@$(WITH_PROGRESS) $(SPARK_BIN)/python -m pip install --disable-pip-version-check \
	  "$$(ls $(SPARK_VENV)/wheel/*.whl)[spark,plot]" '$(PYSPARK)'
	@$(SPARK_BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(SPARK_VENV)/wheel/*.whl
	@touch $@

$(SPARK_VENV)/.installed-dev: $(SPARK_VENV)/.installed
	@echo "==> installing the tools to test it into $(SPARK_VENV)"
	@$(SPARK_BIN)/python -m pip install --quiet --disable-pip-version-check "$$(ls $(SPARK_VENV)/wheel/*.whl)[dev,peers]"
	@$(SPARK_BIN)/python .ci/compile_pyspark.py
	@touch $@
