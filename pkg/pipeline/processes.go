package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// several is true where more than one process does the work.
func several(w *cluster.World) bool { return w != nil && w.Size() > 1 }

// leads is true in the one process that writes what there is one of.
func leads(w *cluster.World) bool { return w == nil || w.Rank() == 0 }

// agreed makes one error of those of all processes, which every one gets, and gives it the class that it has where it arose.
func agreed(ctx context.Context, w *cluster.World, err error) error {
	if !several(w) {
		return err
	}
	class := []int64{0}
	for i, c := range classes() {
		if errors.Is(err, c) {
			class[0] = int64(i) + 1
		}
	}
	if mismatch := (*manifest.MismatchError)(nil); errors.As(err, &mismatch) {
		class[0] = int64(len(classes()))
	}
	if err := w.Allreduce(ctx, class, cluster.Max); err != nil {
		return err
	}
	all := w.Agree(ctx, err)
	if all == nil || w.Err() != nil {
		return all
	}
	c := &common{text: all.Error(), errs: []error{all}}
	if class[0] > 0 {
		c.errs = append(c.errs, classes()[class[0]-1])
	}
	return c
}

// told is agreed for an error that the first process alone can have: there it stays as it is.
func told(ctx context.Context, w *cluster.World, err error) error {
	all := agreed(ctx, w, err)
	if err == nil || !several(w) || !errors.Is(all, cluster.ErrAgreed) {
		return all
	}
	return &common{text: err.Error(), errs: []error{err, cluster.ErrAgreed}}
}

// classes are those of errors that the other processes are told, the last where there are several.
func classes() []error { return []error{ErrThreshold, ErrVerification} }

// common is an error that all processes have.
type common struct {
	text string
	errs []error
}

func (c *common) Error() string   { return c.text }
func (c *common) Unwrap() []error { return c.errs }

// failAlone tells the other processes of an error that this one has and they do not.
func failAlone(w *cluster.World, err error) {
	if err != nil && !errors.Is(err, cluster.ErrAgreed) && !errors.Is(err, cluster.ErrDisagree) {
		w.Abort(err)
	}
}

// terms are what process 0 settles for all.
type terms struct {
	ID, Out, Checkpoints, SampleSeed string
}

// together settles, where several processes run, what there can be only one of, and makes sure that all were started alike. It comes before
// anything else.
func (o *RunOptions) together(ctx context.Context) error {
	if !several(o.World) {
		return nil
	}
	w := o.Workload.Workload
	if leads(o.World) {
		if o.ID == "" {
			o.ID = NewID(time.Now())
		}
		if o.SampleSeed == "" && w.Benchpin.Verify == workload.VerifySample {
			o.SampleSeed = newSeed()
		}
	} else {
		o.Notify = Notify{}
	}
	mine, err := json.Marshal(terms{o.ID, o.Out, o.Checkpoints, o.SampleSeed})
	if err != nil {
		return err
	}
	said, err := o.World.BroadcastBytes(ctx, mine)
	if err != nil {
		return err
	}
	var t terms
	if err := json.Unmarshal(said, &t); err != nil {
		return fmt.Errorf("terms of process 0: %w", err)
	}
	o.ID, o.Out, o.SampleSeed = t.ID, t.Out, t.SampleSeed
	fields := map[string]string{
		"workload": o.Workload.Digest.String(), "version of benchpin": o.Tool.Version, "commit of benchpin": o.Tool.Commit,
		"binary of benchpin": o.Tool.Binary, "platform": o.Tool.Platform, "checkpoint folder": o.Checkpoints, "--not-before-value": valueOf(o.NotBefore), "--redact": strconv.FormatBool(o.Redact),
		"--observer-effect": strconv.FormatBool(o.ObserverEffect), "--overwrite-checkpoints": strconv.FormatBool(o.OverwriteCheckpoints),
	}
	err = o.World.Handshake(ctx, fields)
	if errors.Is(err, cluster.ErrDisagree) {
		// Two digests help nobody: all say what stands under each key, and those that differ are named.
		delete(fields, "workload")
		flatten(fields, "workload", o.Workload.Canonical)
		if named := o.World.Handshake(ctx, fields); named != nil {
			return named
		}
	}
	return err
}

