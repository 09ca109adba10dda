package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ErrPreregistered: a run is not the one that was registered. Nothing was run.
var ErrPreregistered = errors.New("the run is not the one that was registered")

// maxPreregistration is the size of the largest pre-registration that is read.
const maxPreregistration = 1 << 20

// Preregister signs what a run of the workload on the data set with this manifest will be judged by, and returns the bundle and what it
// says. edition names the rules by which it will be judged, "" for none. Nothing is run, and the data set is not looked at.
func Preregister(ctx context.Context, w *workload.Resolved, manifestPath, edition string, key attest.Signer) ([]byte, attest.Preregistration, error) {
	none := attest.Preregistration{}
	if bench.CheckpointOnly(w.Workload) {
		return nil, none, fmt.Errorf("%w: a run without a data set has nothing that can be registered before it", bench.ErrUnsupported)
	}
	plan, w, err := PlanOn(ctx, w, manifestPath)
	if err != nil {
		return nil, none, err
	}
	m, err := manifest.Open(manifestPath)
	if err != nil {
		return nil, none, err
	}
	defer m.Close()
	p, err := registration(w, m, plan)
	if err != nil {
		return nil, none, err
	}
	p.RuleEdition = edition
	signed, err := attest.SignPreregistration(ctx, key, p, m.HeaderBytes())
	return signed, p, err
}

// registration is what a pre-registration of this run says.
func registration(w *workload.Resolved, m *manifest.Manifest, plan *bench.Plan) (attest.Preregistration, error) {
	h := m.Header()
	r := &record.Record{Workload: record.Workload{Name: w.Name, Digest: w.Digest.String(), Canonical: w.Canonical},
		Dataset: record.Dataset{Root: h.Root.String(), Manifest: m.Digest().String(), Seed: seedOf(h)}, Plan: plan.Plan}
	return attest.PreregistrationOf(r)
}

// seedOf is the seed of the recipe, "" for data that nobody generated.
func seedOf(h *manifest.Header) string {
	var recipe struct {
		Seed string `json:"seed"`
	}
	if h.Recipe == nil || json.Unmarshal(h.Recipe, &recipe) != nil {
		return ""
	}
	return recipe.Seed
}

// registered is what a run was registered with.
type registered struct {
	raw    []byte
	digest string
}

// checkRegistered refuses a run that differs from what was registered, before anything is verified or timed.
func (r *run) checkRegistered() error {
	if r.Preregistered == "" {
		return nil
	}
	fail := func(err error) error { return fmt.Errorf("pre-registration %s: %w", r.Preregistered, err) }
	if r.manifest == nil {
		return fail(fmt.Errorf("%w: a run without a data set has nothing that can be registered before it", bench.ErrUnsupported))
	}
	raw, err := store.ReadRegular(r.Preregistered, maxPreregistration)
	if err != nil {
		return fmt.Errorf("pre-registration: %w; \"benchpin preregister\" makes one", err)
	}
	signed, err := attest.ParsePreregistration(raw)
	if err != nil {
		return fail(err)
	}
	this, err := registration(r.Workload, r.manifest, r.plan)
	if err != nil {
		return fail(err)
	}
	faults, err := signed.Differences(this, oci.DigestsOf(r.manifest.HeaderBytes()))
	if err != nil {
		return fail(err)
	}
	if len(faults) > 0 {
		all := []error{ErrPreregistered}
		for _, f := range faults {
			all = append(all, errors.New(f.Error())) // as text: a fault would be one of verification
		}
		return fail(errors.Join(all...))
	}
	r.registered = &registered{raw, signed.Digest}
	r.stage("registered %s: workload, data set, seeds, accelerators and thresholds are those of %s", signed.Digest, r.Preregistered)
	return nil
}

// carryRegistered writes the pre-registration into the run folder, and its digest into the record.
func (r *run) carryRegistered(rec *record.Record) ([]record.File, error) {
	if r.registered == nil {
		return nil, nil
	}
	rec.Preregistration = &record.Preregistration{Class: record.Recomputable, Digest: r.registered.digest}
	if err := writeFile(filepath.Join(r.Out, record.PreregistrationName), r.registered.raw); err != nil {
		return nil, err
	}
	f, err := fileOf(r.Out, record.PreregistrationName)
	if err != nil {
		return nil, err
	}
	return []record.File{f}, nil
}
