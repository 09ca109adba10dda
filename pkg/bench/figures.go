package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
)

// StepsFile is where a run keeps its step times: written once from its beginning, then read. An *os.File is one.
type StepsFile interface {
	io.Writer
	io.ReaderAt
}

// countingFile knows how much was written.
type countingFile struct {
	StepsFile
	n int64
}

func (c *countingFile) Write(p []byte) (int, error) {
	n, err := c.StepsFile.Write(p)
	c.n += int64(n)
	return n, err
}

// Params are the numbers of the plan that the figures of a run depend on, for stats.Summarise: the run computes its figures from
// its file of steps as anyone else does. partial accepts a run that ended early.
func (p *Plan) Params(partial bool) stats.Params {
	w := p.workload
	return stats.Params{
		Accelerators: p.Accelerators, Epochs: p.Epochs, StepsPerEpoch: int64(p.StepsPerEpoch), BatchSize: p.BatchSize,
		ExcludeStart: int64(w.Output.Metric.ExcludeStartSteps), ExcludeEnd: int64(w.Output.Metric.ExcludeEndSteps),
		AUThreshold: p.AUThreshold, RecordBytes: w.Dataset.RecordLengthBytes, Partial: partial,
		Readers: int(p.reading.workers()), LeastBytes: p.leastBytes(int64(p.BytesTotal)),
	}
}

// leastBytes is how many bytes a complete run asks for at least, of so many that are planned: all of them where containers are read whole,
// which is what the plan counts exactly, and 0 elsewhere.
func (p *Plan) leastBytes(planned int64) int64 {
	if rd := &p.reading; rd.fileless() || !rd.whole() || rd.streamed != nil || rd.grouped() != nil {
		return 0
	}
	return planned
}

// summariseWithin bounds how long the figures of an interrupted run may take.
const summariseWithin = 400 * time.Millisecond

// metrics computes the figures from the file of steps.
func (r *run) metrics(ctx context.Context, complete bool) (record.Metrics, error) {
	if !complete {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), summariseWithin)
		defer cancel()
	}
	var eval io.ReaderAt
	var size int64
	if v := r.evaluating; v != nil {
		eval, size = v.steps, v.steps.n
	}
	m, err := Figures(ctx, r.p, StepsReader{r.steps, r.steps.n}, StepsReader{eval, size}, !complete)
	if err != nil {
		return record.Metrics{}, fmt.Errorf("figures of the run: %w", err)
	}
	return m, nil
}

// openDevice looks at the kernel's counter at the start of an epoch.
func (r *run) openDevice() {
	r.deviceStart, r.deviceErr = r.o.DeviceBytes()
}

// deviceSince notes what came from block devices since openDevice, and what else the storage tells, as that of an epoch or a pass. Of a
// run on several processes each keeps its own until they are merged.
func (r *run) deviceSince(ctx context.Context, rec *stats.Recorder, looks *epochLooks, epoch int) error {
	end, err := r.o.DeviceBytes()
	if r.deviceErr != nil {
		err = r.deviceErr
	}
	look, err := r.lookAfter(ctx, epoch, CountOf(end-r.deviceStart, err))
	if err != nil {
		return err
	}
	if r.world.Size() > 1 {
		look.Node = cmp.Or(r.o.Host, r.world.Node())
		looks.own = append(looks.own, look)
		return nil
	}
	d, err := merged([]epochLook{look}, r.p.Direct)
	if err != nil {
		return err
	}
	return rec.SetDevice(d)
}

// processDeviceBytes is read_bytes of /proc/self/io: what the kernel fetched from the storage layer for this process, read-ahead
// included.
func processDeviceBytes() (int64, error) {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, fmt.Errorf("bytes from block devices are unknown: %w", err)
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("read_bytes: ")); ok {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("bytes from block devices are unknown: /proc/self/io: %w", err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("bytes from block devices are unknown: /proc/self/io has no line read_bytes")
}