// flatten puts the values of a JSON document under their paths.
func flatten(into map[string]string, path string, doc []byte) {
	var object map[string]json.RawMessage
	if json.Unmarshal(doc, &object) != nil {
		into[path] = string(doc)
		return
	}
	for name, value := range object {
		between := "."
		if path == "workload" {
			between = " "
		}
		flatten(into, path+between+name, value)
	}
}

// sameTool makes sure that all processes are of one program.
func sameTool(ctx context.Context, w *cluster.World, t record.Tool) error {
	return w.Handshake(ctx, map[string]string{"version of benchpin": t.Version, "commit of benchpin": t.Commit, "binary of benchpin": t.Binary,
		"platform": t.Platform})
}

// sameData makes sure that all processes have opened the same manifest.
func (r *run) sameData(ctx context.Context) error {
	if !several(r.World) {
		return nil
	}
	h := r.manifest.Header()
	return r.World.Handshake(ctx, map[string]string{"data root": h.Root.String(), "manifest": r.manifest.Digest().String()})
}

// sharedFolder is a folder that all processes write to, and what it is for.
type sharedFolder struct{ path, what string }

// seenWithin is how long a file that another host wrote may take to be seen here: network file systems remember what was not there.
const seenWithin = 10 * time.Second

// sameFolders makes sure that every process sees, in each folder that they share, what every other one writes there, and that the data
// set is there.
func (r *run) sameFolders(ctx context.Context) error {
	if !several(r.World) {
		return nil
	}
	folders := []sharedFolder{{r.Out, "results"}}
	if r.plan.Checkpoints > 0 || r.plan.CheckpointReads > 0 {
		folders = append(folders, sharedFolder{r.Checkpoints, "checkpoint"})
	}
	for _, f := range folders {
		if IsBucket(f.path) {
			continue
		}
		if err := r.sameFolder(ctx, f); err != nil {
			return err
		}
	}
	return agreed(ctx, r.World, r.dataIsThere(ctx))
}

// sameFolder has every process write a file into a folder and look for those of all others.
func (r *run) sameFolder(ctx context.Context, f sharedFolder) error {
	var random [8]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	mine := ".benchpin-seen-" + strconv.Itoa(r.World.Rank()) + "-" + hex.EncodeToString(random[:])
	path := filepath.Join(f.path, mine)
	err := os.MkdirAll(f.path, 0o777)
	if err == nil {
		defer os.Remove(path)
		err = os.WriteFile(path, []byte(r.World.Node()), 0o666)
	}
	if err != nil {
		err = fmt.Errorf("the %s folder cannot be written to: %w", f.what, err)
	}
	if err := agreed(ctx, r.World, err); err != nil {
		return err
	}
	all, err := r.World.GatherBytes(ctx, []byte(mine))
	if err != nil {
		return err
	}
	names, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if names, err = r.World.BroadcastBytes(ctx, names); err != nil {
		return err
	}
	if err := json.Unmarshal(names, &all); err != nil {
		return fmt.Errorf("files of all processes: %w", err)
	}
	// All have looked before anybody removes its file.
	return agreed(ctx, r.World, r.see(ctx, f, all))
}

