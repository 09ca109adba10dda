package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/record"
)

// newReplay is a replay of a made-up record by one that is the same but for change.
func newReplay(change func(*record.Record)) *replay {
	digest := "blake3:" + strings.Repeat("ab", 32)
	load := 0.5
	total, free := record.Int(100), record.Int(50)
	made := func() *record.Record {
		return &record.Record{
			Tool: record.Tool{Name: "benchpin", Version: "v1", Commit: "c", Go: "go1", Platform: "linux/amd64", Binary: digest,
				Modules: []record.Module{{Path: "a", Version: "v1"}, {Path: "b", Version: "v1"}}},
			Transcript: record.Transcript{Class: record.Recomputable, Root: digest, Ranks: []string{digest}, Entries: 4, Expected: digest},
			Checkpoints: record.Checkpoints{Saves: []record.Checkpoint{{Name: "global_epoch1_step2", Epoch: 1, Step: 2, Bytes: 10, Digest: digest, Seconds: []float64{1}}},
				Loads: []record.CheckpointLoad{{Name: "global_epoch1_step2", Epoch: 1, Step: 2, Bytes: 10, Verified: true, Seconds: []float64{1}}}},
			Environment: record.Environment{Class: record.HostOnly, Host: record.Host{Name: "h", Kernel: "6.1"}, CPU: record.CPU{Model: "m"},
				Folders: []record.Folder{{Role: record.RoleData, MountPoint: "/", FileSystem: "ext4", Total: &total, Free: &free}}, Load: record.Load{One: &load}},
		}
	}
	r := &replay{out: &ReplayResult{Record: made()}, v: &attest.Verification{Record: made()}}
	change(r.out.Record)
	return r
}

// Every item must find what differs and say what it is, and nothing else may differ.
func TestReplayItems(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*record.Record)
		item    string // that differs; "" for none
		detail  string
		failure bool // it must be the same to the bit
	}{
		"nothing":            {func(*record.Record) {}, "", "", false},
		"time of checkpoint": {func(r *record.Record) { r.Checkpoints.Saves[0].Seconds = []float64{9} }, "", "", false},
		"transcript":         {func(r *record.Record) { r.Transcript.Ranks = []string{"blake3:00"} }, itemSchedule, "ranks", true},
		"evaluation":         {func(r *record.Record) { r.Transcript.Evaluation = &record.EvaluationTranscript{} }, itemSchedule, "evaluation", true},
		"checkpoint":         {func(r *record.Record) { r.Checkpoints.Saves[0].Digest = "blake3:00" }, itemCheckpoints, "global_epoch1_step2: digest", true},
		"no checkpoint":      {func(r *record.Record) { r.Checkpoints.Saves = nil }, itemCheckpoints, "expected 1 written", true},
		"read back":          {func(r *record.Record) { r.Checkpoints.Loads[0].Verified = false }, itemCheckpoints, "read back: verified", true},
		"version":            {func(r *record.Record) { r.Tool.Version = "v2" }, itemTool, "version v2, was v1", false},
		"commit":             {func(r *record.Record) { r.Tool.Commit = "" }, itemTool, "commit unknown, was c", false},
		"changed source":     {func(r *record.Record) { r.Tool.Modified = true }, itemTool, "changed source true", false},
		"modules":            {func(r *record.Record) { r.Tool.Modules[0].Version = "v2" }, itemTool, "1 module", false},
		"kernel":             {func(r *record.Record) { r.Environment.Host.Kernel = "6.2" }, itemEnvironment, `1 field: host.kernel "6.2", was "6.1"`, false},
		"file system":        {func(r *record.Record) { r.Environment.Folders[0].FileSystem = "xfs" }, itemEnvironment, `folders.data.file_system "xfs", was "ext4"`, false},
		"folder gone":        {func(r *record.Record) { r.Environment.Folders = nil }, itemEnvironment, "nothing, was", false},
		"load":               {func(r *record.Record) { *r.Environment.Load.One = 17 }, "", "", false},
		"free space":         {func(r *record.Record) { *r.Environment.Folders[0].Free = 1 }, "", "", false},
		"redacted":           {func(r *record.Record) { r.Environment.Redacted, r.Environment.Host.Name = true, record.RedactedText }, "", "", false},
		"control character":  {func(r *record.Record) { r.Tool.Version = "v\x1b[2J" }, itemTool, "version v?", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplay(c.change)
			was, is := r.v.Record, r.out.Record
			r.scheduleItem(scheduleFault(was, is), "read again")
			r.checkpointsItem(was, is)
			r.toolItem(was.Tool, is.Tool)
			r.environmentItem(was.Environment, is.Environment)
			for _, i := range r.out.Items {
				switch {
				case i.Name != c.item && i.Outcome != attest.ReplaySame:
					t.Errorf("%s: expected the same, found %s: %s", i.Name, i.Outcome, i.Detail)
				case i.Name == c.item && (i.Outcome != attest.ReplayDiffers || !strings.Contains(i.Detail, c.detail)):
					t.Errorf("%s: expected a difference with %q, found %s: %s", i.Name, c.detail, i.Outcome, i.Detail)
				}
			}
			if (len(r.differing) == 1) != c.failure {
				t.Errorf("found %d items that must not differ: %q", len(r.differing), r.differing)
			}
		})
	}
}

// A level is reached only with all before it.
func TestReplayLevels(t *testing.T) {
	all := []attest.ReplayItem{
		{Name: itemAttestation, Outcome: attest.ReplayValid}, {Name: itemData, Outcome: attest.ReplaySame}, {Name: itemSchedule, Outcome: attest.ReplaySame},
		{Name: itemCheckpoints, Outcome: attest.ReplayAbsent}, {Name: itemTool, Outcome: attest.ReplayDiffers}, {Name: itemEnvironment, Outcome: attest.ReplayDiffers},
		{Name: itemPerformance, Outcome: attest.ReplayWithin},
	}
	for _, c := range []struct {
		item    string
		outcome attest.ReplayOutcome
		want    attest.ReplayLevel
	}{
		{"", "", attest.LevelResult},
		{itemAttestation, attest.ReplayNotValid, attest.LevelNone},
		{itemData, attest.ReplayDiffers, attest.LevelAttested},
		{itemData, attest.ReplayNotAsked, attest.LevelAttested},
		{itemData, attest.ReplayAbsent, attest.LevelResult},
		{itemSchedule, attest.ReplayDiffers, attest.LevelData},
		{itemCheckpoints, attest.ReplayDiffers, attest.LevelSchedule},
		{itemPerformance, attest.ReplayOutside, attest.LevelSchedule},
		{itemPerformance, attest.ReplayUndecided, attest.LevelSchedule},
	} {
		r := &replay{out: &ReplayResult{Level: attest.LevelNone, Items: slices.Clone(all)}}
		for i := range r.out.Items {
			if r.out.Items[i].Name == c.item {
				r.out.Items[i].Outcome = c.outcome
			}
		}
		r.settle()
		if r.out.Level != c.want {
			t.Errorf("%s %s: expected %s, found %s", c.item, c.outcome, c.want, r.out.Level)
		}
	}
}
