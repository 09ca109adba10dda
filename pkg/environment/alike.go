package environment

import (
	"net/url"
	"runtime"
	"strconv"
)

// Alike is what of their environments the processes of one job are compared by.
type Alike struct {
	// Job would change what a job measures if it differed between any two of its processes: what the Go runtime was told, and which server
	// a bucket is looked for at. Credentials are not among it.
	Job map[string]string
	// Host is alike in all processes of one host, since they are on one machine, and may differ between hosts.
	Host map[string]string
	// Told tells machines apart: they may differ, and who reads a figure of all wants to know.
	Told map[string]string
}

// ToBeAlike returns what this process has there, with getenv in place of os.Getenv. It takes milliseconds.
func ToBeAlike(getenv func(string) string) Alike {
	c := newCollector("")
	c.machine()
	e, r := &c.env, goRuntime()
	first := func(names ...string) string {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	processors := strconv.Itoa(r.GOMAXPROCS)
	return Alike{
		// GOMAXPROCS as it was set: what it is by itself is the machine's.
		Job: map[string]string{"GOMAXPROCS": getenv("GOMAXPROCS"), "GOGC": r.GOGC, "GOMEMLIMIT": r.GOMEMLIMIT, "GODEBUG": getenv("GODEBUG"),
			"AWS_ENDPOINT_URL": address(first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")), "AWS_REGION": first("AWS_REGION", "AWS_DEFAULT_REGION")},
		Host: map[string]string{"processors that a process may use": processors},
		Told: map[string]string{"processors that a process may use": processors, "processor": e.CPU.Model, "kernel": runtime.GOOS + " " + e.Host.Kernel,
			"distribution": e.Host.Distribution, "limit of open files": e.Limits.OpenFiles.Hard},
	}
}

// address is an endpoint without what might be secret in it.
func address(endpoint string) string {
	if endpoint == "" {
		return ""
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
