package record

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

func hexDigest(c string) string { return "blake3:" + strings.Repeat(c, 64) }

// sample is a complete record in which every part is used; its run is small enough to check by hand.
func sample() *Record {
	canonical := []byte(`{"train":{"computation_time":0.323,"epochs":2}}`)
	sum := blake3.Sum256(canonical)
	return &Record{
		Schema: SchemaName, ID: "20261130T141500Z-3f9c2a", Status: StatusComplete,
		Started: "2026-11-30T14:15:00.000000001Z", Finished: "2026-11-30T14:15:07.5Z",
		Tool: Tool{
			Name: "benchpin", Version: "v0.1.0", Commit: "0123456789abcdef0123456789abcdef01234567", Go: "go1.26.8",
			Platform: "linux/amd64", Binary: hexDigest("1"),
			Modules: []Module{{Path: "github.com/zeebo/blake3", Version: "v0.2.4", Sum: "h1:KYQPkhpRtcqh0ssGYcKLG1JYvddkEA8QwCM/yBqhaZI="}},
		},
		Workload: Workload{
			Name: "unet3d_h100", Digest: fmt.Sprintf("blake3:%x", sum), Source: hexDigest("2"), Overrides: []string{},
			Canonical: json.RawMessage(canonical),
		},
		Dataset: Dataset{
			Class: Recomputable, Root: hexDigest("3"), Manifest: hexDigest("4"), Files: 28, Bytes: 4105026880, Generated: true, Seed: "1",
			Verification: Verification{
				Class: HostOnly, Mode: "before", Files: 28, Bytes: 4105026880, Seconds: 1.5, ResidentBefore: ptr(Int(0)),
				ResidentAfter: ptr(Int(4096)), IdentityRechecked: 56,
			},
		},
		Plan: Plan{
			Class: Recomputable, Accelerators: 2, Epochs: 2, Files: 28, SamplesPerFile: 1, Samples: 28, BatchSize: 7, StepsPerEpoch: 2,
			SamplesPerEpoch: 28, BytesPerEpoch: 4105026880, BytesTotal: 8210053760, ComputeSeconds: 0.323, ExpectedSeconds: 1.292,
			AUThreshold: 90, RequiredBytesPerSecond: ptr(5.7e9), RequiredFilesPerSecond: ptr(39.0), ReadThreads: 4, PrefetchFactor: 2,
			Order: "numpy", OrderSeed: 123, Checkpoints: 1, CheckpointBytes: 20480, MemoryBytes: 8 << 20,
		},
		Transcript: Transcript{
			Class: Recomputable, Root: hexDigest("5"), Ranks: []string{hexDigest("6"), hexDigest("7")}, Entries: 56, Expected: hexDigest("5"),
		},
		Checkpoints: Checkpoints{
			Class: HostOnly, Fsync: true,
			Saves: []Checkpoint{{
				Name: "global_epoch2_step2", Epoch: 2, Step: 2, Bytes: 21974, Digest: hexDigest("8"), Seconds: []float64{0.012, 0.0125},
			}},
		},
		Environment: sampleEnvironment(),
		Metrics: Metrics{
			AU: figure(97.5, "%", HostOnly), Threshold: figure(90, "%", Recomputable), Met: ptr(true),
			SamplesPerSecond: figure(42.25, "samples/s", HostOnly), BytesPerSecond: figure(6.194e9, "B/s", HostOnly),
			Epochs: []EpochMetrics{
				{
					Epoch: 1, Steps: 2, Seconds: figure(0.7, "s", HostOnly), AU: figure(97, "%", HostOnly),
					SamplesPerSecond: figure(40, "samples/s", HostOnly), BytesPerSecond: figure(6e9, "B/s", HostOnly),
					BytesAsked: figure(4105026880, "B", HostOnly), BytesDevice: Figure{Unit: "B", Class: HostOnly, Absent: "no /proc/self/io"},
				},
				{
					Epoch: 2, Steps: 2, Seconds: figure(0.68, "s", HostOnly), AU: figure(98, "%", HostOnly),
					SamplesPerSecond: figure(41, "samples/s", HostOnly), BytesPerSecond: figure(6.1e9, "B/s", HostOnly),
					BytesAsked: figure(4105026880, "B", HostOnly), BytesDevice: figure(0, "B", HostOnly),
				},
			},
			DLIO:  map[string]any{"train_au_percentage": []any{97.0, 98.0}, "train_au_meet_expectation": "success"},
			Other: map[string]Figure{"load_p50": figure(0.001, "s", HostOnly)},
		},
		Files: []File{{Name: "steps.parquet", Size: 4242, Blake3: hexDigest("9")}},
	}
}

