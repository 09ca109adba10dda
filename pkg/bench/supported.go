package bench

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/record"
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

// supported checks that everything the workload asks of the timed run on the data set exists, and returns how its samples are read.
func supported(w *workload.Workload, ds Dataset) (reading, error) {
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

	word("framework", w.Framework, "pytorch", "tensorflow")
	refuse(!w.Workflow.Train, "workflow.train", false, "true: without training and checkpoints there is nothing to run; \"benchpin data generate\" makes the data set alone")
	fm, bad := containerFor(w, ds)
	if bad != nil {
		e.Keys = append(e.Keys, *bad)
	}
	word("reader.data_loader", w.Reader.DataLoader, loaderPyTorch, loaderTensorFlow, loaderDALI, loaderNativeDALI, loaderSynthetic, loaderNone)
	for framework, other := range map[string]string{"pytorch": loaderTensorFlow, "tensorflow": loaderPyTorch} {
		refuse(w.Framework == framework && w.Reader.DataLoader == other, "reader.data_loader",
			fmt.Sprintf("%q with framework %s", other, framework), framework+", dali, native_dali, synthetic, none")
	}
	absent("reader.data_loader_classname", w.Reader.DataLoaderClassname)
	absent("reader.reader_classname", w.Reader.ReaderClassname)
	own := "index"
	if w.Reader.DataLoader == loaderTensorFlow {
		own = "iterative"
	}
	// DLIO derives the sampler of these three only; the others have one of their own, which is the index.
	derived := slices.Contains([]string{loaderPyTorch, loaderTensorFlow, loaderDALI}, w.Reader.DataLoader)
	refuse(derived && w.Reader.DataLoaderSampler != "" && w.Reader.DataLoaderSampler != own, "reader.data_loader_sampler",
		fmt.Sprintf("%q", w.Reader.DataLoaderSampler), own+" with data_loader "+w.Reader.DataLoader)
	rd := newReading(w, fm)
	rd.of(ds)
	if refused, those := rd.containers(w.Dataset.Format); refused && bad == nil {
		refuse(true, "dataset.format", fmt.Sprintf("%q", w.Dataset.Format), those)
	}
	word("storage.storage_type", w.Storage.StorageType, "local_fs", parallelFS, directFS, objectStore)
	refuse(w.Storage.StorageType == objectStore && w.Reader.ODirect, "reader.odirect", true,
		"false with storage.storage_type s3: objects are in no page cache that reads could go past")
	word("benchpin.order", w.Benchpin.Order, workload.OrderNumpy, workload.OrderDLIO)
	e.Keys = append(e.Keys, unsupportedCheckpoints(w)...)
	if len(e.Keys) > 0 {
		return reading{}, &e
	}
	return rd, nil
}

// datasetKey finds the key that an error about a container names.
var datasetKey = regexp.MustCompile(`dataset\.[a-z0-9_.]*[a-z0-9_]`)

// container returns the container of the files of a generated data set, or the key that asks for one that does not exist.
func container(w *workload.Workload) (format.Format, *Unsupported) { return containerFor(w, nil) }

// containerFor is container for a data set, which may be one that nobody generated.
func containerFor(w *workload.Workload, ds Dataset) (f format.Format, _ *Unsupported) {
	var spec format.Spec
	var err error
	if foreign(ds) != nil {
		if spec, err = format.ForeignSpec(&w.Dataset); err == nil {
			f, err = format.NewForeign(spec, w.Dataset.NumSamplesPerFile)
		}
	} else if spec, err = format.SpecOf(&w.Dataset); err == nil {
		f, err = format.New(spec)
	}
	if err == nil {
		return f, nil
	}
	u := &Unsupported{Key: "dataset.format", Found: fmt.Sprintf("%q", w.Dataset.Format), Supported: err.Error()}
	if !slices.Contains(format.Names(), w.Dataset.Format) {
		u.Supported = strings.Join(format.Names(), ", ")
	} else if key := datasetKey.FindString(err.Error()); key != "" {
		u.Key, u.Found = key, "given with dataset.format "+w.Dataset.Format
		if key == "dataset.compression" {
			u.Found = fmt.Sprintf("%q with dataset.format %s", w.Dataset.Compression, w.Dataset.Format)
		}
	}
	return nil, u
}

