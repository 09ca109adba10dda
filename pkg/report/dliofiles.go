package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
)

// DLIOStamp is the form of DLIO's timestamps: local time, without a zone.
const DLIOStamp = "2006-01-02T15:04:05.000000"

// gib is what DLIO calls a GB.
const gib = 1 << 30

// at is the timestamp of an offset.
func (r *dlioRun) at(offset int64) string {
	return r.Clock.Add(time.Duration(offset)).Format(DLIOStamp)
}

// clock is a time of the record as a timestamp.
func (r *dlioRun) clock(s string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return s
	}
	return t.In(r.Clock.Location()).Format(DLIOStamp)
}

// recordLength is the nominal size of a sample, which DLIO computes volumes and MB/s with.
func (r *dlioRun) recordLength() float64 { return r.w.Dataset.RecordLengthBytes }

// summary is summary.json.
func (r *dlioRun) summary() dlioObject {
	rec, d := r.Record, &r.w.Dataset
	volume := float64(int64(d.NumSamplesPerFile)*int64(d.NumFilesTrain)) * r.recordLength() / gib
	cpus := []int{}
	if n := rec.Environment.CPU.Online; n != nil {
		cpus = append(cpus, *n)
	}
	o := dlioObject{
		{"start", r.clock(rec.Started)},
		{"num_accelerators", rec.Plan.Accelerators},
		{"num_hosts", 1},
		{"hostname", rec.Environment.Host.Name},
		{"metric", r.metric()},
		{"num_files_train", d.NumFilesTrain},
		{"num_files_eval", d.NumFilesEval},
		{"num_samples_per_file", d.NumSamplesPerFile},
		{"host_cpu_count", cpus},
		{"host_processor_name", known(rec.Environment.CPU.Model)},
		{"potential_caching", []int{r.caching(volume)}},
	}
	o = append(o, r.host()...)
	memory := []float64{}
	if v, ok := r.memory(); ok {
		memory = append(memory, v)
	}
	o.add("host_memory_GB", memory)
	o.add("data_size_per_host_GB", volume)
	epochs := len(rec.Metrics.Epochs)
	if !r.w.Workflow.Train {
		epochs = 0
	}
	o.add("epochs", epochs)
	o.add("end", r.clock(rec.Finished))
	return o
}

// known is a text of the environment, "" where it could not be found out.
func known(s string) string {
	if s == record.UnknownText {
		return ""
	}
	return s
}

// memory is the host's memory in GiB.
func (r *dlioRun) memory() (float64, bool) {
	if m := r.Record.Environment.Memory.Total; m != nil {
		return float64(*m) / gib, true
	}
	return 0, false
}

// caching is 1 where the data of a host would fit into its memory.
func (r *dlioRun) caching(volume float64) int {
	if memory, ok := r.memory(); ok && memory <= volume {
		return 0
	}
	return 1
}

// host are the tables of /proc.
func (r *dlioRun) host() (o dlioObject) {
	if r.CPUInfo != nil {
		o.add("host_cpuinfo", r.CPUInfo)
	}
	if r.MemInfo != nil {
		o.add("host_meminfo", r.MemInfo)
	}
	return o
}

// metricOrder is the order in which DLIO writes its figures.
func metricOrder() []string {
	return []string{
		"save_checkpoint_io_mean_GB_per_second", "save_checkpoint_io_stdev_GB_per_second",
		"save_checkpoint_duration_mean_seconds", "save_checkpoint_duration_stdev_seconds",
		"load_checkpoint_io_mean_GB_per_second", "load_checkpoint_io_stdev_GB_per_second",
		"load_checkpoint_duration_mean_seconds", "load_checkpoint_duration_stdev_seconds",
		"checkpoint_size_GB",
		"train_au_percentage", "train_au_mean_percentage", "train_au_meet_expectation", "train_au_stdev_percentage",
		"train_throughput_samples_per_second", "train_throughput_mean_samples_per_second", "train_throughput_stdev_samples_per_second",
		"train_io_mean_MB_per_second", "train_io_stdev_MB_per_second",
		"eval_au_percentage", "eval_au_mean_percentage", "eval_au_meet_expectation", "eval_au_stdev_percentage",
		"eval_throughput_samples_per_second", "eval_throughput_mean_samples_per_second", "eval_throughput_stdev_samples_per_second",
		"eval_io_mean_MB_per_second", "eval_io_stdev_MB_per_second",
	}
}

