package record

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestCheckAcceptsTheSample(t *testing.T) {
	r := sample()
	if p := r.Check(); p != nil {
		t.Errorf("as built: %v", p)
	}
	back, err := Parse(mustCanonical(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if p := back.Check(); p != nil {
		t.Errorf("as read: %v", p)
	}
	interrupted := sample()
	interrupted.Status, interrupted.Reason = StatusIncomplete, "interrupted in epoch 2"
	interrupted.Transcript.Root, interrupted.Transcript.Ranks = hexDigest("e"), nil
	interrupted.Checkpoints.Saves = nil
	interrupted.Metrics.Epochs = interrupted.Metrics.Epochs[:1]
	interrupted.Metrics.Met = nil
	if p := interrupted.Check(); p != nil {
		t.Errorf("an incomplete record may differ from its plan: %v", p)
	}
}

func TestNoMetrics(t *testing.T) {
	r := sample()
	r.Status, r.Reason, r.Transcript, r.Checkpoints.Saves = StatusIncomplete, "interrupted", Transcript{Class: Recomputable}, nil
	r.Metrics = NoMetrics(r.Plan.AUThreshold, "interrupted before the first step")
	if p := r.Check(); p != nil {
		t.Error(p)
	}
	if err := ValidateSchema(mustCanonical(t, r)); err != nil {
		t.Error(err)
	}
}

// TestCheckFinds changes one thing of a good record, and exactly the field named must be found.
func TestCheckFinds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Record)
		field  string
	}{
		"schema":               {func(r *Record) { r.Schema = "x" }, "schema"},
		"no id":                {func(r *Record) { r.ID = "" }, "id"},
		"id without a time":    {func(r *Record) { r.ID = "run-3f9c2a" }, "id"},
		"id without the rest":  {func(r *Record) { r.ID = "20261130T141500Z-" }, "id"},
		"id of a later run":    {func(r *Record) { r.ID = "20261130T141502Z-3f9c2a" }, "id"},
		"began before its id":  {func(r *Record) { r.Started = "2026-11-29T14:15:00Z" }, "id"},
		"status":               {func(r *Record) { r.Status = "done"; r.Reason = "x" }, "status"},
		"complete with reason": {func(r *Record) { r.Reason = "x" }, "reason"},
		"incomplete without":   {func(r *Record) { r.Status = StatusIncomplete }, "reason"},
		"local time":           {func(r *Record) { r.Started = "2026-11-30T14:15:00+01:00" }, "started"},
		"backwards":            {func(r *Record) { r.Finished = "2026-11-30T14:14:59Z" }, "finished"},
		"binary":               {func(r *Record) { r.Tool.Binary = "" }, "tool.binary"},
		"modules":              {func(r *Record) { r.Tool.Modules = append(r.Tool.Modules, Module{Path: "a"}) }, "tool.modules"},
		"workload digest":      {func(r *Record) { r.Workload.Canonical = json.RawMessage(`{}`) }, "workload.digest"},
		"upper case":           {func(r *Record) { r.Dataset.Root = "blake3:" + strings.Repeat("A", 64) }, "dataset.root"},
		"short digest":         {func(r *Record) { r.Dataset.Manifest = "blake3:00" }, "dataset.manifest"},
		"sha256":               {func(r *Record) { r.Workload.Source = "sha256:" + strings.Repeat("0", 64) }, "workload.source"},
		"seed of real data":    {func(r *Record) { r.Dataset.Generated = false }, "dataset.seed"},
		"verification mode":    {func(r *Record) { r.Dataset.Verification.Mode = "maybe" }, "dataset.verification.mode"},
		"none, but files":      {func(r *Record) { r.Dataset.Verification.Mode = "none" }, "dataset.verification.files"},
		"more than there is":   {func(r *Record) { r.Dataset.Verification.Files = 29 }, "dataset.verification.files"},
		"negative time":        {func(r *Record) { r.Dataset.Verification.Seconds = -1 }, "dataset.verification.seconds"},
		"negative count":       {func(r *Record) { r.Plan.Accelerators = -2; r.Status = StatusIncomplete; r.Reason = "x" }, "plan.accelerators"},
		"negative rate":        {func(r *Record) { r.Plan.RequiredFilesPerSecond = ptr(-1.0) }, "plan.required_files_per_second"},
		"threshold above 100": {func(r *Record) {
			r.Plan.AUThreshold = 101
			r.Metrics.Threshold = Figure{Unit: "%", Class: "C", Absent: "x"}
			r.Metrics.Met = nil
		}, "plan.au_threshold"},
		"other transcript":        {func(r *Record) { r.Transcript.Root = hexDigest("a") }, "transcript.root"},
		"missing rank":            {func(r *Record) { r.Transcript.Ranks = r.Transcript.Ranks[:1] }, "transcript.ranks"},
		"rank digest":             {func(r *Record) { r.Transcript.Ranks[1] = "x" }, "transcript.ranks[1]"},
		"nothing read":            {func(r *Record) { r.Transcript.Entries = 0 }, "transcript.entries"},
		"missing checkpoint":      {func(r *Record) { r.Checkpoints.Saves = nil }, "checkpoints.saves"},
		"negative write":          {func(r *Record) { r.Checkpoints.Saves[0].Seconds[1] = -0.5 }, "checkpoints.saves[0].seconds[1]"},
		"environment class":       {func(r *Record) { r.Environment.Class = Recomputable }, "environment.class"},
		"unknown without reason":  {func(r *Record) { r.Environment.HugePages = UnknownText }, "environment.transparent_hugepages"},
		"absent without reason":   {func(r *Record) { r.Environment.Load.Five = nil }, "environment.load.five"},
		"folder without reason":   {func(r *Record) { r.Environment.Folders[0].Device.QueueDepth = nil }, "environment.folders.data.device.queue_depth"},
		"redacted, or not":        {func(r *Record) { r.Environment.Host.Name = RedactedText }, "environment.host.name"},
		"reason twice":            {func(r *Record) { r.Environment.Unknown[1] = r.Environment.Unknown[0] }, "environment.folders.data.device.serial"},
		"folders out of order":    {func(r *Record) { f := r.Environment.Folders[0]; r.Environment.Folders = []Folder{f, f} }, "environment.folders[1].role"},
		"AU above 100":            {func(r *Record) { r.Metrics.AU.Value = ptr(100.5) }, "metrics.au.value"},
		"AU as a fraction":        {func(r *Record) { r.Metrics.AU.Unit = "1" }, "metrics.au.unit"},
		"AU of an epoch":          {func(r *Record) { r.Metrics.Epochs[1].AU.Value = ptr(101.0) }, "metrics.epochs[1].au.value"},
		"not met":                 {func(r *Record) { r.Metrics.Met = ptr(false) }, "metrics.au_met"},
		"met without AU":          {func(r *Record) { r.Metrics.AU = Figure{Unit: "%", Class: "H", Absent: "no compute time"} }, "metrics.au_met"},
		"other threshold":         {func(r *Record) { r.Metrics.Threshold.Value = ptr(95.0) }, "metrics.au_threshold"},
		"figure without a reason": {func(r *Record) { r.Metrics.SamplesPerSecond.Value = nil }, "metrics.samples_per_second"},
		"figure with both":        {func(r *Record) { r.Metrics.SamplesPerSecond.Absent = "x" }, "metrics.samples_per_second"},
		"negative figure":         {func(r *Record) { r.Metrics.Other["load_p50"] = figure(-1, "s", HostOnly) }, "metrics.other.load_p50.value"},
		"figure without unit":     {func(r *Record) { r.Metrics.Other["load_p50"] = figure(1, "", HostOnly) }, "metrics.other.load_p50.unit"},
		"figure without class":    {func(r *Record) { r.Metrics.Other["load_p50"] = figure(1, "s", "") }, "metrics.other.load_p50.class"},
		"missing epoch":           {func(r *Record) { r.Metrics.Epochs = r.Metrics.Epochs[:1] }, "metrics.epochs"},
		"epochs swapped":          {func(r *Record) { slices.Reverse(r.Metrics.Epochs) }, "metrics.epochs[0].epoch"},
		"DLIO's object":           {func(r *Record) { r.Metrics.DLIO["x"] = map[string]any{} }, "metrics.dlio.x"},
		"DLIO's list of lists":    {func(r *Record) { r.Metrics.DLIO["x"] = []any{[]any{}} }, "metrics.dlio.x"},
		"own digest":              {func(r *Record) { r.Files[0].Name = "record.json" }, "files[0].name"},
		"climbing":                {func(r *Record) { r.Files[0].Name = "../steps" }, "files[0].name"},
		"files twice":             {func(r *Record) { r.Files = append(r.Files, r.Files[0]) }, "files[1].name"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample()
			c.change(r)
			found := r.Check()
			if !slices.ContainsFunc(found, func(p Problem) bool { return p.Field == c.field || strings.Contains(p.Message, c.field) }) {
				t.Fatalf("expected a problem of %s, found %v", c.field, found)
			}
		})
	}
}

func TestPlainName(t *testing.T) {
	for name, want := range map[string]bool{
		"steps.parquet": true, "dlio/summary.json": true, "ü": true, "..x": true,
		"": false, ".": false, "..": false, "../x": false, "/x": false, "a//b": false, "a/../b": false, "./a": false, "a/": false,
		`a\b`: false, "c:x": false, "a\x1b[2Jb": false, "a\nb": false, "\xff": false, "a\u0085b": false,
	} {
		if got := PlainName(name); got != want {
			t.Errorf("PlainName(%q) = %v", name, got)
		}
	}
}
