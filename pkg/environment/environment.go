// Package environment finds out what machine, kernel, file systems, limits, Go runtime and binary a run saw, for its record. What
// it cannot find out is recorded as unknown with the reason. It never changes a setting, never runs another program, never uses
// the network, and never decides whether what it saw is good.
package environment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
)

// folderTimeout is how long a file system may take to say what it is; a network file system whose server is gone never answers.
const folderTimeout = 10 * time.Second

// Request says what to look at.
type Request struct {
	// Data, Checkpoints and Results are folders; one that does not exist yet stands for the nearest folder above it that does, and
	// an empty one is left out.
	Data, Checkpoints, Results string
	// Redact leaves out host names, network addresses of mounts and serial numbers, and nothing else.
	Redact bool
}

// Collect looks at the machine. It takes milliseconds and cannot fail: what it does not find out, also because ctx was done or a
// file system did not answer for ten seconds, is unknown with the reason. Call it before the clock of a run starts, so that the
// load average is that of the machine without the run.
func Collect(ctx context.Context, q Request) record.Environment {
	c := newCollector("")
	return c.collect(ctx, q)
}

// collector gathers one environment.
type collector struct {
	// root is put before the paths of the kernel's files: empty, but for tests.
	root   string
	getenv func(string) string
	env    record.Environment
}

func newCollector(root string) *collector { return &collector{root: root, getenv: os.Getenv} }

func (c *collector) collect(ctx context.Context, q Request) record.Environment {
	c.env.Class = record.HostOnly
	c.env.Host.OS, c.env.Host.Architecture = runtime.GOOS, runtime.GOARCH
	c.machine()
	c.folders(ctx, q)
	c.env.Runtime = goRuntime()
	if q.Redact {
		redact(&c.env, hostNames())
	}
	c.env.Unknown = append([]record.Unknown{}, c.env.Unknown...)
	slices.SortStableFunc(c.env.Unknown, func(a, b record.Unknown) int { return cmp.Compare(a.Field, b.Field) })
	c.env.Unknown = slices.CompactFunc(c.env.Unknown, func(a, b record.Unknown) bool { return a.Field == b.Field })
	// Firmware and mount tables hold bytes of any kind; a record is UTF-8.
	eachText(reflect.ValueOf(&c.env).Elem(), func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
	return c.env
}

// unknown notes the reason and returns what stands in place of a text.
func (c *collector) unknown(field, format string, args ...any) string {
	reason := fmt.Sprintf(format, args...)
	if c.root != "" {
		reason = strings.ReplaceAll(reason, c.root, "")
	}
	c.env.Unknown = append(c.env.Unknown, record.Unknown{Field: field, Reason: reason})
	return record.UnknownText
}

// folders looks at each folder in a goroutine of its own, because a call to a dead file system cannot be interrupted.
func (c *collector) folders(ctx context.Context, q Request) {
	type seen struct {
		folder  record.Folder
		unknown []record.Unknown
	}
	c.env.Folders = []record.Folder{}
	for _, f := range []struct{ role, path string }{
		{record.RoleData, q.Data}, {record.RoleCheckpoints, q.Checkpoints}, {record.RoleResults, q.Results},
	} {
		if f.path == "" {
			continue
		}
		done := make(chan seen, 1)
		go func() {
			sub := newCollector(c.root)
			folder := sub.folder(f.role, f.path)
			done <- seen{folder, sub.env.Unknown}
		}()
		timer := time.NewTimer(folderTimeout)
		select {
		case s := <-done:
			c.env.Folders = append(c.env.Folders, s.folder)
			c.env.Unknown = append(c.env.Unknown, s.unknown...)
		case <-ctx.Done():
			c.env.Folders = append(c.env.Folders, c.unknownFolder(f.role, "interrupted: %v", context.Cause(ctx)))
		case <-timer.C:
			c.env.Folders = append(c.env.Folders, c.unknownFolder(f.role, "the file system did not answer within %v", folderTimeout))
		}
		timer.Stop()
	}
	c.resultsApart(q)
}

func (c *collector) unknownFolder(role, format string, args ...any) record.Folder {
	u := c.unknown("folders."+role, format, args...)
	return record.Folder{Role: role, MountPoint: u, FileSystem: u, Source: u, Options: u, DeviceNumber: u, Device: noDevice()}
}

func noDevice() record.Device {
	const u = record.UnknownText
	return record.Device{Name: u, Model: u, Serial: u, Parts: []string{}, Scheduler: u}
}

// resultsApart compares the file systems of data and results. Subvolumes of one file system differ in their device number, so two
// mounts of the same source count as the same.
func (c *collector) resultsApart(q Request) {
	var data, results *record.Folder
	for i := range c.env.Folders {
		switch f := &c.env.Folders[i]; f.Role {
		case record.RoleData:
			data = f
		case record.RoleResults:
			results = f
		}
	}
	switch {
	case data == nil || results == nil:
		c.unknown("results_apart", "not both a data folder and a results folder were given")
	case data.DeviceNumber == record.UnknownText || results.DeviceNumber == record.UnknownText:
		c.unknown("results_apart", "the file system of data or of results is unknown")
	default:
		sameSource := data.FileSystem == results.FileSystem && data.Source == results.Source && strings.Contains(data.Source, "/")
		apart := data.DeviceNumber != results.DeviceNumber && !sameSource
		c.env.ResultsApart = &apart
	}
}

// nearest returns the real path of the folder, or of the nearest one above it that exists.
func nearest(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for {
		real, err := filepath.EvalSymlinks(abs)
		if err == nil {
			return real, nil
		}
		parent := filepath.Dir(abs)
		if !os.IsNotExist(err) || parent == abs {
			return "", err
		}
		abs = parent
	}
}

// goRuntime reads what the process runs with, not what its environment asked for.
func goRuntime() record.GoRuntime {
	r := record.GoRuntime{
		Version: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0), Cgo: cgoEnabled, GOGC: "off", GOMEMLIMIT: record.UnlimitedText,
	}
	samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(samples)
	// The runtime keeps both as signed numbers: -1 per cent means off, and the largest number that there is no limit.
	if v := samples[0].Value; v.Kind() == metrics.KindUint64 && v.Uint64() <= math.MaxInt32 {
		r.GOGC = strconv.FormatUint(v.Uint64(), 10)
	}
	if v := samples[1].Value; v.Kind() == metrics.KindUint64 && v.Uint64() < math.MaxInt64 {
		r.GOMEMLIMIT = strconv.FormatUint(v.Uint64(), 10)
	}
	return r
}
