package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
)

// checkpointOnly tells a run that only writes and reads checkpoints: it has no epochs.
func checkpointOnly(p *record.Plan) bool { return p.Epochs == 0 && p.Checkpoints+p.CheckpointReads > 0 }

// checkpointResult are the figures of such a run.
func (p *page) checkpointResult(r *record.Record) {
	other := r.Metrics.Other
	for _, phase := range []struct {
		name, label string
		planned     int
	}{{"save_checkpoint", "written", r.Plan.Checkpoints}, {"load_checkpoint", "read back", r.Plan.CheckpointReads}} {
		if phase.planned == 0 {
			continue
		}
		mean, ok := other[phase.name+"_seconds_mean"]
		if !ok {
			p.row("", phase.label, "nothing")
			continue
		}
		rate := other[phase.name+"_bytes_per_second_mean"]
		p.row(class(mean), phase.label, fmt.Sprintf("%s in %s on average, the longest in %s", plural(record.Int(phase.planned), "checkpoint"),
			cell(mean, secondsText), cell(other[phase.name+"_seconds_max"], secondsText)))
		p.row(class(rate), "", cell(rate, rateText)+" on average, at least "+cell(other[phase.name+"_bytes_per_second_min"], rateText))
	}
	p.row("", "", "of the slowest of "+plural(record.Int(r.Plan.Accelerators), "accelerator")+", and "+
		bytesText(float64(r.Plan.CheckpointBytes))+" of tensors over all of them")
}

// checkpoints lists what was written and what was read back.
func (p *page) checkpoints(r *record.Record) {
	if saves := r.Checkpoints.Saves; len(saves) > 0 {
		durable := "not synced: the time may end before the bytes are safe"
		if r.Checkpoints.Fsync {
			durable = "synced to storage"
		}
		if slices.ContainsFunc(r.Environment.Buckets, func(b record.Bucket) bool { return b.Role == record.RoleCheckpoints }) {
			durable = "acknowledged by the object server"
		}
		p.title("Checkpoints (H), " + durable)
		header := []string{"name", "size", "ranks", "slowest rank", "rate"}
		apart := slices.ContainsFunc(saves, func(s record.Checkpoint) bool { return len(s.WriteSeconds) > 0 })
		if apart {
			header = []string{"name", "size", "ranks", "slowest rank", "of it writing", "rate"}
		}
		p.list(header, "checkpoints", len(saves), func(i int) []string {
			s := &saves[i]
			slowest, rate := slowestRank(s.Seconds, float64(s.Bytes))
			row := []string{clean(s.Name), bytesText(float64(s.Bytes)), strconv.Itoa(len(s.Seconds)), slowest}
			if apart {
				writing, _ := slowestRank(s.WriteSeconds, 0)
				row = append(row, writing)
			}
			return append(row, rate)
		})
	}
	loads := r.Checkpoints.Loads
	if len(loads) == 0 {
		return
	}
	p.title("Checkpoints read back (H)")
	p.list([]string{"name", "size", "ranks", "slowest rank", "rate", "from device", "compared"}, "reads", len(loads), func(i int) []string {
		l := &loads[i]
		slowest, rate := slowestRank(l.Seconds, float64(l.Bytes))
		device, compared := "-", "no"
		if l.DeviceBytes != nil {
			device = decimalBytes(float64(*l.DeviceBytes))
		}
		if l.Verified {
			compared = "equal"
		}
		return []string{clean(l.Name), bytesText(float64(l.Bytes)), strconv.Itoa(len(l.Seconds)), slowest, rate, device, compared}
	})
	switch e := r.Checkpoints.Eviction; {
	case e == nil && slices.ContainsFunc(r.Environment.Buckets, func(b record.Bucket) bool { return b.Role == record.RoleCheckpoints }):
		p.row("", "", "read from a bucket; what its server had in memory is not known here")
	case e == nil:
		p.row("", "", "not dropped from the page cache before")
	case e.ResidentBefore != nil && e.ResidentAfter != nil:
		p.row("", "", fmt.Sprintf("in the page cache %s, and %s after they were dropped from it", decimalBytes(float64(*e.ResidentBefore)),
			decimalBytes(float64(*e.ResidentAfter))))
	default:
		p.row("", "", "dropped from the page cache before; the host does not tell how much of them stayed")
	}
}

// list is a table of at most maxRows rows: the first and the last, and the number of all.
func (p *page) list(header []string, what string, n int, row func(i int) []string) {
	var rows [][]string
	for i := range n {
		if n > maxRows && i == maxRows/2 {
			rows = append(rows, append([]string{"..."}, make([]string, len(header)-1)...))
		}
		if n > maxRows && i >= maxRows/2 && i < n-maxRows/2 {
			continue
		}
		rows = append(rows, row(i))
	}
	p.table(true, header, rows)
	if n > maxRows {
		p.line("    %d %s, the first and the last %d shown", n, what, maxRows/2)
	}
}

// slowestRank is the longest of the ranks' times, and the rate that so many bytes had in it.
func slowestRank(seconds []float64, bytes float64) (slowest, rate string) {
	if len(seconds) == 0 {
		return "-", "-"
	}
	longest := slices.Max(seconds)
	rate = "-"
	if longest > 0 {
		rate = rateText(bytes / longest)
	}
	return secondsText(longest), rate
}

// checkpointProof says what pins a run without a data set.
func (p *page) checkpointProof(r *record.Record) {
	p.title("What was written")
	p.row("", "data set", "none: the run reads no data, and its manifest lists no file")
	p.row("C", "content", "of every checkpoint: from the seed of the workload, its number and the rank, so that no two are equal")
	p.row(string(r.Dataset.Class), "data root", clean(r.Dataset.Root))
	p.row(string(r.Transcript.Class), "transcript root", clean(r.Transcript.Root))
	p.identity(r)
}
