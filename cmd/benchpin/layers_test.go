package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/benchpin/benchpin/"

// allowedImports is the list of docs/architecture.md: which packages of benchpin each package may import. A room calls only rooms on
// floors below it; the ground floor calls none but the embedded schemas and workloads.
var allowedImports = map[string][]string{
	"schemas":         {},
	"workloads":       {},
	"pkg/store":       {},
	"pkg/store/s3":    {"pkg/store"},
	"pkg/stream":      {},
	"pkg/cluster":     {},
	"pkg/cluster/mpi": {"pkg/cluster"},
	"pkg/journal":     {},
	"pkg/record":      {"schemas"},
	"pkg/workload":    {"pkg/yamltokens", "schemas", "workloads"},
	"pkg/manifest":    {"pkg/manifest/blake", "pkg/store"},
	"pkg/format":      {"pkg/stream", "pkg/workload"},
	"pkg/yamltokens":  {},

	"pkg/certificate": {},
	"pkg/certify":     {"pkg/certificate", "pkg/manifest", "pkg/store", "pkg/stream"},

	"pkg/manifest/blake": {},

	"pkg/attest/fault":               {},
	"pkg/attest/internal/limits":     {},
	"pkg/attest/internal/strictjson": {"pkg/attest/fault", "pkg/attest/internal/limits"},
	"pkg/attest/oci":                 {"pkg/attest/fault", "pkg/attest/internal/limits", "pkg/attest/internal/strictjson"},
	"pkg/attest/oci/registry":        {"pkg/attest/internal/strictjson", "pkg/attest/internal/limits", "pkg/attest/oci", "pkg/store"},
	"pkg/attest": {
		"pkg/attest/fault",
		"pkg/attest/internal/limits",
		"pkg/attest/internal/strictjson",
		"pkg/attest/oci",
		"pkg/certificate",
		"pkg/manifest",
		"pkg/record",
		"pkg/yamltokens",
		"schemas",
	},

	"pkg/attest/sigstore": {"pkg/attest", "pkg/attest/fault"},

	"pkg/audit":       {"pkg/manifest", "pkg/manifest/blake", "pkg/store"},
	"pkg/environment": {"pkg/record"},
	"pkg/live":        {},
	"pkg/report":      {"pkg/record", "pkg/workload"},
	"pkg/report/html": {"pkg/record", "pkg/report"},
	"pkg/datagen":     {"pkg/cluster", "pkg/format", "pkg/manifest", "pkg/manifest/blake", "pkg/store", "pkg/stream", "pkg/workload"},

	"pkg/bench/sampler":    {},
	"pkg/bench/loader":     {"pkg/format", "pkg/manifest/blake", "pkg/store"},
	"pkg/bench/checkpoint": {"pkg/store", "pkg/stream"},
	"pkg/bench/stats":      {"pkg/record"},
	"pkg/bench": {
		"pkg/bench/checkpoint",
		"pkg/bench/loader",
		"pkg/bench/sampler",
		"pkg/bench/stats",
		"pkg/cluster",
		"pkg/format",
		"pkg/live",
		"pkg/manifest",
		"pkg/manifest/blake",
		"pkg/record",
		"pkg/store",
		"pkg/stream",
		"pkg/workload",
	},
	"pkg/compare": {"pkg/bench/stats", "pkg/record", "pkg/report"},
	"pkg/explain": {"pkg/attest/oci", "pkg/bench", "pkg/bench/stats", "pkg/record", "pkg/store", "pkg/workload"},
	"pkg/export":  {"pkg/attest", "pkg/attest/fault", "pkg/attest/oci", "pkg/manifest", "pkg/record", "pkg/store"},
	"pkg/pipeline": {
		"pkg/attest",
		"pkg/attest/fault",
		"pkg/attest/oci",
		"pkg/audit",
		"pkg/bench",
		"pkg/bench/loader",
		"pkg/bench/stats",
		"pkg/certificate",
		"pkg/certify",
		"pkg/cluster",
		"pkg/compare",
		"pkg/datagen",
		"pkg/environment",
		"pkg/format",
		"pkg/journal",
		"pkg/live",
		"pkg/manifest",
		"pkg/record",
		"pkg/report",
		"pkg/report/html",
		"pkg/store",
		"pkg/store/s3",
		"pkg/stream",
		"pkg/workload",
	},
	"cmd/benchpin": {
		"pkg/attest",
		"pkg/attest/fault",
		"pkg/attest/oci",
		"pkg/attest/oci/registry",
		"pkg/attest/sigstore",
		"pkg/audit",
		"pkg/bench",
		"pkg/bench/stats",
		"pkg/certificate",
		"pkg/cluster",
		"pkg/cluster/mpi",
		"pkg/compare",
		"pkg/environment",
		"pkg/explain",
		"pkg/export",
		"pkg/journal",
		"pkg/live",
		"pkg/manifest",
		"pkg/pipeline",
		"pkg/record",
		"pkg/report",
		"pkg/report/html",
		"pkg/store",
		"pkg/workload",
		"workloads",
	},
}

// onlyForTests are helpers that no other package may import outside its tests.
var onlyForTests = []string{"pkg/cluster/clustertest", "pkg/cluster/mpi/mpitest", "pkg/attest/sigstore/sigstoretest", "pkg/store/s3/s3test", "pkg/store/storetest"}

// TestLayers fails on any import between packages of benchpin that the list does not allow, and on any package that the list lacks.
func TestLayers(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	seen := map[string]bool{}
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		if slices.Contains(onlyForTests, name) {
			continue
		}
		allowed, listed := allowedImports[name]
		if !listed {
			t.Errorf("package %s is not in the list of allowed imports: add it with the rooms below it that it calls", name)
			continue
		}
		seen[name] = true
		for _, imported := range p.Imports {
			rest, ours := strings.CutPrefix(imported, module)
			if ours && !slices.Contains(allowed, rest) {
				t.Errorf("%s imports %s, which the list does not allow (allowed: %v)", name, rest, allowed)
			}
		}
	}
	for name := range allowedImports {
		if !seen[name] {
			t.Errorf("the list names package %s, which does not exist", name)
		}
	}
}