// see looks for the files of all processes in a folder.
func (r *run) see(ctx context.Context, f sharedFolder, names [][]byte) error {
	patience := time.Now().Add(seenWithin)
	for process, name := range names {
		for {
			b, err := os.ReadFile(filepath.Join(f.path, string(name)))
			if err == nil && string(b) == r.World.NodeOf(process) {
				break
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the %s folder %s: %w", f.what, f.path, err)
			}
			if time.Now().After(patience) {
				return fmt.Errorf("the %s folder %s is not the one that process %d on %s writes to: what that wrote is not seen here; give all processes the same "+
					"folder, on a file system that all hosts have mounted", f.what, f.path, process, r.World.NodeOf(process))
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// dataIsThere looks for one file of the data set, so that a data folder that is not there is named before anything is hashed.
func (r *run) dataIsThere(ctx context.Context) error {
	if r.data == nil {
		return nil
	}
	stop := errors.New("one is enough")
	err := r.manifest.Entries(ctx, func(e manifest.Entry) error {
		info, err := r.data.Stat(e.Path)
		if err != nil {
			return fmt.Errorf("the data set %s cannot be seen: %w", r.Data, err)
		}
		if info.Size != e.Size {
			return asVerification(&manifest.MismatchError{Kind: manifest.Changed, Path: e.Path,
				Expected: &manifest.Side{Size: e.Size, Digest: manifest.FormatDigest(e.Digest)}, Found: &manifest.Side{Size: info.Size}})
		}
		return stop
	})
	if errors.Is(err, stop) {
		return nil
	}
	return err
}

// share is this process's part of the files of a data set, where several hash and look.
func (r *run) share() manifest.Share {
	if !several(r.World) {
		return manifest.Share{}
	}
	return manifest.Share{Index: r.World.Rank(), Of: r.World.Size()}
}

// mine is true for files that this process hashes, or looks at, by their number.
func (r *run) mine(n int) bool {
	s := r.share()
	return s.Of < 2 || n%s.Of == s.Index
}

// firstOnHost is true in the one process of each host that does what is done once there.
func (r *run) firstOnHost() bool {
	if !several(r.World) {
		return true
	}
	index, _ := r.World.OnNode()
	return index == 0
}

// hostName is the name of this process's host in the record: its own, or in a redacted one its number among all.
func hostName(w *cluster.World, node string, redact bool) string {
	if !redact {
		return node
	}
	hosts := map[string]int{}
	for rank := range w.Size() {
		if n := w.NodeOf(rank); hosts[n] == 0 {
			hosts[n] = len(hosts) + 1
		}
	}
	return "host " + strconv.Itoa(hosts[node])
}

// clusterOf is what the record says of processes and hosts before the run; nil for one process, and in others than the first.
func (r *run) clusterOf(ctx context.Context, env record.Environment) (*record.Cluster, error) {
	if !several(r.World) {
		return nil, nil
	}
	var mine []byte
	if r.firstOnHost() && !leads(r.World) {
		var err error
		if mine, err = json.Marshal(env); err != nil {
			return nil, err
		}
	}
	all, err := r.World.GatherBytes(ctx, mine)
	if err != nil {
		return nil, err
	}
	offsets, err := r.World.ClockOffsets(ctx)
	if err != nil || !leads(r.World) {
		return nil, err
	}
	c := &record.Cluster{Class: record.HostOnly, Hosts: map[string]record.ClusterHost{}}
	for rank := range r.World.Size() {
		name := hostName(r.World, r.World.NodeOf(rank), r.Redact)
		first, count, err := r.plan.Part(rank, r.World.Size())
		if err != nil {
			return nil, err
		}
		c.Processes = append(c.Processes, record.Process{Host: name, First: first, Accelerators: count})
		h, known := c.Hosts[name]
		if !known {
			h.ClockStart = clockOffset(offsets[rank])
			if rank > 0 {
				if name == c.Processes[0].Host {
					return nil, fmt.Errorf("processes 0 and %d are on one host and not", rank)
				}
				h.Environment = new(record.Environment)
				if err := json.Unmarshal(all[rank], h.Environment); err != nil {
					return nil, fmt.Errorf("environment of process %d: %w", rank, err)
				}
			}
		}
		h.Processes++
		c.Hosts[name] = h
	}
	return c, nil
}

func clockOffset(o cluster.ClockOffset) record.ClockOffset {
	return record.ClockOffset{Seconds: o.Offset.Seconds(), Uncertainty: o.Uncertainty.Seconds()}
}

// clocksAgain compares the clocks when the run has ended.
func (r *run) clocksAgain(ctx context.Context, c *record.Cluster) error {
	if !several(r.World) {
		return nil
	}
	offsets, err := r.World.ClockOffsets(ctx)
	if err != nil || c == nil {
		return err
	}
	for rank, o := range offsets {
		h := c.Hosts[c.Processes[rank].Host]
		if h.ClockEnd == nil {
			end := clockOffset(o)
			h.ClockEnd = &end
			c.Hosts[c.Processes[rank].Host] = h
		}
	}
	return nil
}

// memoryHere is what the processes of this host need of the plan's memory.
func (r *run) memoryHere() (record.Int, error) {
	if !several(r.World) {
		return r.plan.MemoryBytes, nil
	}
	here := 0
	for rank := range r.World.Size() {
		if r.World.NodeOf(rank) != r.World.Node() {
			continue
		}
		_, count, err := r.plan.Part(rank, r.World.Size())
		if err != nil {
			return 0, err
		}
		here += count
	}
	return record.Int(float64(r.plan.MemoryBytes) / float64(r.plan.Accelerators) * float64(here)), nil
}

// dealtAgain compares the accelerators of each process with what follows from the plan.
func dealtAgain(k *record.Cluster, plan *bench.Plan) *fault.Fault {
	if k == nil {
		return nil
	}
	for i, p := range k.Processes {
		first, count, err := plan.Part(i, len(k.Processes))
		if err != nil {
			return differs("cluster.processes", err.Error())
		}
		if p.First != first || p.Accelerators != count {
			return differs(fmt.Sprintf("cluster.processes[%d]", i), fmt.Sprintf("expected %d accelerators from %d on, found %d from %d on", count, first,
				p.Accelerators, p.First))
		}
	}
	return nil
}

// dealt refuses a plan whose accelerators cannot be dealt out to the processes that there are.
func (r *run) dealt() error {
	if several(r.World) {
		_, _, err := r.plan.Part(r.World.Rank(), r.World.Size())
		return err
	}
	all, each := r.plan.Accelerators, r.w.Benchpin.AcceleratorsPerProcess
	if r.ReplayOf != nil || each == 0 || each >= all {
		return nil // what several carried can be repeated by one
	}
	need := (all + each - 1) / each
	return fmt.Errorf("%w: %d accelerators with benchpin.accelerators_per_process %d need %d processes, found 1; start so many, for example with "+
		"mpirun -np %d, or change one of the two", bench.ErrImpossible, all, each, need, need)
}

// followed ends the run in a process that is not the first: it waits for what the first makes of the result.
func (r *run) followed(ctx context.Context, err error) error {
	if err != nil {
		return asVerification(err)
	}
	return agreed(ctx, r.World, nil)
}

// summed are the sums over all processes of numbers that each has for itself.
func summed(ctx context.Context, w *cluster.World, numbers ...*int64) error {
	if !several(w) {
		return nil
	}
	v := make([]int64, len(numbers))
	for i, n := range numbers {
		v[i] = *n
	}
	if err := w.Allreduce(ctx, v, cluster.Sum); err != nil {
		return err
	}
	for i, n := range numbers {
		*n = v[i]
	}
	return nil
}

// ofAll is what all processes have done of something that this one has done n of, where they work alike.
func (r *run) ofAll(n, all int64) int64 {
	if !several(r.World) {
		return n
	}
	return min(n*int64(r.World.Size()), all)
}

// first does what is done once on the way, in the first process, while the others wait for it.
func (o *Options) first(ctx context.Context, f func() error) error {
	var err error
	if leads(o.World) {
		err = f()
	}
	return told(ctx, o.World, err)
}

// sees waits, in other processes than the first, until a file can be seen that it wrote.
func (o *Options) sees(ctx context.Context, path string) error {
	if !several(o.World) {
		return nil
	}
	var err error
	for patience := time.Now().Add(seenWithin); ; {
		if _, err = os.Lstat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(patience) {
			err = fmt.Errorf("%w: process 0 wrote it; give all processes the same folder, on a file system that all hosts have mounted", err)
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return agreed(ctx, o.World, err)
}
