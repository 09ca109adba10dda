# benchpin: `make demo` runs the main job, `make test` passes the tests; both need only Go and a C compiler.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS  = -X main.version=$(VERSION) -X main.commit=$(COMMIT)

.PHONY: all build demo deps test test-long test-race bench lint fmt clean

all: build

build: ## build/benchpin, knowing its version and commit
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o build/benchpin ./cmd/benchpin

demo: ## the whole way on the quickstart workload: generate, pin, verify, run, attest, archive, verify again
	$(GO) run -ldflags '$(LDFLAGS)' ./cmd/benchpin pipeline quickstart --dir ./demo

deps: ## Debian packages that the tests' peers need
	@sh scripts/deps.sh

test: deps lint ## everything that runs in minutes
	$(GO) test -timeout 20m ./...

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
