package record

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/zeebo/blake3"
)

// Problem is one thing that a record says and that cannot be.
type Problem struct {
	// Field is the path of JSON names, such as "metrics.au.value".
	Field string
	// Message says what was expected and what was found.
	Message string
}

// String is "field: message".
func (p Problem) String() string { return p.Field + ": " + p.Message }

// Check returns everything in the record that contradicts itself or its type's meaning; nil when there is nothing. It uses the
// record alone: that the plan, the expected transcript and the figures follow from the workload, the manifest and the step times
// is for those who hold them.
//
// A complete record must have run all epochs, checkpoints and ranks of its plan and have transcript.root equal to
// transcript.expected; an incomplete one must say why, and is checked for everything else.
func (r *Record) Check() []Problem {
	c := &checker{}
	c.head(r)
	c.tool(&r.Tool)
	c.workload(&r.Workload)
	c.dataset(&r.Dataset)
	c.compared(r)
	c.plan(&r.Plan)
	c.transcript(r)
	c.checkpoints(r)
	c.environment(&r.Environment)
	c.journal(r.Journal)
	c.replayOf(r)
	c.preregistration(r)
	c.notBefore(r)
	c.metrics(r)
	c.cluster(r)
	c.files(r.Files)
	return c.problems
}

type checker struct{ problems []Problem }

func (c *checker) that(ok bool, field, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, Problem{field, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) oneOf(field, found string, allowed ...string) {
	c.that(slices.Contains(allowed, found), field, "expected one of %s, found %q", strings.Join(allowed, ", "), found)
}

func (c *checker) class(field string, found Class) {
	c.oneOf(field, string(found), string(Recomputable), string(Witnessed), string(HostOnly))
}

func (c *checker) digest(field, found string) {
	c.that(IsDigest(found), field, "expected blake3: and 64 lower-case hexadecimal digits, found %q", found)
}

func notNegative[T cmp.Ordered](c *checker, field string, n T) {
	var zero T
	c.that(n >= zero, field, "is negative: %v", n)
}

// IsDigest reports whether s is a BLAKE3 digest as records write it: "blake3:" and 64 lower-case hexadecimal digits.
func IsDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "blake3:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// isSHA256 reports whether s is a digest as registries write it.
func isSHA256(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

func (c *checker) head(r *Record) {
	c.that(r.Schema == SchemaName, "schema", "expected %q, found %q", SchemaName, r.Schema)
	c.oneOf("status", r.Status, StatusComplete, StatusIncomplete)
	c.that((r.Status == StatusComplete) == (r.Reason == ""), "reason",
		"a complete record has none and an incomplete one has one; status is %q, reason %q", r.Status, r.Reason)
	started, finished := c.time("started", r.Started), c.time("finished", r.Finished)
	c.that(!finished.Before(started), "finished", "%s is before started, %s", r.Finished, r.Started)
	named, ok := idTime(r.ID)
	c.that(ok, "id", "expected a time in UTC and hexadecimal digits, such as 20261130T141500Z-3f9c2a, found %q", r.ID)
	c.that(!ok || started.IsZero() || !named.After(started.Add(clockSlack)), "id", "names a run that began after %s, which is started: %q", r.Started, r.ID)
}

// clockSlack is how far a host's clock may be set back in a run without contradicting the record.
const clockSlack = time.Second

// idTime is the time in the name of a run: when it got its name, which is before anything was verified or run.
func idTime(id string) (time.Time, bool) {
	stamp, random, ok := strings.Cut(id, "-")
	t, err := time.Parse("20060102T150405Z", stamp)
	return t, ok && err == nil && random != "" && strings.Trim(random, "0123456789abcdef") == ""
}

func (c *checker) time(field, s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	c.that(err == nil && strings.HasSuffix(s, "Z"), field, "expected a time such as 2026-11-30T14:15:00.5Z in UTC, found %q", s)
	return t
}

func (c *checker) tool(t *Tool) {
	c.that(t.Name != "", "tool.name", "is empty")
	c.that(t.Version != "", "tool.version", "is empty")
	c.digest("tool.binary", t.Binary)
	c.that(slices.IsSortedFunc(t.Modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) }), "tool.modules",
		"are not sorted by path")
}

