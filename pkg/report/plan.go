package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
)

// PlanExtras is what a plan page shows beside the plan. Empty and zero fields are left out.
type PlanExtras struct {
	// Workload is its name and Digest the digest of its canonical form.
	Workload, Digest string
	// DataFiles and DataBytes are the whole data set, evaluation files included.
	DataFiles, DataBytes record.Int
	// Data and Checkpoints are the folders, as given.
	Data, Checkpoints string
	// FreeBytes is the free space where data would be written; nil when it was not asked for.
	FreeBytes *int64
	// Verification is the mode, and Cold how pages are treated before epochs ("none", "start", "epoch").
	Verification, Cold string
	// KeptBytes is the memory for what a run keeps of the files of the data set. Less than a megabyte is left out.
	KeptBytes record.Int
	// Warnings are printed last.
	Warnings []string
}

// Plan prints what a run would do: what it reads, in how many steps, how long it takes when storage keeps up, and what storage must
// deliver. An error is one of w.
func Plan(w io.Writer, plan record.Plan, x PlanExtras, options ...Option) error {
	p := newPage(options)
	p.title("benchpin plan")
	p.text("workload", x.Workload)
	p.text("digest", x.Digest)
	if x.DataFiles > 0 {
		p.row("", "data set", plural(x.DataFiles, "file")+", "+bytesText(float64(x.DataBytes)))
	}
	p.text("data folder", x.Data)
	if x.FreeBytes != nil {
		p.row("", "free space", bytesText(float64(*x.FreeBytes)))
	}
	if checkpointOnly(&plan) {
		p.checkpointPlan(&plan, x)
		return p.flush(w)
	}
	p.title("Reading")
	p.row("", "accelerators", count(record.Int(plan.Accelerators)))
	p.row("", "samples", fmt.Sprintf("%s x %s = %s", plural(plan.Files, "file"), plural(plan.SamplesPerFile, "sample"), count(plan.Samples)))
	p.row("", "epochs", fmt.Sprintf("%d of %s x batch %s x %s = %s", plan.Epochs, plural(plan.StepsPerEpoch, "step"),
		count(record.Int(plan.BatchSize)), plural(record.Int(plan.Accelerators), "accelerator"), plural(plan.SamplesPerEpoch, "sample")))
	if plan.SamplesDropped > 0 {
		p.row("", "", plural(plan.SamplesDropped, "sample")+" of an epoch left out, because they fill no whole step")
	}
	p.row("", "bytes", bytesText(float64(plan.BytesPerEpoch))+" an epoch, "+bytesText(float64(plan.BytesTotal))+" in all")
	p.row("", "readers", fmt.Sprintf("%s an accelerator, %s ahead", plural(record.Int(plan.ReadThreads), "reader"),
		batches(plan.PrefetchFactor)))
	p.row("", "order", clean(plan.Order)+", seed "+strconv.FormatInt(int64(plan.OrderSeed), 10))
	p.text("verification", x.Verification)
	p.text("cold cache", x.Cold)
	p.title("Time")
	p.row("", "compute", secondsText(plan.ComputeSeconds)+" a step on average")
	p.row("", "timed run", secondsText(plan.ExpectedSeconds)+" when storage keeps up")
	if plan.RequiredBytesPerSecond != nil {
		p.row("", "storage must give", required(&plan))
	} else {
		p.row("", "storage must give", "as much as it can: without compute time there is no utilisation to reach")
	}
	p.title("Writing and memory")
	if plan.Checkpoints > 0 {
		p.row("", "checkpoints", fmt.Sprintf("%d of %s", plan.Checkpoints, bytesText(float64(plan.CheckpointBytes))))
		p.text("checkpoint folder", x.Checkpoints)
	} else {
		p.row("", "checkpoints", "none")
	}
	memory := bytesText(float64(plan.MemoryBytes)) + " of buffers at most"
	if x.KeptBytes >= 1e6 {
		memory += ", " + bytesText(float64(x.KeptBytes)) + " for what is kept of files"
	}
	p.row("", "memory", memory)
	p.warnings(x.Warnings)
	return p.flush(w)
}

func (p *page) warnings(list []string) {
	for i, warning := range list {
		if i == 0 {
			p.title("Warnings")
		}
		for _, line := range wrap(clean(warning), width-4) {
			p.line("    %s", line)
		}
	}
}

// checkpointPlan is the plan of a run that only writes and reads checkpoints.
func (p *page) checkpointPlan(plan *record.Plan, x PlanExtras) {
	p.title("Checkpoints alone, without a data set")
	p.row("", "accelerators", count(record.Int(plan.Accelerators)))
	p.row("", "one checkpoint", bytesText(float64(plan.CheckpointBytes))+" of tensors, over all accelerators")
	all := func(n int) string {
		if n == 0 {
			return "none"
		}
		return count(record.Int(n)) + ", " + bytesText(float64(n)*float64(plan.CheckpointBytes))
	}
	p.row("", "to write", all(plan.Checkpoints))
	p.row("", "to read back", all(plan.CheckpointReads))
	p.text("checkpoint folder", x.Checkpoints)
	p.text("verification", x.Verification)
	p.text("cold cache", x.Cold)
	p.row("", "pauses", secondsText(plan.ExpectedSeconds)+" in all")
	p.row("", "memory", bytesText(float64(plan.MemoryBytes))+" of buffers at most")
	p.warnings(x.Warnings)
}

func (p *page) text(label, value string) {
	if value != "" {
		p.row("", label, clean(value))
	}
}

func batches(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return count(record.Int(n)) + " batches"
}
