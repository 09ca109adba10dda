package environment

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// Processes are compared by what the runtime runs with, by what was set and by their machine, and never by a secret.
func TestToBeAlike(t *testing.T) {
	set := map[string]string{}
	getenv := func(name string) string { return set[name] }
	before := ToBeAlike(getenv)
	if got, want := before.Host["processors that a process may use"], strconv.Itoa(runtime.GOMAXPROCS(0)); got != want {
		t.Errorf("processors %q, want %q", got, want)
	}
	for name, value := range before.Told {
		if value == "" {
			t.Errorf("%s is empty", name)
		}
	}
	if again := ToBeAlike(getenv); !maps.Equal(again.Job, before.Job) || !maps.Equal(again.Host, before.Host) || !maps.Equal(again.Told, before.Told) {
		t.Errorf("asked again: %v, before: %v", again, before)
	}
	set["AWS_ENDPOINT_URL"], set["AWS_DEFAULT_REGION"], set["GOMAXPROCS"], set["GODEBUG"] = "http://other:1", "eu-west-1", "3", "gctrace=1"
	set["AWS_ENDPOINT_URL_S3"] = "http://user:PwSecret@store:9000/?key=PwSecret#PwSecret"
	set["AWS_ACCESS_KEY_ID"], set["AWS_SECRET_ACCESS_KEY"], set["AWS_SESSION_TOKEN"] = "PwSecret", "PwSecret", "PwSecret"
	defer debug.SetGCPercent(debug.SetGCPercent(57))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	after := ToBeAlike(getenv)
	want := map[string]string{"AWS_ENDPOINT_URL": "http://store:9000/", "AWS_REGION": "eu-west-1", "GOMAXPROCS": "3", "GODEBUG": "gctrace=1", "GOGC": "57",
		"GOMEMLIMIT": "1099511627776"}
	if !maps.Equal(after.Job, want) {
		t.Errorf("found %v, want %v", after.Job, want)
	}
	set["AWS_ENDPOINT_URL_S3"] = "http://user:PwSecret@[store"
	if all := fmt.Sprint(after, ToBeAlike(getenv)); strings.Contains(all, "PwSecret") {
		t.Errorf("a secret is shown: %s", all)
	}
}
