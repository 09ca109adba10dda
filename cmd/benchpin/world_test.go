package main

import (
	"strings"
	"testing"
)

// Processes that leave processors idle together are told; those that share all of them, each by itself or in turns, are not.
func TestTightlyBound(t *testing.T) {
	for _, c := range []struct {
		each, processes int
		online          string
		want            string
	}{
		{64, 1, "0-63\n", ""},
		{1, 1, "0-63\n", "each of the 1 processes on this host may use 1 of its 64 processors"},
		{1, 2, "0-3,8\n", "each of the 2 processes on this host may use 1 of its 5 processors"},
		{32, 2, "0-63", ""},
		{2, 4, "0-1", ""},
		{1, 1, "", ""},
		{1, 1, "none", ""},
		{1, 1, "3-1", ""},
	} {
		if got := tightlyBound(c.each, c.processes, c.online); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
