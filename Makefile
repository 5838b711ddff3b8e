# What people do with this repository. `make` alone prints the list.
#
# The recipes are short; what takes more than a line is a script in tools/.

CARGO ?= cargo
# Seconds for each fuzz target, cases for each property, and minutes of the fault campaign, in `make soak`.
FUZZ_SECONDS ?= 120
SOAK_CASES ?= 4096
SOAK_MINUTES ?= 30

.DEFAULT_GOAL := help
.PHONY: help build run quick test test-realtime fmt-check clippy doc fuzz-check readme deny coverage soak mutants bench bench-check bench-ns3 dist wheel notices book clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

build: ## build the command: target/release/farpace
	@tools/setup build
	$(CARGO) build --release --locked -p farpace -p farpace-capi -p farpace-preload

run: build ## make all five papers again, let their cures meet, and write one page
	@tools/run

quick: fmt-check fuzz-check ## formatting, lints and unit tests: what a change needs while you write it
	$(CARGO) clippy --workspace --locked -- $$(tools/deny-warnings)
	$(CARGO) test --workspace --locked --lib --no-fail-fast -- --skip in_real_time

# The tests come last, so that the log ends with their summaries.
test: ## everything that must hold before a change goes in
	@tools/setup test
	@$(MAKE) --no-print-directory fmt-check clippy doc fuzz-check
	@tools/bare-target
	$(CARGO) test --workspace --locked --no-run
	@tools/readme-commands
	$(CARGO) test --workspace --locked --no-fail-fast -- --skip in_real_time
	@tools/test-kernel test
	@tools/test-python
	@tools/test-realtime

test-realtime: ## the tests that measure rates and delays in real time, alone; again if the machine was busy
	@tools/test-realtime

fmt-check:
	$(CARGO) fmt --all -- --check

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- $$(tools/deny-warnings)
	$(CARGO) clippy -p farpace-live --features tokio --all-targets --locked -- $$(tools/deny-warnings)
	@tools/test-kernel clippy

doc:
	RUSTDOCFLAGS="$$(tools/deny-warnings)" $(CARGO) doc --workspace --no-deps --locked

# The fuzz targets are a workspace of their own, which nothing else would compile.
fuzz-check:
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --locked

readme: ## run the commands of README.md and docs/ and see that they work
	$(CARGO) build --locked -p farpace
	@tools/readme-commands

deny: ## licences, advisories, sources and duplicates of dependencies (cargo-deny)
	@tools/setup deny
	$(CARGO) deny --locked check

coverage: ## which lines the tests run (cargo-llvm-cov): out/coverage/html/index.html, and a table
	@tools/setup coverage
	$(CARGO) llvm-cov --workspace --locked --no-report
	$(CARGO) llvm-cov report --html --output-dir out/coverage
	$(CARGO) llvm-cov report --summary-only --json --output-path out/coverage/summary.json
	@tools/coverage.py out/coverage/summary.json

soak: ## long property tests, the fault campaign, then each fuzz target; docs/soak.md (fuzzing needs nightly)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) SOAK_CASES=$(SOAK_CASES) SOAK_MINUTES=$(SOAK_MINUTES) tools/soak

mutants: ## break recovery, asking for ACKs and pacing in many places and see that the tests notice
	@tools/mutants.py

bench: ## throughput of the lab; docs/BENCHMARKS.md says how to read it
	@tools/setup build
	$(CARGO) bench --locked -p farpace-bench

bench-check: ## has anything become slower? ratios of instruction counts (valgrind), beside bench/ratios.json
	@tools/setup bench-check
	@bench/check.py

bench-ns3: build ## the same transfer in ns-3 (Debian's libns3-dev) beside farpace
	@bench/ns3/run

dist: ## a static program, a tarball and a Debian package, in dist/
	@tools/setup dist
	@tools/dist

wheel: ## a wheel of the Python package, in dist/ (maturin, in a virtual environment of its own)
	@tools/setup build
	@tools/test-python wheel

book: ## the pages of docs/ as a book, in out/book (mdBook, which is built once)
	@tools/setup book
	@tools/book

notices: ## write crates/farpace/NOTICES.txt anew, after dependencies have changed
	@tools/notices.py

clean: ## remove everything that was made here: target/, out/, dist/, .venv/
	rm -rf target out dist .venv fuzz/target