// metric are DLIO's figures of the record.
func (r *dlioRun) metric() (o dlioObject) {
	all := r.Record.Metrics.DLIO
	for _, name := range metricOrder() {
		if v, ok := all[name]; ok {
			o.add(name, plainMetric(v))
		}
	}
	return o
}

// plainMetric gives a figure of DLIO the type that it has in DLIO's file: numbers are floats, whoever wrote or read the record.
func plainMetric(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plainMetric(v[i])
		}
		return list
	}
	return v
}

// checkpointSize is what DLIO calls checkpoint_size_GB: the payload of one checkpoint over all ranks as DLIO counts it, in GiB.
func (r *dlioRun) checkpointSize() float64 {
	if v, ok := plainMetric(r.Record.Metrics.DLIO["checkpoint_size_GB"]).(float64); ok {
		return v
	}
	return float64(r.Record.Plan.CheckpointBytes) / gib
}

// meanDeviation are the mean and the population standard deviation.
func meanDeviation(v []float64) (mean, deviation float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x
	}
	mean /= n
	for _, x := range v {
		deviation += float64((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(deviation / n)
}

// dlioSave is one checkpoint that a rank wrote or read.
type dlioSave struct {
	epoch, block int
	step         int64
	load         bool
	start, end   int64
	seconds      float64
}

func (s *dlioSave) name() string {
	if s.load {
		return fmt.Sprintf("load_ckpt%d", s.block)
	}
	return fmt.Sprintf("save_ckpt%d", s.block)
}

// saves are the checkpoints that a rank wrote and read, in their order. Those of training are numbered by the block that they follow, and
// begin when it ended; those of a run without training are numbered from 1.
func (r *dlioRun) saves(rank int, k *dlioRank) []dlioSave {
	c := &r.Record.Checkpoints
	list := make([]dlioSave, 0, len(c.Saves)+len(c.Loads))
	for i := range c.Saves {
		s := dlioSave{epoch: c.Saves[i].Epoch, block: i + 1, step: int64(c.Saves[i].Step)}
		if s.epoch <= len(k.epochs) {
			s.block, s.start = k.epochs[s.epoch-1].blockOf(s.step)
		} else if at := c.Saves[i].Start; at != nil {
			s.start = r.offset(*at)
		}
		s.took(rank, c.Saves[i].Seconds)
		list = append(list, s)
	}
	for i := range c.Loads {
		l := dlioSave{epoch: c.Loads[i].Epoch, block: i + 1, step: int64(c.Loads[i].Step), load: true, start: r.offset(c.Loads[i].Start)}
		l.took(rank, c.Loads[i].Seconds)
		list = append(list, l)
	}
	return list
}

// offset is a time after the start of the record as an offset of the steps' clock. A record has its start in nanoseconds.
func (r *dlioRun) offset(seconds float64) int64 {
	started, err := time.Parse(time.RFC3339Nano, r.Record.Started)
	if err != nil {
		return int64(seconds * 1e9)
	}
	return int64(started.Sub(r.Clock)) + int64(seconds*1e9)
}

// took notes how long a rank took.
func (s *dlioSave) took(rank int, seconds []float64) {
	if rank < len(seconds) {
		s.seconds = seconds[rank]
	}
	s.end = s.start + int64(s.seconds*1e9)
}

// blockOf is the number of the block that a step ends, and when the block ended. DLIO numbers a checkpoint at the end of an epoch by
// the step after the last.
func (e *dlioEpoch) blockOf(step int64) (block int, end int64) {
	var steps int64
	for i := range e.blocks {
		block, end = i+1, e.blocks[i].end
		if steps += int64(len(e.blocks[i].load)); steps >= step {
			break
		}
	}
	return max(block, 1), end
}

// output is the file of one rank's step times.
func (r *dlioRun) output(k *dlioRank, saves []dlioSave) dlioObject {
	env := &r.Record.Environment
	var o dlioObject
	if v, ok := r.memory(); ok {
		o.add("host_memory_GB", v)
	}
	if n := env.CPU.Online; n != nil {
		o.add("host_cpu_count", *n)
	}
	o.add("host_processor_name", known(env.CPU.Model))
	volume := float64(int64(r.w.Dataset.NumSamplesPerFile)*int64(r.w.Dataset.NumFilesTrain)) * r.recordLength() / gib
	o.add("potential_caching", r.caching(volume))
	o = append(o, r.host()...)
	for i := range k.epochs {
		o.add(strconv.Itoa(i+1), r.outputEpoch(&k.epochs[i], saves, i+1))
	}
	if len(k.epochs) == 0 && len(saves) > 0 {
		none := dlioObject{}
		o.add("1", dlioObject{{"start", r.clock(r.Record.Started)}, {"load", none}, {"proc", none}, {"throughput", none}, {"au", none},
			{"compute", none}, {"end", r.at(saves[len(saves)-1].end)}})
	}
	o.add("hostname", env.Host.Name)
	return o
}

func (r *dlioRun) outputEpoch(e *dlioEpoch, saves []dlioSave, epoch int) dlioObject {
	var load, proc, throughput, au, compute dlioObject
	block := func(name string, b *dlioBlock, figures func(*dlioBlock) (float64, float64, bool)) {
		load.add(name, b.load)
		proc.add(name, b.proc)
		compute.add(name, b.compute)
		if a, t, ok := figures(b); ok {
			au.add(name, a)
			throughput.add(name, t)
		}
	}
	for i := range e.blocks {
		block(blockName(i+1), &e.blocks[i], r.train)
	}
	if e.eval != nil {
		block("eval", e.eval, r.evaluation)
	}
	return dlioObject{{"load", load}, {"proc", proc}, {"throughput", throughput}, {"au", au}, {"compute", compute},
		{"end", r.at(epochEnd(e, saves, epoch))}}
}

func blockName(number int) string { return "block" + strconv.Itoa(number) }

// trainEnd is when training in an epoch ended, its checkpoints included; epochEnd is the same with the evaluation.
func trainEnd(e *dlioEpoch, saves []dlioSave, epoch int) int64 {
	end := e.end()
	for i := range saves {
		if saves[i].epoch == epoch {
			end = max(end, saves[i].end)
		}
	}
	return end
}

func epochEnd(e *dlioEpoch, saves []dlioSave, epoch int) int64 {
	end := trainEnd(e, saves, epoch)
	if e.eval != nil {
		end = max(end, e.eval.end)
	}
	return end
}

// span are start, end and duration of a block, the duration as DLIO writes it: a text with two decimals.
func (r *dlioRun) span(start, end int64) dlioObject {
	return dlioObject{{"start", r.at(start)}, {"end", r.at(end)}, {"duration", duration(end - start)}}
}

func duration(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', 2, 64) }

// stats is the file of one rank's times of epochs, blocks and checkpoints.
func (r *dlioRun) stats(k *dlioRank, saves []dlioSave) dlioObject {
	var all dlioObject
	for i := range k.epochs {
		e := &k.epochs[i]
		o := dlioObject{{"start", r.at(e.start())}}
		for b := range e.blocks {
			o.add(blockName(b+1), r.span(e.blocks[b].start, e.blocks[b].end))
			o = append(o, r.saved(saves, i+1, b+1)...)
		}
		o.add("end", r.at(epochEnd(e, saves, i+1)))
		o.add("duration", duration(trainEnd(e, saves, i+1)-e.start()))
		if e.eval != nil {
			o.add("eval", r.span(e.eval.start, e.eval.end))
		}
		all.add(strconv.Itoa(i+1), o)
	}
	if len(k.epochs) == 0 && len(saves) > 0 {
		o := dlioObject{{"start", r.clock(r.Record.Started)}}
		for i := range saves {
			o = append(o, r.saved(saves[i:i+1], saves[i].epoch, saves[i].block)...)
		}
		o.add("end", r.at(saves[len(saves)-1].end))
		all.add("1", o)
	}
	return all
}

// saved are the checkpoints after one block.
func (r *dlioRun) saved(saves []dlioSave, epoch, block int) (o dlioObject) {
	for i := range saves {
		s := &saves[i]
		if s.epoch != epoch || s.block != block {
			continue
		}
		one := dlioObject{{"start", r.at(s.start)}, {"end", r.at(s.end)}, {"duration", s.seconds}}
		if s.seconds > 0 {
			one.add("throughput", r.checkpointSize()/s.seconds)
		}
		o.add(s.name(), one)
	}
	return o
}