func (c *checker) workload(w *Workload) {
	c.digest("workload.source", w.Source)
	sum := Digest(w.Canonical)
	c.that(w.Digest == sum, "workload.digest", "the bytes of workload.canonical have %s, found %q", sum, w.Digest)
}

// Digest is the BLAKE3 digest of b, as records write it.
func Digest(b []byte) string { return fmt.Sprintf("blake3:%x", blake3.Sum256(b)) }

func (c *checker) dataset(d *Dataset) {
	c.class("dataset.class", d.Class)
	c.digest("dataset.root", d.Root)
	c.digest("dataset.manifest", d.Manifest)
	notNegative(c, "dataset.files", d.Files)
	notNegative(c, "dataset.bytes", d.Bytes)
	c.that(d.Generated == (d.Seed != ""), "dataset.seed", "a generated data set has a seed and another has none; generated is %v, "+
		"seed %q", d.Generated, d.Seed)
	c.that(!d.Generated || d.Format == "", "dataset.format", "the recipe of a generated data set says it, found %q", d.Format)
	v := &d.Verification
	const at = "dataset.verification."
	c.class(at+"class", v.Class)
	c.oneOf(at+"mode", v.Mode, "before", "inline", "after", "sample", "none")
	notNegative(c, at+"files", v.Files)
	notNegative(c, at+"bytes", v.Bytes)
	notNegative(c, at+"seconds", v.Seconds)
	notNegative(c, at+"identity_rechecked", v.IdentityRechecked)
	c.that(v.Files <= d.Files && v.Bytes <= d.Bytes, at+"files", "%d files and %d bytes were verified of a data set of %d files and "+
		"%d bytes", v.Files, v.Bytes, d.Files, d.Bytes)
	c.that(v.Mode != "none" || v.Files == 0, at+"files", "%d files were verified although the mode is none", v.Files)
	c.verification(v)
	for name, n := range map[string]*Int{"resident_bytes_before": v.ResidentBefore, "resident_bytes_after": v.ResidentAfter} {
		c.that(n == nil || *n >= 0, at+name, "is negative")
	}
}

func (c *checker) plan(p *Plan) {
	c.class("plan.class", p.Class)
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		switch {
		case name == "order_seed": // any 64 bits
		case f.CanInt():
			notNegative(c, "plan."+name, f.Int())
		case f.CanFloat():
			notNegative(c, "plan."+name, f.Float())
		}
	}
	c.that(p.AUThreshold <= 100, "plan.au_threshold", "is a percentage, found %v", p.AUThreshold)
	c.that(p.SamplesPerEpoch <= p.Samples, "plan.samples_per_epoch", "%d of %d samples", p.SamplesPerEpoch, p.Samples)
}

func (c *checker) transcript(r *Record) {
	t := &r.Transcript
	c.class("transcript.class", t.Class)
	notNegative(c, "transcript.entries", t.Entries)
	for i, rank := range t.Ranks {
		c.digest(fmt.Sprintf("transcript.ranks[%d]", i), rank)
	}
	complete := r.Status == StatusComplete
	if complete || t.Root != "" {
		c.digest("transcript.root", t.Root)
	}
	if complete || t.Expected != "" {
		c.digest("transcript.expected", t.Expected)
	}
	c.that(!complete || t.Root == t.Expected, "transcript.root", "a complete run read what was expected, %q, found %q", t.Expected, t.Root)
	c.that(!complete || len(t.Ranks) == r.Plan.Accelerators, "transcript.ranks", "the plan has %d accelerators, found %d ranks",
		r.Plan.Accelerators, len(t.Ranks))
	c.evaluation(r, t.Evaluation)
	c.that(!complete || t.Entries > 0 || r.Plan.Epochs == 0, "transcript.entries", "a complete run of epochs read samples, found %d", t.Entries)
}

