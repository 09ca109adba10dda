package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// The words of reader.data_loader that can be run.
const (
	loaderPyTorch    = "pytorch"
	loaderTensorFlow = "tensorflow"
	loaderDALI       = "dali"
	loaderNativeDALI = "native_dali"
	loaderSynthetic  = "synthetic"
	loaderNone       = "none"
)

const (
	formatTFRecord  = "tfrecord"
	formatSynthetic = "synthetic"
)

// reading is how the run's samples are read: the loader emulated and what its keys come to.
type reading struct {
	loader string
	format format.Format
	// streamed is set where files are read as streams: TensorFlow's loader on tfrecord.
	streamed format.Streamed
	transfer int
	// threads are those that read for one accelerator, prefetch what the loader makes of the keys about batches ahead (record.Plan).
	threads, prefetch int
	keep              loader.Keep
	samples           int64 // of a file
	// shared: the size of a sample is its share of the file (Foreign). alone: files have no companions.
	shared, alone bool
}

// of takes from the data set what concerns reading it.
func (r *reading) of(ds Dataset) {
	if f := foreign(ds); f != nil {
		r.shared, r.alone = true, !f.Companions()
	}
}

// companions are those of each file.
func (r *reading) companions() []format.Companion {
	if c, ok := r.format.(format.Companioned); ok && !r.alone {
		return c.Companions()
	}
	return nil
}

// newReading resolves the keys of section reader.
func newReading(w *workload.Workload, f format.Format) reading {
	r := &w.Reader
	rd := reading{loader: r.DataLoader, format: f, threads: r.ReadThreads, prefetch: r.PrefetchSize, samples: int64(w.Dataset.NumSamplesPerFile)}
	if r.ReadType == "memory" {
		rd.keep = loader.KeepAll
	}
	if _, ok := f.(format.Remembering); ok && rd.keep == loader.KeepSample {
		rd.keep = loader.KeepRun
	}
	switch rd.loader {
	case loaderPyTorch:
		rd.prefetch = loader.PrefetchFactor(r.PrefetchSize, r.ReadThreads)
	case loaderTensorFlow:
		rd.threads = max(1, rd.threads)
		if s, ok := f.(format.Streamed); ok && w.Dataset.Format == formatTFRecord {
			rd.streamed, rd.keep = s, loader.KeepSample
			rd.transfer = int(loader.TransferSize(r.TransferSize))
			rd.prefetch += max(1, r.ComputationThreads)
		} else if rd.keep == loader.KeepSample {
			rd.keep = loader.KeepRun
		}
	case loaderDALI, loaderNativeDALI:
		rd.threads, rd.prefetch = max(1, rd.threads), loader.QueueDepth(r.PrefetchSize)
	default:
		rd.threads, rd.prefetch = 0, 0
	}
	return rd
}

// idle is true where nothing is read at all.
func (r *reading) idle() bool { return r.loader == loaderSynthetic || r.loader == loaderNone }

// fileless is true where no file is opened: idle loaders, and the container whose reader does nothing.
func (r *reading) fileless() bool { return r.idle() || r.format.Name() == formatSynthetic }

// whole is true where reading a sample reads all of its file.
func (r *reading) whole() bool {
	_, partial := r.format.(format.Partial)
	return !partial
}

// ReadsParts is true where a sample is read without the rest of its file: a store that fetches whole files would fetch for nothing.
func (p *Plan) ReadsParts() bool {
	return p.order != nil && !p.reading.fileless() && p.reading.streamed == nil && !p.reading.whole()
}

// workers is the number of goroutines that read for one accelerator.
func (r *reading) workers() int64 {
	if r.idle() {
		return 0
	}
	return int64(max(1, r.threads))
}

// sampling fills in what the loader means for the order of samples.
func (r *reading) sampling(c sampler.Config, w *workload.Workload) sampler.Config {
	if r.loader != loaderTensorFlow {
		return c
	}
	c.Lanes = r.threads
	if r.streamed == nil {
		c.Sampling = sampler.Iterative
		return c
	}
	c.Sampling = sampler.Stream
	if shuffles(w.Reader.SampleShuffle) {
		c.Buffer = int64(w.Reader.ShuffleSize)
	}
	return c
}

