package bench

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// share is what a process says of its part of a run, beside its step times. Checkpoints follow it, one rankSaves or rankLoads for each.
type processShare struct {
	First, Count int
	// Chains and Evaluation are the transcripts of the process's ranks.
	Chains, Evaluation []sentChain
	Looks, EvalLooks   []epochLook
	Rechecked          int64
	Inline             *sentInline
}

// sentChain is the transcript of one rank.
type sentChain struct {
	Sum     string
	Entries int64
}

// sentSave is what one rank wrote of a checkpoint, or read: times are nanoseconds, Start an offset from the moment that all share.
type sentSave struct {
	Rank            int
	Begun           bool
	Start, Duration int64
	Files           []sentFile
}

// sentFile is a file of a checkpoint.
type sentFile struct {
	Path   string
	Size   int64
	Digest string
	// Write and Starved are those of checkpoint.FileSave; Starved is Waited of a file that was read.
	Write, Starved int64
}

// gather brings what all processes ran to process 0, which then has the run as if it had carried it out alone. Memory is bounded by the
// number of ranks, and of files in one checkpoint.
func (r *run) gather(ctx context.Context) error {
	if r.world.Size() == 1 {
		return nil
	}
	if err := r.gatherShares(ctx); err != nil {
		return err
	}
	var err error
	if r.steps, err = r.gatherRows(ctx, r.steps, r.o.AllSteps, &r.looks, r.p.Epochs, int64(r.p.StepsPerEpoch)); err != nil {
		return err
	}
	if v := r.evaluating; v != nil {
		v.steps, err = r.gatherRows(ctx, v.steps, r.o.AllEvalSteps, &v.looks, len(r.p.eval.epochs), r.p.eval.steps)
	}
	return err
}

// gatherShares gathers everything but step times.
func (r *run) gatherShares(ctx context.Context) error {
	src, in := io.Pipe()
	defer src.Close()
	go func() { in.CloseWithError(r.sendShare(in)) }()
	return r.world.Gather(ctx, src, func(streams []io.Reader) error {
		for process, s := range streams[1:] {
			if err := r.takeShare(json.NewDecoder(s), process+1); err != nil {
				return fmt.Errorf("what process %d ran: %w", process+1, err)
			}
		}
		return nil
	})
}