// note adds remarks about keys that are accepted and make no difference.
func (p *Plan) note() {
	w := p.workload
	add := func(when bool, text string, args ...any) {
		if when {
			p.Notes = append(p.Notes, fmt.Sprintf(text, args...))
		}
	}
	rd := &p.reading
	add(w.Reader.ReadThreads == 0 && rd.threads == 1, "reader.read_threads is 0: the %s loader has at least 1", rd.loader)
	add(w.Reader.ComputationThreads > 1 && rd.streamed == nil, "reader.computation_threads makes no difference but to the tensorflow loader on tfrecord")
	add(w.Reader.TransferSize > 0 && rd.streamed == nil, "reader.transfer_size makes no difference but to the tensorflow loader on tfrecord")
	add(rd.streamed != nil && w.Reader.TransferSize > 0 && int64(rd.transfer) != w.Reader.TransferSize,
		"reader.transfer_size is %d: files are read in pieces of %d bytes, the least that there is", w.Reader.TransferSize, rd.transfer)
	add(p.preprocess.zero() && !newTimes(preprocessDomain, w.Reader.PreprocessTime, w.Train).zero(),
		"reader.preprocess_time is not slept by the %s loader on %s, as in DLIO", rd.loader, w.Dataset.Format)
	add(rd.idle(), "reader.data_loader is %s: nothing is read, and steps only compute", rd.loader)
	add(w.Reader.ReadType == "memory" && rd.streamed != nil, "reader.read_type makes no difference to the tensorflow loader on tfrecord")
	add(w.Reader.ReadType == "memory" && rd.keep == loader.KeepAll && rd.whole() && !rd.fileless(),
		"reader.read_type is memory: a worker reads each of its files once in the run and, where epochs repeat files, asks for less after the first")
	add(p.Direct && w.Workflow.Checkpoint, "files of the data set are read past the page cache; checkpoints are written through it")
	add(w.Workflow.Profiling, "workflow.profiling is accepted and starts no profiler")
	add(w.Benchpin.Order == workload.OrderDLIO && (shuffles(w.Reader.FileShuffle) || shuffles(w.Reader.SampleShuffle)),
		"benchpin.order is dlio: samples are read in order, although the workload asks for shuffling")
	add(w.Benchpin.Order == workload.OrderNumpy && (w.Reader.FileShuffle == workload.ShuffleRandom || w.Reader.SampleShuffle == workload.ShuffleRandom),
		"shuffle \"random\" is seeded as \"seed\" is, so that the order can be recomputed")
	add(p.SamplesDropped > 0, "%d of %s left out of an epoch, because they fill no step of batch %d x %s",
		p.SamplesDropped, counted(p.Samples, "sample"), p.BatchSize, counted(p.Accelerators, "accelerator"))
	if p.model != nil {
		p.noteCheckpoints()
	}
	excluded := int64(w.Output.Metric.ExcludeStartSteps) + int64(w.Output.Metric.ExcludeEndSteps)
	add(excluded >= int64(p.StepsPerEpoch), "no AU: output.metric excludes %s and an epoch has %d", counted(excluded, "step"), p.StepsPerEpoch)
	window := int64(p.StepsPerEpoch) - excluded
	add(window > 0 && window < record.FewSteps, "AU and throughput will say little: of the %d steps of an epoch %d count, and what was prefetched before "+
		"them weighs much; use more files or fewer accelerators, so that at least %d count", p.StepsPerEpoch, window, record.FewSteps)
}