func (c *checker) checkpoints(r *Record) {
	k := &r.Checkpoints
	c.class("checkpoints.class", k.Class)
	c.oneOf("plan.checkpoint_form", r.Plan.CheckpointForm, "", "tensorflow")
	if r.Status == StatusComplete {
		c.that(len(k.Saves) == r.Plan.Checkpoints, "checkpoints.saves", "the plan has %d, found %d", r.Plan.Checkpoints, len(k.Saves))
		c.that(len(k.Loads) == r.Plan.CheckpointReads, "checkpoints.loads", "the plan has %d, found %d", r.Plan.CheckpointReads, len(k.Loads))
	}
	for i, s := range k.Saves {
		at := fmt.Sprintf("checkpoints.saves[%d].", i)
		c.that(s.Name != "", at+"name", "is empty")
		notNegative(c, at+"epoch", s.Epoch)
		notNegative(c, at+"step", s.Step)
		notNegative(c, at+"bytes", s.Bytes)
		c.digest(at+"digest", s.Digest)
		if s.Start != nil {
			notNegative(c, at+"start_seconds", *s.Start)
		}
		c.ranks(at+"seconds", s.Seconds, r.Plan.Accelerators, false)
		c.ranks(at+"write_seconds", s.WriteSeconds, len(s.Seconds), true)
		c.ranks(at+"starved_seconds", s.StarvedSeconds, len(s.Seconds), true)
		for rank := range s.WriteSeconds[:min(len(s.WriteSeconds), len(s.Seconds))] {
			c.that(s.WriteSeconds[rank] <= s.Seconds[rank], fmt.Sprintf("%swrite_seconds[%d]", at, rank), "%v of %v seconds",
				s.WriteSeconds[rank], s.Seconds[rank])
		}
	}
	for i, l := range k.Loads {
		at := fmt.Sprintf("checkpoints.loads[%d].", i)
		c.that(l.Name != "", at+"name", "is empty")
		notNegative(c, at+"epoch", l.Epoch)
		notNegative(c, at+"step", l.Step)
		notNegative(c, at+"bytes", l.Bytes)
		notNegative(c, at+"start_seconds", l.Start)
		c.ranks(at+"seconds", l.Seconds, r.Plan.Accelerators, false)
		c.ranks(at+"waited_seconds", l.WaitedSeconds, len(l.Seconds), false)
		if l.DeviceBytes != nil {
			notNegative(c, at+"device_bytes", *l.DeviceBytes)
		}
	}
	if e := k.Eviction; e != nil {
		const at = "checkpoints.eviction."
		notNegative(c, at+"files", e.Files)
		notNegative(c, at+"bytes", e.Bytes)
		for name, n := range map[string]*Int{"resident_bytes_before": e.ResidentBefore, "resident_bytes_after": e.ResidentAfter} {
			c.that(n == nil || *n >= 0 && *n <= e.Bytes, at+name, "is not among %d bytes", e.Bytes)
		}
	}
}

// ranks checks a list of one time for each rank.
func (c *checker) ranks(at string, seconds []float64, ranks int, optional bool) {
	c.that(len(seconds) == ranks || optional && seconds == nil, at, "expected one time for each of %d ranks, found %d", ranks, len(seconds))
	for rank, s := range seconds {
		notNegative(c, fmt.Sprintf("%s[%d]", at, rank), s)
	}
}

func (c *checker) files(files []File) {
	for i, f := range files {
		at := fmt.Sprintf("files[%d].", i)
		c.that(PlainName(f.Name), at+"name", "expected a relative path below the run folder, found %q", f.Name)
		c.that(f.Name != "record.json", at+"name", "a record cannot hold its own digest")
		c.that(i == 0 || files[i-1].Name < f.Name, at+"name", "files are not sorted by name, or stand twice: %q", f.Name)
		notNegative(c, at+"size", f.Size)
		c.digest(at+"blake3", f.Blake3)
	}
}

// PlainName reports whether s can name a file beside a record: a relative path in its shortest form, with /, without back slashes,
// colons and control characters, that does not leave its folder on any system.
func PlainName(s string) bool {
	return s != "" && s == path.Clean(s) && s != "." && s != ".." && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "../") &&
		!strings.ContainsAny(s, `\:`) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
}
