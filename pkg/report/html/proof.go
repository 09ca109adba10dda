package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// proof is what is known about who stands for the result.
func (v *runView) proof(r *Run) {
	archive := "ARCHIVE"
	switch {
	case r.Verification == nil:
		v.Proof, v.ProofTone = "Not verified: for this page nobody checked a signature or computed a figure again", "plain"
		if r.Archive == "" {
			v.Proof = "Not signed: this is a run folder, and for this page nobody computed a figure again"
			v.Commands = append(v.Commands, "benchpin attest RUN --manifest MANIFEST --archive ARCHIVE --key KEY")
		}
	default:
		v.Verified, v.Checks = true, slices.Clone(r.Verification.Checks)
		failed := 0
		for i := range v.Checks {
			c := &v.Checks[i]
			c.Name, c.Class, c.Evidence, c.Limits, c.Problem = report.Clean(c.Name), report.Clean(c.Class), report.Clean(c.Evidence), report.Clean(c.Limits), report.Clean(c.Problem)
			if !c.OK && !c.Waived {
				failed++
			}
		}
		v.Signers, v.Times, v.Notes = cleaned(r.Verification.Signers), cleaned(r.Verification.Times), cleaned(r.Verification.Notes)
		v.Assurance = report.Clean(r.Verification.Assurance)
		if r.Verification.Holds {
			v.Proof, v.ProofTone = fmt.Sprintf("Verified: %d checks, signed by somebody whom the maker of this page accepts", len(v.Checks)), "good"
		} else {
			v.Proof, v.ProofTone = fmt.Sprintf("Verification failed: %d of %d checks", failed, len(v.Checks)), "bad"
		}
	}
	v.Commands = append(v.Commands, "benchpin verify "+archive+" --key KEY.pub")
}

func cleaned(list []string) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = report.Clean(list[i])
	}
	return list
}

// digests pin what the run was made of and what came of it, and the files beside the record.
func digests(r *Run) (list, files []digestRow) {
	rec := r.Record
	list = []digestRow{
		{"C", "Archive", r.Archive, "SHA-256 of its OCI manifest; names all its content"},
		{"C", "Record", r.Digest, "record.json"},
		{string(rec.Dataset.Class), "Data set", rec.Dataset.Root, "root over all files"},
		{string(rec.Dataset.Class), "Manifest", rec.Dataset.Manifest, "manifest.json"},
		{"C", "Workload", rec.Workload.Digest, "canonical form, with overrides"},
		{"C", "Workload file", rec.Workload.Source, "as it was read"},
		{string(rec.Transcript.Class), "Transcript", rec.Transcript.Root, transcriptNote(rec)},
		{"H", "Program", rec.Tool.Binary, "the executable that ran"},
	}
	for _, f := range rec.Files {
		files = append(files, digestRow{"C", f.Name, f.Blake3, report.Bytes(float64(f.Size))})
	}
	list = slices.DeleteFunc(list, func(d digestRow) bool { return d.Value == "" })
	if more := len(files) - mostRows; more > 0 {
		files = append(files[:mostRows], digestRow{Name: fmt.Sprintf("%d more", more)})
	}
	for _, some := range [][]digestRow{list, files} {
		for i := range some {
			d := &some[i]
			d.Class, d.Name, d.Value, d.Note = report.Clean(d.Class), report.Clean(d.Name), report.Clean(d.Value), report.Clean(d.Note)
		}
	}
	return list, files
}

func transcriptNote(r *record.Record) string {
	t := &r.Transcript
	switch {
	case t.Root == t.Expected:
		return "of what was read; equal to what workload, recipe and plan demand, over " + report.Count(t.Entries) + " samples"
	case r.Status == record.StatusIncomplete:
		return "of what was read until the run ended"
	}
	return "of what was read; DIFFERS from what the plan expects, " + t.Expected
}

// compare puts runs beside each other. unlike names what must be equal for their figures to be comparable, and is not.
func compare(runs []Run) (t *compareTable, unlike []string) {
	t = &compareTable{}
	for i := range runs {
		t.Runs = append(t.Runs, report.Clean(runs[i].Record.ID))
	}
	row := func(class, name string, digest bool, of func(*record.Record) string) bool {
		c := compareRow{Class: class, Name: name, Digest: digest}
		for i := range runs {
			s := report.Clean(of(runs[i].Record))
			if digest {
				s = short(s)
			}
			c.Values = append(c.Values, s)
		}
		first := of(runs[0].Record)
		c.Differs = slices.ContainsFunc(runs, func(r Run) bool { return of(r.Record) != first })
		if slices.ContainsFunc(c.Values, func(s string) bool { return s != "" && s != "-" }) {
			t.Rows = append(t.Rows, c)
		}
		return c.Differs
	}
	row("", "Status", false, func(r *record.Record) string { return r.Status })
	row("H", "AU", false, func(r *record.Record) string { return value(r.Metrics.AU) })
	row("C", "Threshold of AU", false, func(r *record.Record) string {
		s := value(r.Metrics.Threshold)
		if m := r.Metrics.Met; m != nil && *m {
			s += ", met"
		} else if m != nil {
			s += ", missed"
		}
		return s
	})
	row("H", "Samples", false, func(r *record.Record) string { return value(r.Metrics.SamplesPerSecond) })
	row("H", "Throughput", false, func(r *record.Record) string { return value(r.Metrics.BytesPerSecond) })
	for _, n := range []struct{ key, name string }{{"step_p50", "Step, median"}, {"step_p99", "Step, 99 %"}, {"load_p50", "Wait for data, median"}, {"load_p99", "Wait for data, 99 %"},
		{"load_max", "Wait for data, longest"}, {"save_checkpoint_bytes_per_second_mean", "Checkpoints written"}, {"load_checkpoint_bytes_per_second_mean", "Checkpoints read back"}} {
		row("H", n.name, false, func(r *record.Record) string {
			if f, ok := r.Metrics.Other[n.key]; ok {
				return value(f)
			}
			return ""
		})
	}
	row("H", "Processors", false, func(r *record.Record) string { return r.Environment.CPU.Model })
	row("H", "Kernel", false, func(r *record.Record) string { return r.Environment.Host.Kernel })
	for _, must := range []struct {
		name, what string
		of         func(*record.Record) string
	}{{"Workload", "the workload", func(r *record.Record) string { return r.Workload.Digest }}, {"Data set", "the data set", func(r *record.Record) string { return r.Dataset.Root }},
		{"Transcript", "what was read, and in which order", func(r *record.Record) string { return r.Transcript.Root }}} {
		if row("C", must.name, true, must.of) {
			unlike = append(unlike, must.what)
		}
	}
	row("H", "Program", true, func(r *record.Record) string { return r.Tool.Binary })
	return t, unlike
}

func value(f record.Figure) string {
	if f.Value == nil {
		return "absent: " + f.Absent
	}
	return cell(f)
}

// short keeps the beginning of a digest, by which eyes compare; the whole is on the same page.
func short(s string) string {
	name, hex, ok := strings.Cut(s, ":")
	if ok && len(hex) > 16 {
		return name + ":" + hex[:16] + "…"
	}
	return s
}
