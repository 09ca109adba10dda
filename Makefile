# benchpin: `make demo` runs the main job, `make test` passes the tests; both need only Go and a C compiler.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS  = -X main.version=$(VERSION) -X main.commit=$(COMMIT)

.PHONY: all build demo deps test test-hdf5 test-mpi test-long test-race bench lint fmt clean

all: build

build: ## build/benchpin, knowing its version and commit
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o build/benchpin ./cmd/benchpin

demo: ## the whole way on the quickstart workload: generate, pin, verify, run, attest, archive, verify again
	$(GO) run -ldflags '$(LDFLAGS)' ./cmd/benchpin pipeline quickstart --dir ./demo

deps: ## Debian packages that the tests' peers need
	@sh scripts/deps.sh

test: deps lint ## everything that runs in minutes
	$(GO) test -timeout 20m ./...
	@$(MAKE) -s test-hdf5
	@$(MAKE) -s test-mpi

# Chunked and compressed HDF5 goes through libhdf5, behind a build tag, so that nobody else needs a C library.
test-hdf5: ## what the build tag hdf5 adds; needs libhdf5-dev
	@if pkg-config --exists hdf5; then \
		CGO_ENABLED=1 $(GO) vet -tags hdf5 ./... && CGO_ENABLED=1 $(GO) test -tags hdf5 -timeout 20m ./pkg/format/ ./pkg/datagen/; \
	elif [ -n "$$CI" ]; then echo 'test-hdf5: libhdf5-dev and pkg-config are missing' >&2; exit 1; \
	else echo 'test-hdf5: SKIPPED: libhdf5-dev and pkg-config are missing (sudo apt-get install libhdf5-dev pkg-config)' >&2; fi

# Several processes meet over MPI, behind a build tag too: the compiler of an MPI is all that the build needs to be told.
test-mpi: ## what the build tag mpi adds, with each MPI that is installed; needs libmpich-dev and libopenmpi-dev
	@for mpi in mpich openmpi; do \
		if command -v mpicc.$$mpi >/dev/null && command -v mpirun.$$mpi >/dev/null; then \
			echo "test-mpi: $$mpi"; \
			export CGO_ENABLED=1 CC=mpicc.$$mpi; \
			$(GO) vet -tags mpi ./pkg/cluster/mpi ./cmd/benchpin && $(GO) test -tags mpi -timeout 60m ./pkg/cluster/mpi && \
			$(GO) test -tags mpi -timeout 60m -run '^TestProcess' ./cmd/benchpin || exit 1; \
		elif [ -n "$$CI" ]; then echo "test-mpi: mpicc.$$mpi or mpirun.$$mpi is missing" >&2; exit 1; \
		else echo "test-mpi: SKIPPED for $$mpi: mpicc.$$mpi or mpirun.$$mpi is missing (sudo apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev)" >&2; fi; \
	done

test-race: deps ## the same under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 45m ./...

# torch and DuckDB are asked in the slow suites only; DuckDB stands below build/peers.
test-long: export BENCHPIN_LONG = 1
test-long: export NODE_PATH = $(CURDIR)/build/peers/node_modules
test-long: deps lint ## the slow suites as well: other architectures, huge files, torch, DuckDB; under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 120m ./...

bench: ## speed and memory as ratios against references measured in the same run
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 2s ./pkg/...

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l cmd pkg schemas workloads)" || { echo 'gofmt would change:'; gofmt -l cmd pkg schemas workloads; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

fmt:
	gofmt -w cmd pkg schemas workloads

clean:
	rm -rf build demo
