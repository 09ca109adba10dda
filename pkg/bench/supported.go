package bench

import (
	"errors"
	"fmt"
	"strings"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ErrUnsupported is the class of workloads that ask for something that this version cannot run.
var ErrUnsupported = errors.New("not supported yet")

// Unsupported names one key that asks for something that cannot be run, what was found there, and what can be.
type Unsupported struct {
	Key, Found, Supported string
}

func (u Unsupported) String() string {
	return fmt.Sprintf("%s is %s (supported: %s)", u.Key, u.Found, u.Supported)
}

// UnsupportedError holds every such key of a workload, so that all are seen at once. It is an ErrUnsupported.
type UnsupportedError struct{ Keys []Unsupported }

func (e *UnsupportedError) Error() string {
	s := make([]string, len(e.Keys))
	for i, k := range e.Keys {
		s[i] = k.String()
	}
	return ErrUnsupported.Error() + ": " + strings.Join(s, "; ") + "; change them with overrides such as " +
		"++workload." + e.Keys[0].Key + "=..."
}

// Unwrap makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Unwrap() error { return ErrUnsupported }

// supported checks that everything the workload asks of the timed run exists, and returns the format of its files.
func supported(w *workload.Workload) (format.Format, error) {
	var e UnsupportedError
	refuse := func(bad bool, key string, found any, supported string) {
		if bad {
			e.Keys = append(e.Keys, Unsupported{key, fmt.Sprint(found), supported})
		}
	}
	word := func(key, found string, allowed ...string) {
		for _, a := range allowed {
			if found == a {
				return
			}
		}
		refuse(true, key, fmt.Sprintf("%q", found), strings.Join(allowed, ", "))
	}
	absent := func(key, found string) {
		refuse(found != "", key, fmt.Sprintf("%q", found), "absent: Python classes cannot be run")
	}

	word("framework", w.Framework, "pytorch")
	refuse(!w.Workflow.Train, "workflow.train", false, "true: without training and checkpoints there is nothing to run")
	refuse(w.Workflow.Evaluation, "workflow.evaluation", true, "false")
	fm, err := format.ByName(w.Dataset.Format)
	if err != nil {
		refuse(true, "dataset.format", fmt.Sprintf("%q", w.Dataset.Format), "npz, npy")
	}
	refuse(w.Dataset.Compression != "" && w.Dataset.Compression != "none", "dataset.compression", fmt.Sprintf("%q", w.Dataset.Compression), "none")
	word("reader.data_loader", w.Reader.DataLoader, "pytorch")
	absent("reader.data_loader_classname", w.Reader.DataLoaderClassname)
	absent("reader.reader_classname", w.Reader.ReaderClassname)
	refuse(w.Reader.DataLoaderSampler != "" && w.Reader.DataLoaderSampler != "index", "reader.data_loader_sampler",
		fmt.Sprintf("%q", w.Reader.DataLoaderSampler), "index")
	refuse(w.Reader.ReadType == "memory", "reader.read_type", `"memory"`, "on_demand")
	refuse(w.Reader.ODirect, "reader.odirect", true, "false")
	word("storage.storage_type", w.Storage.StorageType, "local_fs")
	word("benchpin.order", w.Benchpin.Order, workload.OrderNumpy, workload.OrderDLIO)
	refuse(w.Benchpin.AcceleratorsPerProcess != 0 && w.Benchpin.AcceleratorsPerProcess < w.Benchpin.Accelerators,
		"benchpin.accelerators_per_process", w.Benchpin.AcceleratorsPerProcess, "0, or as many as benchpin.accelerators: one process carries all")
	e.Keys = append(e.Keys, unsupportedCheckpoints(w)...)
	if len(e.Keys) > 0 {
		return nil, &e
	}
	return fm, nil
}

// note adds remarks about keys that are accepted and make no difference.
func (p *Plan) note() {
	w := p.workload
	add := func(when bool, text string, args ...any) {
		if when {
			p.Notes = append(p.Notes, fmt.Sprintf(text, args...))
		}
	}
	add(w.Workflow.Profiling, "workflow.profiling is accepted and starts no profiler")
	add(w.Benchpin.Order == workload.OrderDLIO && (shuffles(w.Reader.FileShuffle) || shuffles(w.Reader.SampleShuffle)),
		"benchpin.order is dlio: samples are read in order, although the workload asks for shuffling")
	add(w.Benchpin.Order == workload.OrderNumpy && (w.Reader.FileShuffle == workload.ShuffleRandom || w.Reader.SampleShuffle == workload.ShuffleRandom),
		"shuffle \"random\" is seeded as \"seed\" is, so that the order can be recomputed")
	add(p.SamplesDropped > 0, "%d of %d samples are not read in an epoch: they do not fill a step of batch %d x %d accelerators",
		p.SamplesDropped, p.Samples, p.BatchSize, p.Accelerators)
	if p.model != nil {
		p.noteCheckpoints()
	}
	excluded := int64(w.Output.Metric.ExcludeStartSteps) + int64(w.Output.Metric.ExcludeEndSteps)
	add(excluded >= int64(p.StepsPerEpoch), "no AU: output.metric excludes %d steps and an epoch has %d", excluded, p.StepsPerEpoch)
}