// sendShare writes the share of this process.
func (r *run) sendShare(to io.Writer) error {
	e := json.NewEncoder(to)
	s := processShare{First: r.first, Count: r.count, Looks: r.looks.own, Inline: r.inline.sent()}
	if r.src != nil {
		s.Rechecked = r.src.Rechecked()
	}
	for rank := r.first; rank < r.first+r.count && r.chains != nil; rank++ {
		s.Chains = append(s.Chains, sent(r.chains[rank]))
	}
	if v := r.evaluating; v != nil {
		s.EvalLooks = v.looks.own
		s.Rechecked += v.src.Rechecked()
		for rank := r.first; rank < r.first+r.count; rank++ {
			s.Evaluation = append(s.Evaluation, sent(v.chains[rank]))
		}
	}
	if err := e.Encode(s); err != nil {
		return err
	}
	for i := range r.saves {
		for rank := r.first; rank < r.first+r.count; rank++ {
			if err := e.Encode(r.sentSave(rank, &r.saves[i].ranks[rank])); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeShare takes the share of another process.
func (r *run) takeShare(d *json.Decoder, process int) error {
	var s processShare
	if err := d.Decode(&s); err != nil {
		return err
	}
	first, count, err := r.p.Part(process, r.world.Size())
	if err != nil {
		return err
	}
	if s.First != first || s.Count != count || r.chains != nil && len(s.Chains) != count || r.evaluating != nil && len(s.Evaluation) != count {
		return fmt.Errorf("expected accelerators %d to %d, found %d from %d on, with %d transcripts and %d of evaluation", first, first+count-1, s.Count, s.First,
			len(s.Chains), len(s.Evaluation))
	}
	for i := range s.Chains {
		if r.chains[first+i], err = s.Chains[i].chain(); err != nil {
			return err
		}
	}
	for i := range s.Evaluation {
		if r.evaluating.chains[first+i], err = s.Evaluation[i].chain(); err != nil {
			return err
		}
	}
	r.rechecked += s.Rechecked
	r.looks.others = append(r.looks.others, s.Looks)
	if v := r.evaluating; v != nil {
		v.looks.others = append(v.looks.others, s.EvalLooks)
	}
	if err := r.inline.take(s.Inline); err != nil {
		return err
	}
	for i := range r.saves {
		for rank := first; rank < first+count; rank++ {
			var save sentSave
			if err := d.Decode(&save); err != nil {
				return err
			}
			if save.Rank != rank {
				return fmt.Errorf("checkpoint %d: expected rank %d, found %d", i+1, rank, save.Rank)
			}
			if r.saves[i].ranks[rank], err = r.takenSave(save); err != nil {
				return err
			}
			r.saves[i].done.Add(1)
		}
	}
	return nil
}

func sent(c *Chain) sentChain {
	sum := c.Sum()
	return sentChain{Sum: hex.EncodeToString(sum[:]), Entries: c.entries}
}

// chain is the transcript that another process sent.
func (s sentChain) chain() (*Chain, error) {
	c := &Chain{entries: s.Entries}
	if n, err := hex.Decode(c.block[:32], []byte(s.Sum)); err != nil || n != 32 || len(s.Sum) != 64 {
		return nil, fmt.Errorf("transcript: expected a digest of 32 bytes, found %q", s.Sum)
	}
	return c, nil
}

// sentSave is what a rank wrote of a checkpoint, to be sent.
func (r *run) sentSave(rank int, s *checkpoint.RankSave) sentSave {
	to := sentSave{Rank: rank, Begun: !s.Started.IsZero(), Duration: int64(s.Duration)}
	if to.Begun {
		to.Start = int64(s.Started.Sub(r.base))
	}
	for _, f := range s.Files {
		to.Files = append(to.Files, sentFile{Path: f.Path, Size: f.Size, Digest: hex.EncodeToString(f.Digest[:]), Write: int64(f.Write), Starved: int64(f.Starved)})
	}
	return to
}

// takenSave is what a rank of another process wrote of a checkpoint.
func (r *run) takenSave(s sentSave) (checkpoint.RankSave, error) {
	to := checkpoint.RankSave{Rank: s.Rank, Duration: time.Duration(s.Duration)}
	if s.Begun {
		to.Started = r.base.Add(time.Duration(s.Start))
	}
	for _, f := range s.Files {
		save := checkpoint.FileSave{FileSum: checkpoint.FileSum{Path: f.Path, Size: f.Size}, Write: time.Duration(f.Write), Starved: time.Duration(f.Starved)}
		if n, err := hex.Decode(save.Digest[:], []byte(f.Digest)); err != nil || n != 32 || len(f.Digest) != 64 {
			return to, fmt.Errorf("checkpoint: %s: expected a digest of 32 bytes, found %q", f.Path, f.Digest)
		}
		to.Files = append(to.Files, save)
	}
	return to, nil
}

// gatherRows brings the step times of all processes to process 0, which writes them to all, with what was counted in each epoch. It
// returns that file there, and own in the others.
func (r *run) gatherRows(ctx context.Context, own *countingFile, all StepsFile, looks *epochLooks, epochs int, steps int64) (*countingFile, error) {
	rows, result := stats.Rows(own, own.n), own
	defer rows.Close()
	err := r.world.Gather(ctx, rows, func(streams []io.Reader) error {
		parts := make([]stats.Ranks, len(streams))
		for process := range parts {
			first, count, err := r.p.Part(process, len(parts))
			if err != nil {
				return err
			}
			parts[process] = stats.Ranks{Rows: streams[process], First: first, Count: count}
		}
		to := &countingFile{StepsFile: all}
		w := stats.NewWriter(to)
		if err := stats.Merge(ctx, w, parts, epochs, steps); err != nil {
			return fmt.Errorf("step times of all processes: %w", err)
		}
		result = to
		if err := looks.set(w, r.p.Direct); err != nil {
			return err
		}
		return w.Close()
	})
	return result, err
}

// epochLooks are what a process counted in each epoch, and in process 0 what each of the others did.
type epochLooks struct {
	own    []epochLook
	others [][]epochLook
}

// set notes what all processes counted in each epoch.
func (l *epochLooks) set(w *stats.Writer, direct bool) error {
	for i, own := range l.own {
		all := []epochLook{own}
		for _, o := range l.others {
			if len(o) != len(l.own) || o[i].Epoch != own.Epoch {
				return fmt.Errorf("counters: expected those of %d epochs from every process, found %d", len(l.own), len(o))
			}
			all = append(all, o[i])
		}
		d, err := merged(all, direct)
		if err != nil {
			return err
		}
		if err := w.SetDevice(d); err != nil {
			return err
		}
	}
	return nil
}

// keepOwn gives the result of a run that failed what process 0 has: its own step times, and what was counted with them.
func (r *run) keepOwn() error {
	if r.world.Size() == 1 {
		return nil
	}
	keep := func(own *countingFile, all StepsFile, looks *epochLooks) (*countingFile, error) {
		to := &countingFile{StepsFile: all}
		w := stats.NewWriter(to)
		if err := stats.Copy(w, own, own.n); err != nil {
			return own, err
		}
		looks.others = nil
		if err := looks.set(w, r.p.Direct); err != nil {
			return own, err
		}
		return to, w.Close()
	}
	var err error
	if r.steps, err = keep(r.steps, r.o.AllSteps, &r.looks); err != nil {
		return err
	}
	if v := r.evaluating; v != nil {
		v.steps, err = keep(v.steps, r.o.AllEvalSteps, &v.looks)
	}
	return err
}
