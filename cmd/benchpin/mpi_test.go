//go:build mpi && cgo

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/benchpin/benchpin/pkg/cluster/mpi"
	"github.com/benchpin/benchpin/pkg/cluster/mpi/mpitest"
	"github.com/benchpin/benchpin/pkg/record"
)

// mpiYAML has enough files for a step of 20 accelerators in each epoch, and a checkpoint.
const mpiYAML = `
model: {name: small, model_size_bytes: 4096}
framework: pytorch
workflow: {generate_data: true, train: true, checkpoint: true}
dataset: {format: npz, num_files_train: 44, record_length_bytes: 2500, num_samples_per_file: 2}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 2, computation_time: 0.002}
checkpoint: {steps_between_checkpoints: 1}
metric: {au: 0.0001}
benchpin: {seed: 7}
`

// jobs is a folder that processes share, and how they are started.
type jobs struct {
	t      testing.TB
	dir    string
	family string
	launch []string
}

// newJobs makes the folder, with the workload and the program in it.
func newJobs(t testing.TB) *jobs {
	t.Helper()
	j := &jobs{t: t, dir: t.TempDir(), family: mpitest.Family(t, mpi.Library())}
	j.launch = mpitest.Launcher(t, j.family)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is the program when it is called by its name (TestMain).
	if err := os.Symlink(self, j.path("benchpin")); err != nil {
		t.Fatal(err)
	}
	j.write("small.yaml", mpiYAML)
	return j
}

func (j *jobs) path(name string) string { return filepath.Join(j.dir, name) }

func (j *jobs) write(name, content string) {
	j.t.Helper()
	if err := os.WriteFile(j.path(name), []byte(content), 0o755); err != nil {
		j.t.Fatal(err)
	}
}

// outcome is what a job came to.
type outcome struct {
	stdout, stderr string
	code           int
	took           time.Duration
}

func (o outcome) String() string {
	return fmt.Sprintf("code %d after %v\nstdout: %.300s\nstderr: %s", o.code, o.took, o.stdout, o.stderr)
}

