package record

import (
	"slices"
	"testing"
)

// bucketed is the sample with its data set and checkpoints in a bucket.
func bucketed() *Record {
	r := sample()
	e := &r.Environment
	e.Folders = slices.DeleteFunc(slices.Clone(e.Folders), func(f Folder) bool { return f.Role != RoleResults })
	for _, role := range []string{RoleData, RoleCheckpoints} {
		e.Buckets = append(e.Buckets, Bucket{Role: role, Address: "s3://bench/" + role, Endpoints: []string{"http://10.0.0.1:9000"}, Region: "us-east-1", Attempts: 5,
			PartBytes: 16 << 20, Parts: 4, Traffic: BucketTraffic{Get: 10, Put: 2, Refused: 1, Retried: 1, Received: 1 << 20}})
	}
	return r
}

// roundTrips holds a record to its schema and rules, and to being the same when it was read and written again.
func roundTrips(t *testing.T, r *Record) {
	t.Helper()
	b := mustCanonical(t, r)
	if err := ValidateSchema(b); err != nil {
		t.Error(err)
	}
	back, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if p := back.Check(); p != nil {
		t.Error(p)
	}
	if string(mustCanonical(t, back)) != string(b) {
		t.Error("written again it is not the same")
	}
}

func TestBucketsRoundTrip(t *testing.T) {
	roundTrips(t, bucketed())
}

// TestCheckFindsInBuckets changes one thing at a time, and the field named must be found.
func TestCheckFindsInBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Environment)
		field  string
	}{
		"another role":         {func(e *Environment) { e.Buckets[0].Role = RoleResults }, "environment.buckets[0].role"},
		"order":                {func(e *Environment) { slices.Reverse(e.Buckets) }, "environment.buckets[1].role"},
		"folder and bucket":    {func(e *Environment) { e.Folders = append([]Folder{{Role: RoleData}}, e.Folders...) }, "environment.buckets[0].role"},
		"no address":           {func(e *Environment) { e.Buckets[0].Address = "/data" }, "environment.buckets[0].address"},
		"no server":            {func(e *Environment) { e.Buckets[0].Endpoints = []string{} }, "environment.buckets[0].endpoints"},
		"no attempt":           {func(e *Environment) { e.Buckets[0].Attempts = 0 }, "environment.buckets[0].attempts"},
		"negative count":       {func(e *Environment) { e.Buckets[1].Traffic.Get = -1 }, "environment.buckets[1].traffic.get"},
		"more refused than is": {func(e *Environment) { e.Buckets[1].Traffic.Refused = 13 }, "environment.buckets[1].traffic.refused"},
		"not redacted":         {func(e *Environment) { e.Redacted = true }, "environment.buckets[0].endpoints"},
	} {
		r := bucketed()
		c.change(&r.Environment)
		if p := r.Check(); !slices.ContainsFunc(p, func(p Problem) bool { return p.Field == c.field }) {
			t.Errorf("%s: expected %s among %v", name, c.field, p)
		}
	}
}
