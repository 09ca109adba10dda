# benchpin: `make demo` runs the main job, `make test` passes the tests; both need only Go and a C compiler.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS  = -X main.version=$(VERSION) -X main.commit=$(COMMIT)

.PHONY: all build demo deps test test-hdf5 test-long test-race bench lint fmt clean

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

# Chunked and compressed HDF5 goes through libhdf5, behind a build tag, so that nobody else needs a C library.
test-hdf5: ## what the build tag hdf5 adds; needs libhdf5-dev
	@if pkg-config --exists hdf5; then \
		CGO_ENABLED=1 $(GO) vet -tags hdf5 ./... && CGO_ENABLED=1 $(GO) test -tags hdf5 -timeout 20m ./pkg/format/ ./pkg/datagen/; \
	elif [ -n "$$CI" ]; then echo 'test-hdf5: libhdf5-dev and pkg-config are missing' >&2; exit 1; \
	else echo 'test-hdf5: SKIPPED: libhdf5-dev and pkg-config are missing (sudo apt-get install libhdf5-dev pkg-config)' >&2; fi

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