// command is so many processes of a program, one without a launcher for 0.
func (j *jobs) command(ctx context.Context, n int, program string, args ...string) *exec.Cmd {
	line := append([]string{j.path(program)}, args...)
	if n > 0 {
		line = append(append(slices.Clone(j.launch), "-np", strconv.Itoa(n)), line...)
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = j.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs them to their end, and fails the test when that does not come.
func (j *jobs) run(n int, program string, args ...string) outcome {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := j.command(ctx, n, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	o := outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(begin)}
	if ctx.Err() != nil {
		j.t.Fatalf("%d processes of %s %v: HANGS: %v", n, program, args, o)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	return o
}

// generate makes the data set with one process.
func (j *jobs) generate() {
	j.t.Helper()
	if o := j.run(0, "benchpin", "data", "generate", "small.yaml", "--data", "data", "--manifest", "m.json"); o.code != 0 {
		j.t.Fatal(o)
	}
}

// arguments of a run that leaves out.
func runArguments(out string, more ...string) []string {
	return append([]string{"run", "small.yaml", "--data", "data", "--manifest", "m.json", "--checkpoints", "checkpoints-" + out, "--out", out, "--json"}, more...)
}

// benchmark runs on n processes and returns the record.
func (j *jobs) benchmark(n int, out string, more ...string) *record.Record {
	j.t.Helper()
	o := j.run(n, "benchpin", runArguments(out, more...)...)
	if o.code != 0 {
		j.t.Fatal(o)
	}
	rec, err := record.Parse([]byte(o.stdout))
	if err != nil {
		j.t.Fatalf("%v: %v", err, o)
	}
	return rec
}

// One to four processes with one, two and five accelerators each make the record that one process with as many accelerators makes.
func TestProcessesAsOne(t *testing.T) {
	t.Parallel() // most of it is waiting
	j := newJobs(t)
	j.generate()
	alone := map[int]*record.Record{}
	for n := 1; n <= 4; n++ {
		for _, each := range []int{1, 2, 5} {
			total := n * each
			if alone[total] == nil {
				alone[total] = j.benchmark(0, fmt.Sprint("alone-", total), "--accelerators", strconv.Itoa(total))
			}
			one := alone[total]
			many := j.benchmark(n, fmt.Sprintf("%dx%d", n, each), "--accelerators-per-process", strconv.Itoa(each))
			if many.Transcript.Root != one.Transcript.Root || many.Transcript.Root != many.Transcript.Expected || many.Dataset.Root != one.Dataset.Root {
				t.Errorf("%d x %d: transcript %s over data %s, want %s over %s", n, each, many.Transcript.Root, many.Dataset.Root, one.Transcript.Root, one.Dataset.Root)
			}
			if !reflect.DeepEqual(many.Plan, one.Plan) {
				t.Errorf("%d x %d: plan\n%+v, want\n%+v", n, each, many.Plan, one.Plan)
			}
			if got, want := saves(many), saves(one); !slices.Equal(got, want) || len(got) == 0 {
				t.Errorf("%d x %d: checkpoints %v, want %v", n, each, got, want)
			}
		}
	}
}

// Several processes generate the data set and manifest that one does, byte for byte, and verify it.
func TestProcessesGenerate(t *testing.T) {
	t.Parallel() // most of it is waiting
	j := newJobs(t)
	j.generate()
	for n := 2; n <= 4; n++ {
		data, m := fmt.Sprint("data-", n), fmt.Sprintf("m%d.json", n)
		if o := j.run(n, "benchpin", "data", "generate", "small.yaml", "--data", data, "--manifest", m); o.code != 0 {
			t.Fatal(o)
		}
		want, err := os.ReadFile(j.path("m.json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(j.path(m))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d processes make another manifest: %v\n%s\nwant:\n%s", n, err, got, want)
		}
		// The manifest of one process holds the bytes of many to account.
		if o := j.run(n, "benchpin", "data", "verify", "--data", data, "--manifest", "m.json"); o.code != 0 {
			t.Errorf("%d processes do not verify what they have made: %v", n, o)
		}
	}
	file := j.path("data-4/train/img_30_of_44.npz")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := j.run(4, "benchpin", "data", "verify", "--data", "data-4", "--manifest", "m.json"); o.code != exitVerify || !strings.Contains(o.stderr, "img_30_of_44.npz") {
		t.Errorf("a changed file: %v", o)
	}
}

// Two hosts with an address each run as one process does, and the record knows them by their names.
func TestProcessesOnTwoHosts(t *testing.T) {
	j := newJobs(t)
	j.generate()
	one := j.benchmark(0, "alone", "--accelerators", "4")
	h := mpitest.TwoHosts(t)
	j.launch = h.Launch(t, j.family, 2)
	before := h.Received(t)
	many := j.benchmark(2, "two", "--accelerators-per-process", "2")
	if many.Transcript.Root != one.Transcript.Root || many.Dataset.Root != one.Dataset.Root || !reflect.DeepEqual(many.Plan, one.Plan) ||
		!slices.Equal(saves(many), saves(one)) {
		t.Errorf("transcript %s, plan %+v, want %s, %+v", many.Transcript.Root, many.Plan, one.Transcript.Root, one.Plan)
	}
	if many.Cluster == nil || len(many.Cluster.Processes) != 2 || many.Cluster.Processes[0].Host != "hosta" || many.Cluster.Processes[1].Host != "hostb" ||
		many.Cluster.Hosts["hostb"].ClockEnd == nil {
		t.Errorf("the record's hosts: %+v", many.Cluster)
	}
	if h.Received(t) == before {
		t.Error("nothing came over the cable")
	}
}

// The whole way on several processes ends in an archive that verifies.
func TestProcessesPipeline(t *testing.T) {
	t.Parallel() // most of it is waiting
	j := newJobs(t)
	if o := j.run(2, "benchpin", "pipeline", "small.yaml", "--dir", "whole", "--accelerators-per-process", "2"); o.code != 0 {
		t.Fatal(o)
	}
	if o := j.run(0, "benchpin", "verify", "whole/archive", "--key", "whole/keys/benchpin.pub"); o.code != 0 {
		t.Error(o)
	}
}

// saves are the checkpoints of a record without what the clock had to do with.
func saves(r *record.Record) (all []string) {
	for _, s := range r.Checkpoints.Saves {
		all = append(all, fmt.Sprint(s.Name, " ", s.Bytes, " ", s.Digest, " by ", len(s.Seconds)))
	}
	return all
}

// A process that was started otherwise, or sees other folders, is named before anything is read, and the job ends with its code.
func TestProcessesApart(t *testing.T) {
	t.Parallel() // most of it is waiting
	j := newJobs(t)
	j.generate()
	// Runs as rank 1 what the first argument says, and the program as it is as rank 0.
	odd := `#!/bin/sh
how=$1; shift
rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}
if [ "$rank" = 1 ]; then case $how in
workload) set -- "$@" --set train.computation_time=0.003 ;;
data) set -- "$@" --data elsewhere --out somewhere ;;
command) set -- data verify --data data --manifest m.json ;;
runtime) export GOMAXPROCS=1 GOGC=off AWS_ENDPOINT_URL_S3=http://user:PwSecret@elsewhere:1 ;;
folder) exec unshare --mount sh -c 'mount -t tmpfs none data && exec "$@"' hidden ./benchpin "$@" ;;
results) exec unshare --mount sh -c 'mkdir -p results && mount -t tmpfs none results && exec "$@"' hidden ./benchpin "$@" ;;
esac; fi
exec ./benchpin "$@"
`
	j.write("odd", odd)
	if err := os.Mkdir(j.path("results"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how  string
		want []string
	}{ // what is given otherwise is usage, what cannot be seen is failure
		{"workload", []string{"the processes do not agree: workload train.computation_time.mean: process 0 on ", " has 0.002, process 1 on ", " 0.003"}},
		{"data", []string{"the processes do not agree: --data: process 0 on ", " has data, process 1 on ", " elsewhere", "--out: process 0 on ", " somewhere"}},
		{"command", []string{"command: process 0 on ", " has benchpin run, process 1 on ", " benchpin data verify"}},
		{"runtime", []string{"AWS_ENDPOINT_URL: process 0 on ", " http://elsewhere:1\n", "GOGC: process 0 on ", " has 100, process 1 on ", " off\n", "GOMAXPROCS: process 0 on ",
			" 1\n"}},
		{"folder", []string{"benchpin: process 1 on ", "the data set data cannot be seen"}},
		{"results", []string{"process 1 on ", "the results folder results/results is not the one that process 0 on "}},
	} {
		t.Run(c.how, func(t *testing.T) {
			o := j.run(2, "odd", append([]string{c.how}, runArguments("results/"+c.how)...)...)
			if o.code == 0 || o.took > 40*time.Second || strings.TrimSpace(o.stdout) != "" || strings.Count(o.stderr, "benchpin: ") != 1 {
				t.Errorf("want one refusal: %v", o)
			}
			if c.how != "folder" && c.how != "results" && o.code != exitUsage {
				t.Errorf("want code %d: %v", exitUsage, o)
			}
			for _, want := range c.want {
				if !strings.Contains(o.stderr, want) {
					t.Errorf("want %q: %v", want, o)
				}
			}
		})
	}
	o := j.run(2, "odd", "folder", "data", "verify", "--data", "data", "--manifest", "m.json")
	if o.code != exitFailure || !strings.Contains(o.stderr, "benchpin: process 1 on ") || !strings.Contains(o.stderr, "the data set data cannot be seen") ||
		strings.Contains(o.stderr, "missing") || strings.Count(o.stderr, "benchpin: ") != 1 {
		t.Errorf("data verify where one process does not see the data: %v", o)
	}
}

// The credentials of a bucket have to reach every process: the one that has none is named, and so is what is missing.
func TestProcessesCredentials(t *testing.T) {
	j := newJobs(t)
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	objects := gofakes3.New(backend).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			http.Error(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`, http.StatusForbidden)
			return
		}
		objects.ServeHTTP(w, r)
	}))
	defer srv.Close()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": srv.URL, "AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "something-secret",
		"AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	if o := j.run(0, "benchpin", "data", "generate", "small.yaml", "--data", "s3://bucket/data", "--manifest", "m.json"); o.code != 0 {
		t.Fatal(o)
	}
	j.write("poor", `#!/bin/sh
[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ] && unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
exec ./benchpin "$@"
`)
	arguments := func(out string) []string {
		return []string{"run", "small.yaml", "--data", "s3://bucket/data", "--manifest", "m.json", "--checkpoints", "c-" + out, "--out", out}
	}
	if o := j.run(2, "benchpin", arguments("rich")...); o.code != 0 || strings.Contains(o.stdout+o.stderr, "\x1b") {
		t.Errorf("all processes have credentials, and what they print goes to no terminal: %q %v", o.stdout, o)
	}
	o := j.run(2, "poor", arguments("results")...)
	if o.code == 0 || !strings.Contains(o.stderr, "process 1 on ") || !strings.Contains(o.stderr, "AWS_ACCESS_KEY_ID") {
		t.Errorf("process 1 has no credentials: %v", o)
	}
}

// What several processes find out together ends with the code that one process ends with.
func TestProcessesCodes(t *testing.T) {
	t.Parallel() // most of it is waiting
	j := newJobs(t)
	j.generate()
	if o := j.run(2, "benchpin", runArguments("missed", "--set", "metric.au=0.9999")...); o.code != exitThreshold || !strings.Contains(o.stdout, `"status": "complete"`) {
		t.Errorf("a threshold that was missed: %v", o)
	}
	if o := j.run(2, "benchpin", "data", "pin", "--data", "data", "--manifest", "p.json"); o.code != exitUsage || strings.Count(o.stderr, "benchpin: ") != 1 {
		t.Errorf("a command of one process: %v", o)
	}
	files, err := filepath.Glob(j.path("data/train/*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[len(files)-1], b, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := j.run(3, "benchpin", runArguments("damaged")...); o.code != exitVerify || !strings.Contains(o.stderr, filepath.Base(files[len(files)-1])) {
		t.Errorf("a data set that was changed: %v", o)
	}
}

// A process that is killed in the middle of a run ends the job within seconds, and nothing that it leaves is a complete result.
func TestProcessKilled(t *testing.T) {
	rounds := 2
	if os.Getenv("BENCHPIN_LONG") != "" {
		rounds = 100
	}
	j := newJobs(t)
	j.generate()
	seed := rand.Uint64()
	t.Logf("seed %d, %d rounds", seed, rounds)
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range rounds {
		out := fmt.Sprint("killed-", round)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := j.command(ctx, 2, "benchpin", runArguments(out, "--set", "train.epochs=1000")...)
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ranks := j.ranks(cmd.Process.Pid, 2)
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		if err := syscall.Kill(ranks[rng.IntN(2)], syscall.SIGKILL); err != nil {
			t.Fatalf("round %d: %v:\n%s", round, err, output.String())
		}
		begin := time.Now()
		err := cmd.Wait()
		if took := time.Since(begin); err == nil || ctx.Err() != nil || took > 20*time.Second {
			t.Errorf("round %d: the job ended after %v with %v:\n%s", round, took, err, output.String())
		}
		if b, err := os.ReadFile(j.path(out + "/record.json")); err == nil {
			if rec, err := record.Parse(b); err != nil || rec.Status == record.StatusComplete {
				t.Errorf("round %d: a record that is %v: %v", round, rec.Status, err)
			}
		}
		cancel()
	}
}

// An interrupt at the launcher is told once at most, and what there is stands in the run folder, marked incomplete. What a launcher prints
// after it, and ends with, is its own affair: MPICH's ends with 0.
func TestProcessesInterrupted(t *testing.T) {
	t.Parallel() // most of it is waiting
	j := newJobs(t)
	j.generate()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := j.command(ctx, 2, "benchpin", runArguments("interrupted", "--set", "train.epochs=1000", "--set", "train.computation_time=0.05")...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j.ranks(cmd.Process.Pid, 2)
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if saved, _ := filepath.Glob(j.path("checkpoints-interrupted/*/*")); len(saved) > 0 {
			break
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	err := cmd.Wait()
	if took := time.Since(begin); ctx.Err() != nil || took > 20*time.Second {
		t.Errorf("the job ended after %v with %v:\n%s", took, err, output.String())
	}
	b, err := os.ReadFile(j.path("interrupted/record.json"))
	if err != nil {
		t.Fatalf("%v:\n%s", err, output.String())
	}
	if rec, err := record.Parse(b); err != nil || rec.Status != record.StatusIncomplete || strings.Count(output.String(), "benchpin: ") > 1 {
		t.Errorf("the record: %v; what was printed:\n%s", err, output.String())
	}
}

// ranks waits for the processes that a launcher has started in the folder, which are in none of its own groups with every launcher.
func (j *jobs) ranks(launcher, n int) (pids []int) {
	j.t.Helper()
	self, err := os.Executable()
	if err != nil {
		j.t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		pids = pids[:0]
		all, err := filepath.Glob("/proc/[0-9]*/exe")
		if err != nil {
			j.t.Fatal(err)
		}
		for _, exe := range all {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
			where, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
			if program, _ := os.Readlink(exe); program == self && where == j.dir && pid != os.Getpid() && pid != launcher {
				pids = append(pids, pid)
			}
		}
		if len(pids) == n {
			return pids
		}
	}
	j.t.Fatalf("%d of %d processes were started", len(pids), n)
	return nil
}