func sampleEnvironment() Environment {
	return Environment{
		Class: HostOnly,
		Host: Host{
			Name: "node17", OS: "linux", Architecture: "amd64", Distribution: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0",
			KernelVersion: "#1 SMP", Vendor: "QEMU", Product: "Standard PC", Serial: UnknownText, Virtual: ptr(true),
		},
		CPU: CPU{
			Model: "AMD EPYC", Sockets: ptr(1), Cores: ptr(1), Online: ptr(2), Usable: ptr(2), Governor: UnknownText,
		},
		Memory: Memory{Total: ptr(Int(8 << 30)), Available: ptr(Int(4 << 30)), SwapTotal: ptr(Int(0)), SwapFree: ptr(Int(0))},
		NUMA:   []NUMANode{{ID: 0, CPUs: "0-1", Memory: ptr(Int(8 << 30))}},
		Folders: []Folder{{
			Role: RoleData, MountPoint: "/data", FileSystem: "ext4", Source: "/dev/vdb", Options: "rw,relatime", DeviceNumber: "254:16",
			Total: ptr(Int(1 << 40)), Free: ptr(Int(1 << 39)),
			Device: Device{
				Name: "vdb", Model: "virtio", Serial: UnknownText, Parts: []string{}, Rotational: ptr(false), Scheduler: "none",
				QueueDepth: ptr(256), ReadAhead: ptr(Int(131072)),
			},
		}},
		ResultsApart: ptr(false),
		Clock:        Clock{Source: "tsc", Available: []string{"tsc", "hpet"}},
		Limits: Limits{
			OpenFiles: Limit{"1024", "1048576"}, LockedMemory: Limit{"8388608", UnlimitedText}, Processes: Limit{UnlimitedText, UnlimitedText},
			CgroupVersion: "2", CgroupCPU: UnlimitedText, CgroupMemory: "8589934592",
		},
		Container: Container{Kind: "none", Evidence: []string{}},
		Sysctls:   map[string]string{"vm.swappiness": "60"},
		HugePages: "madvise",
		Runtime:   GoRuntime{Version: "go1.26.8", GOMAXPROCS: 2, GOGC: "100", GOMEMLIMIT: UnlimitedText},
		Load:      Load{One: ptr(0.5), Five: ptr(0.25), Fifteen: ptr(0.125)},
		Unknown: []Unknown{
			{Field: "cpu.governor", Reason: "no cpufreq in sysfs"}, {Field: "folders.data.device.serial", Reason: "no serial in sysfs"},
			{Field: "host.serial", Reason: "permission denied"},
		},
	}
}

// drawRecord changes the sample at the places where forms differ: texts, numbers, lists, maps and absent values.
func drawRecord(t *rapid.T) *Record {
	r := sample()
	text := rapid.String()
	finite := rapid.Custom(func(t *rapid.T) float64 { return rapid.Float64().Draw(t, "float") + 0 })
	i64 := rapid.Custom(func(t *rapid.T) Int { return Int(rapid.Int64().Draw(t, "int")) })
	fig := rapid.Custom(func(t *rapid.T) Figure {
		f := Figure{Unit: text.Draw(t, "unit"), Class: HostOnly}
		if rapid.Bool().Draw(t, "absent") {
			f.Absent = text.Draw(t, "why")
		} else {
			f.Value = ptr(finite.Draw(t, "value"))
		}
		return f
	})
	r.ID, r.Reason, r.Tool.Commit = text.Draw(t, "id"), text.Draw(t, "reason"), text.Draw(t, "commit")
	r.Workload.Overrides = rapid.SliceOf(text).Draw(t, "overrides")
	r.Workload.Canonical = rapid.SampledFrom([]json.RawMessage{
		[]byte("{}"), []byte("{\n  \"a\": [1, 2]\n}"), []byte(`{"a":"<&>\u00e9","b":1e5,"c":1.50}`), []byte("null"), []byte(`"@"`),
		[]byte(`"\n    \"canonical\": \"@\""`),
	}).Draw(t, "workload")
	r.Dataset.Bytes, r.Dataset.Files = i64.Draw(t, "bytes"), i64.Draw(t, "files")
	r.Plan.ExpectedSeconds, r.Plan.Epochs = finite.Draw(t, "seconds"), rapid.Int().Draw(t, "epochs")
	r.Transcript.Ranks = rapid.SliceOf(text).Draw(t, "ranks")
	r.Environment.Sysctls = rapid.MapOf(text, text).Draw(t, "sysctls")
	r.Metrics.AU, r.Metrics.Other = fig.Draw(t, "au"), rapid.MapOf(text, fig).Draw(t, "other")
	r.Metrics.DLIO = rapid.MapOf(text, rapid.OneOf(
		rapid.Map(finite, func(f float64) any { return f }), rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.SliceOf(finite), func(f []float64) any { return f }),
	)).Draw(t, "dlio")
	r.Metrics.Met = nil
	r.Files = nil
	return r
}
