package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loadReady loads a workload that comes with benchpin.
func loadReady(t *testing.T, name string) *Resolved {
	t.Helper()
	src, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(src, Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReadyWorkloadsHaveSmallVersions: each but the tour, the one for data as they are, and those of object stores has one, with the same names of everything, that
// moves little and takes little time.
func TestReadyWorkloadsHaveSmallVersions(t *testing.T) {
	names, err := List()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, name := range names {
		have[name] = true
	}
	for _, name := range names {
		full, isMini := strings.CutSuffix(name, "-mini")
		if name != "quickstart" && name != "pinned" && !strings.HasSuffix(name, "_s3") && !have[full+"-mini"] {
			t.Errorf("%s has no small version", name)
		}
		if !isMini {
			continue
		}
		m, w := loadReady(t, name).Workload, loadReady(t, full).Workload
		if m.Model.Name != w.Model.Name || m.Framework != w.Framework || m.Dataset.Format != w.Dataset.Format ||
			m.Reader.DataLoader != w.Reader.DataLoader || m.Workflow != w.Workflow || m.Reader.FileShuffle != w.Reader.FileShuffle ||
			m.Model.Parallelism.ZeroStage != w.Model.Parallelism.ZeroStage || len(m.Dataset.Parquet.Columns) != len(w.Dataset.Parquet.Columns) {
			t.Errorf("%s is of another shape than %s", name, full)
		}
		samples := float64((m.Dataset.NumFilesTrain + m.Dataset.NumFilesEval) * m.Dataset.NumSamplesPerFile)
		if volume := samples * m.Dataset.RecordLengthBytes; volume > 32e6 {
			t.Errorf("%s has %.0f MB of data", name, volume/1e6)
		}
		steps := samples / float64(m.Reader.BatchSize*m.Benchpin.Accelerators)
		if limit := m.Train.TotalTrainingSteps; limit > 0 {
			steps = min(steps, float64(limit))
		}
		if seconds := steps * float64(m.Train.Epochs) * m.Train.ComputationTime.Mean(); m.Workflow.Train && (seconds < 0.1 || seconds > 3) {
			t.Errorf("%s computes %.1f s", name, seconds)
		}
		if m.Dataset.DataFolder == w.Dataset.DataFolder && w.Workflow.Train || m.Checkpoint.CheckpointFolder == w.Checkpoint.CheckpointFolder && w.Workflow.Checkpoint {
			t.Errorf("%s uses the folders of %s", name, full)
		}
	}
}

// TestReadyWorkloadsEqualThePeers: what has a name of DLIO's or MLPerf Storage's is their workload, key by key, where their files are at
// hand; but for the folder of the data where one name stands for several, for the number of accelerators, and for what cannot work
// as published.
func TestReadyWorkloadsEqualThePeers(t *testing.T) {
	folder := peerFolder(t)
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := Load(Source{Name: file, Data: data}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ours := loadReady(t, name).Workload
		theirs := peer.Workload
		theirs.Benchpin = ours.Benchpin
		theirs.Storage.StorageOptions.AccessKeyID, theirs.Storage.StorageOptions.SecretAccessKey = "", ""
		switch {
		case name == "llama_1t": // asks for training without data, under another model's name
			theirs.Model.Name, theirs.Workflow = "llama_1t", ours.Workflow
		case strings.HasPrefix(name, "unet3d") && strings.HasSuffix(name, "_s3"):
			theirs.Checkpoint = ours.Checkpoint // settings of checkpoints that are switched off
		}
		if a, b := string(canonical(ours)), string(canonical(theirs)); a != b {
			at := 0
			for at < len(a) && at < len(b) && a[at] == b[at] {
				at++
			}
			t.Errorf("%s: ours has %s, theirs %s", file, around([]byte(a), max(0, at-60)), around([]byte(b), max(0, at-60)))
		}
	}
}

// TestReadyWorkloadsOfV3 holds the numbers of MLPerf Storage v3.0 that its own files differ in.
func TestReadyWorkloadsOfV3(t *testing.T) {
	for _, c := range []struct {
		name                       string
		files, samples, batch      int
		record, compute, threshold float64
		epochs, threads            int
		format                     string
	}{
		{"unet3d_b200", 7200, 1, 7, 146600628, 0.162, 0.90, 5, 4, "npz"},
		{"unet3d_h100_v3", 168, 1, 7, 146600628, 0.323, 0.90, 5, 4, "npz"},
		{"retinanet_b200", 1170301, 1, 24, 322957, 0.04755, 0.85, 8, 8, "jpeg"},
		{"retinanet_mi355", 1170301, 1, 32, 322957, 0.0634, 0.85, 8, 8, "jpeg"},
		{"dlrm_b200", 1024, 4718592, 16384, 761, 0.000375, 0.70, 1, 4, "parquet"},
		{"dlrm_mi355", 1024, 4718592, 16384, 761, 0.0005625, 0.70, 1, 4, "parquet"},
		{"flux_b200", 4296, 288, 48, 2164832, 1.35, 0.90, 1, 8, "parquet"},
		{"flux_mi355", 4296, 288, 72, 2164832, 2.025, 0.90, 1, 8, "parquet"},
	} {
		w := loadReady(t, c.name).Workload
		d, r := &w.Dataset, &w.Reader
		if d.NumFilesTrain != c.files || d.NumSamplesPerFile != c.samples || r.BatchSize != c.batch || d.RecordLengthBytes != c.record ||
			w.Train.ComputationTime.Mean() != c.compute || w.Metric.AU != c.threshold || w.Train.Epochs != c.epochs ||
			r.ReadThreads != c.threads || d.Format != c.format || w.Workflow.Checkpoint {
			t.Errorf("%s: %+v %+v", c.name, d, r)
		}
		if d.Format == "parquet" {
			var row, read int
			for _, column := range d.Parquet.Columns {
				bytes := map[string]int{"float16": 2, "float32": 4, "float64": 8, "int8": 1}[column.DType] * column.Size
				if row += bytes; column.Read {
					read += bytes
				}
			}
			if wantRead := map[string]int{"dlrm": 160, "flux": 2164832}[w.Model.Name]; float64(row) != c.record || read != wantRead {
				t.Errorf("%s: a row has %d bytes, %d of them read; expected %v and %d", c.name, row, read, c.record, wantRead)
			}
		}
	}
}