// lane is the worker that reads position pos of an accelerator's epoch, where workers read by number.
func (r *reading) lane(pos int64, batch int) int64 {
	if r.loader == loaderDALI || r.loader == loaderNativeDALI {
		return pos % r.workers()
	}
	return pos / int64(batch) % r.workers()
}

// slots is the number of batches whose accounts one accelerator's loader keeps, for an epoch of so many steps.
func (r *reading) slots(steps int64) int64 {
	switch {
	case r.idle():
		return 1
	case r.loader == loaderPyTorch:
		return min(int64(r.threads)*int64(r.prefetch), steps) + 1
	case r.loader == loaderTensorFlow && r.streamed == nil:
		return min(int64(r.prefetch)+2*int64(r.threads), steps) + 1
	}
	return min(int64(r.prefetch), steps) + 1
}

// loaderOf makes the loader of one accelerator for one part of the data set.
func (r *run) loaderOf(ctx context.Context, src *loader.Source, rank, batch int, steps int64) (loader.Loader, error) {
	rd := &r.p.reading
	switch {
	case rd.idle():
		return loader.NewIdle(rank, batch, steps)
	case rd.streamed != nil:
		return loader.NewTFRecord(ctx, loader.TFRecordConfig{Source: src, Format: rd.streamed, Samples: rd.samples, Rank: rank, BatchSize: batch,
			Steps: steps, Lanes: rd.threads, Ready: rd.prefetch, Transfer: rd.transfer, Places: places})
	case rd.loader == loaderTensorFlow:
		return loader.NewTensorFlow(ctx, loader.TensorFlowConfig{Source: src, Rank: rank, BatchSize: batch, Steps: steps, Threads: rd.threads,
			Prefetch: rd.prefetch})
	case rd.loader == loaderDALI || rd.loader == loaderNativeDALI:
		return loader.NewDALI(ctx, loader.DALIConfig{Source: src, Rank: rank, BatchSize: batch, Steps: steps, Threads: rd.threads, Depth: rd.prefetch})
	}
	return loader.NewPyTorch(ctx, loader.PyTorchConfig{Source: src, Rank: rank, BatchSize: batch, Steps: steps, Workers: rd.threads,
		Prefetch: rd.prefetch})
}

// places begins the draws of an epoch's shuffle buffer.
func places(o loader.Order) loader.Places { return o.(*sampler.EpochOrder).Shuffle() }

// source is what the loaders of one part of the data set read from.
func (r *run) source(ds Dataset, evaluation bool, buffers *loader.Buffers) *loader.Source {
	src := r.p.source(ds)
	src.Store, src.Buffers, src.Capture = r.o.Data, buffers, r.inline.capturing()
	if identity := r.o.Identity; identity != nil {
		src.Identity = func(i int64, companion int) (store.Info, bool) {
			return identity(FileID{Evaluation: evaluation, Index: int(i), Companion: companion})
		}
	}
	if !r.p.preprocess.zero() {
		src.Preprocess = r.p.preprocess.at
	}
	return src
}

// source is how the samples of a part of a data set are read, without where from.
func (p *Plan) source(ds Dataset) *loader.Source {
	rd := &p.reading
	src := &loader.Source{Decoder: rd.format,
		Path:        func(i int64) string { return ds.Path(int(i)) },
		Size:        func(i int64) int64 { return ds.Size(int(i)) },
		SampleBytes: func(i int64) int64 { return rd.sizes(ds).SampleBytes(int(i)) },
		Keep:        rd.keep, Whole: rd.whole(), Idle: rd.fileless(), Shared: rd.shared,
	}
	for _, c := range rd.companions() {
		src.Companions = append(src.Companions, c.Path)
	}
	return src
}

// containers says which containers a loader reads, and how to read the others; "" where it reads all.
func (r *reading) containers(name string) (refused bool, supported string) {
	switch r.loader {
	case loaderPyTorch, loaderDALI:
		return name == formatTFRecord, fmt.Sprintf("everything else with data_loader %s; tfrecord with tensorflow or native_dali", r.loader)
	case loaderNativeDALI:
		native := []string{"jpeg", "png", "npy", formatTFRecord}
		return !slices.Contains(native, name), "jpeg, png, npy, tfrecord with data_loader native_dali; others with dali"
	}
	return false, ""
}
