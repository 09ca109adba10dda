package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/workload"
)

// DLIOOptions says what to do as DLIO's own program would.
type DLIOOptions struct {
	Workload *workload.Resolved
	// Manifest is the path of the manifest; "" is DATA.manifest.json beside the data folder.
	Manifest string
	// Out is the folder of results, Hydra's run folder.
	Out string
	// Config is how the run was asked for.
	Config  DLIOConfig
	Workers int
	// OverwriteCheckpoints is RunOptions.OverwriteCheckpoints.
	OverwriteCheckpoints bool
	Redact               bool
	Tool                 record.Tool
	Notify
}

// ErrNothingToDo is the error of a workload none of whose phases is on.
var ErrNothingToDo = errors.New("nothing to do")

// DLIO does what DLIO's program does with a workload: it generates the data set where workflow.generate_data asks for it, then trains or
// writes checkpoints where workflow.train or workflow.checkpoint ask for it, and leaves DLIO's files in the folder of results, with our
// record beside them. Without dataset.keep_files the data set is removed after training. The record is nil where nothing but data was
// asked for. As in DLIO, figures below the thresholds of the workload are no error: the record and summary.json tell of them.
func DLIO(ctx context.Context, o DLIOOptions) (rec *record.Record, err error) {
	w := o.Workload.Workload
	f := w.Workflow
	if !f.GenerateData && !f.Train && !f.Checkpoint {
		return nil, fmt.Errorf("%w: workflow.generate_data, workflow.train and workflow.checkpoint are all false; set one of them, such as "+
			"++workload.workflow.train=True", ErrNothingToDo)
	}
	data := DataFolder(w)
	if IsBucket(o.Manifest) {
		return nil, fmt.Errorf("--manifest %s: expected a file here; \"benchpin data generate\" and \"benchpin run\" take manifests in buckets", o.Manifest)
	}
	if o.Manifest == "" {
		o.Manifest = ManifestBeside(data)
	}
	if f.GenerateData && (f.Train || f.Checkpoint) {
		// What cannot be run is refused before hours of generating.
		plan, err := Plan(ctx, w, "")
		if err == nil && !o.OverwriteCheckpoints {
			err = ownCheckpoints(ctx, plan, checkpointFolder(w), false)
		}
		if err != nil {
			return nil, err
		}
	}
	if f.GenerateData || f.Train {
		if err := apartForRun(w, data, o.Out, checkpointFolder(w), o.Manifest); err != nil {
			return nil, err
		}
	}
	unmake := unmade(o.Out)
	defer func() {
		if rec == nil && err != nil {
			unmake()
		}
	}()
	if err := freshFolder(o.Out); err != nil {
		return nil, err
	}
	if f.GenerateData {
		if err := o.generate(ctx, data); err != nil {
			return nil, err
		}
	}
	if !f.Train && !f.Checkpoint {
		return nil, o.generatedOnly()
	}
	if f.Train && !f.GenerateData {
		if err := needManifest(o.Manifest); err != nil {
			return nil, err
		}
	}
	rec, err = Run(ctx, RunOptions{Workload: o.Workload, Data: data, Manifest: o.Manifest, Out: o.Out, Workers: o.Workers, Redact: o.Redact,
		OverwriteCheckpoints: o.OverwriteCheckpoints, Tool: o.Tool, DLIO: o.Config, Notify: o.Notify})
	if rec != nil && errors.Is(err, ErrThreshold) {
		o.stage("%v; as in DLIO, that is no failure", err)
		err = nil
	}
	if err != nil || w.Dataset.KeepFiles || !f.Train {
		return rec, err
	}
	if err := RemoveData(ctx, w, data, o.Manifest); err != nil {
		return rec, err
	}
	if err := keepManifest(o.Manifest, o.Out); err != nil {
		return rec, err
	}
	o.stage("removed the data set, as dataset.keep_files asks; its manifest is with the results")
	return rec, nil
}

// generate makes the data set, and waits as long as the workload asks until it is to be read.
func (o *DLIOOptions) generate(ctx context.Context, data string) error {
	_, err := Generate(ctx, GenerateOptions{Workload: o.Workload.Workload, Data: data, Manifest: o.Manifest, Workers: o.Workers, Notify: o.Notify})
	if err != nil {
		return err
	}
	return settle(ctx, o.Workload.Workload)
}

// settle waits as long as a workload asks until what was generated is to be read.
func settle(ctx context.Context, w *workload.Workload) error {
	wait := time.NewTimer(time.Duration(w.Storage.PostGenerationSettleSeconds * float64(time.Second)))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// generatedOnly leaves what DLIO leaves of a run that only generates: the log and the configuration.
func (o *DLIOOptions) generatedOnly() error {
	w := o.Workload.Workload
	config := o.Config
	config.Redact = o.Redact
	if _, err := WriteDLIOConfig(o.Out, o.Workload, config); err != nil {
		return err
	}
	stamp := time.Now().Format(report.DLIOStamp)
	text := fmt.Sprintf("[OUTPUT] %s Running DLIO [%s] with %d process(es)\n[OUTPUT] %s Generation done\n", stamp,
		strings.Join(report.DLIOPhases(w), " & "), w.Benchpin.Accelerators, stamp)
	return writeFile(filepath.Join(o.Out, w.Output.LogFile), []byte(text))
}

// errNotGenerated is the error of a run of DLIO's command line on data that benchpin did not make.
var errNotGenerated = errors.New("the data set has no manifest")

// needManifest refuses data whose manifest is not there, and says what to do.
func needManifest(path string) error {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s is not there. A run has to know which bytes it reads, and how long a sample is. Let benchpin generate the "+
			"data, with ++workload.workflow.generate_data=True into a folder of its own, or move the manifest (with its "+
			"%s) to this place", errNotGenerated, path, filepath.Base(manifest.EntriesPath(path)))
	case err != nil:
		return fmt.Errorf("manifest: %w", err)
	}
	return nil
}
