package record

import (
	"fmt"
	"reflect"
	"slices"
)

// Bucket is a bucket of an object server that the run read or wrote, in place of a folder. Credentials are no part of it.
type Bucket struct {
	// Role is RoleData or RoleCheckpoints.
	Role string `json:"role"`
	// Address is s3://BUCKET[/PREFIX].
	Address string `json:"address"`
	// Endpoints are the addresses of the server, each with its scheme; Region is what requests were signed for.
	Endpoints []string `json:"endpoints"`
	Region    string   `json:"region"`
	// PathStyle is true where the workload asked for the bucket in the path of addresses; else the address decided.
	PathStyle bool `json:"path_style"`
	// Attempts is how often a request was tried at most.
	Attempts int `json:"attempts"`
	// Ranged is true where each part of an object was asked for by a request of its own, and false where an object was asked for as a
	// whole.
	Ranged bool `json:"ranged"`
	// PartBytes are those of one part of an upload, of which Parts were under way at once at most.
	PartBytes Int `json:"part_bytes"`
	Parts     int `json:"parts"`
	// Traffic is what went between the process that wrote the record and the server, in the timed part of the run and what belongs to it.
	Traffic BucketTraffic `json:"traffic"`
}

// BucketTraffic counts requests, every attempt as one, and bytes of their bodies.
type BucketTraffic struct {
	// Get, Put, Head, List and Other are requests: Put counts POST too, List are the GET requests that list.
	Get   Int `json:"get"`
	Put   Int `json:"put"`
	Head  Int `json:"head"`
	List  Int `json:"list"`
	Other Int `json:"other"`
	// Refused are the answers of status 429 and 5xx, SlowDown among them; Broken the requests that got no answer; Retried the reads and
	// writes that were tried again because of such, or because an answer ended early.
	Refused Int `json:"refused"`
	Broken  Int `json:"broken"`
	Retried Int `json:"retried"`
	// Received and Sent are bytes.
	Received Int `json:"received_bytes"`
	Sent     Int `json:"sent_bytes"`
}

// buckets holds what is said of buckets.
func (c *checker) buckets(e *Environment) {
	roles := []string{RoleData, RoleCheckpoints}
	last := -1
	for i, b := range e.Buckets {
		at := fmt.Sprintf("environment.buckets[%d].", i)
		n := slices.Index(roles, b.Role)
		c.that(n > last, at+"role", "expected data, checkpoints in this order, found %q", b.Role)
		last = n
		c.that(!slices.ContainsFunc(e.Folders, func(f Folder) bool { return f.Role == b.Role }), at+"role", "%s are in a folder too", b.Role)
		c.that(len(b.Address) > len("s3://") && b.Address[:len("s3://")] == "s3://", at+"address", "expected s3://BUCKET[/PREFIX], found %.100q", b.Address)
		c.that(len(b.Endpoints) > 0, at+"endpoints", "is empty")
		c.that(b.Attempts > 0, at+"attempts", "expected 1 or more, found %d", b.Attempts)
		notNegative(c, at+"part_bytes", b.PartBytes)
		notNegative(c, at+"parts", b.Parts)
		v := reflect.ValueOf(b.Traffic)
		for j := range v.NumField() {
			notNegative(c, at+"traffic."+v.Type().Field(j).Tag.Get("json"), v.Field(j).Int())
		}
		t := b.Traffic
		c.that(t.Refused+t.Broken <= t.Get+t.Put+t.Head+t.List+t.Other, at+"traffic.refused", "%d refused and %d broken are more than all requests", t.Refused, t.Broken)
		if e.Redacted {
			for _, to := range b.Endpoints {
				c.hidden(at+"endpoints", to)
			}
		}
	}
}
