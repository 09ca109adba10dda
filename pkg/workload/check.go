package workload

import (
	"fmt"
	"strings"
)

// finish derives the keys that follow from others.
func finish(w *Workload) {
	r := &w.Reader
	if r.DataLoader == "" {
		r.DataLoader = w.Framework
	}
	if r.DataLoaderSampler == "" {
		switch r.DataLoader {
		case "tensorflow":
			r.DataLoaderSampler = "iterative"
		case "pytorch", "dali":
			r.DataLoaderSampler = "index"
		default:
			r.DataLoaderSampler = "none"
		}
	}
	w.Dataset.DataFolder = trimSlash(w.Dataset.DataFolder)
	w.Checkpoint.CheckpointFolder = trimSlash(w.Checkpoint.CheckpointFolder)
}

// trimSlash drops the slashes at the end of a folder's name, as DLIO does, but not the root itself.
func trimSlash(folder string) string {
	if trimmed := strings.TrimRight(folder, "/"); trimmed != "" {
		return trimmed
	}
	return folder
}

// check finds keys that contradict each other: what DLIO refuses whatever the number of ranks is. What depends on the
// ranks, on the data or on what can run here is the plan's to refuse.
func (d *decoder) check(w *Workload) {
	given := func(path string) bool { _, ok := d.given[path]; return ok }
	refuse := func(path, msg, hint string) {
		d.errs = append(d.errs, &Error{Position: d.given[path], Path: path, Msg: msg, Hint: hint})
	}
	s, m, r, c := &w.Dataset, &w.Model, &w.Reader, &w.Checkpoint
	if tellsMore(w.Storage.StorageOptions.EndpointURL) {
		refuse(optionsPath+".endpoint_url", "an address with a user, a password or a query in it", "give credentials as access_key_id and secret_access_key, or in "+
			"the environment")
	}
	if len(s.RecordDims) > 0 && s.RecordLengthBytesStdev > 0 {
		refuse("dataset.record_length_bytes_stdev", "a spread has no meaning with record_dims", "remove one of the two")
	}
	if len(s.RecordDims) > 0 && s.RecordDims[0]%s.HDF5.NumDsetPerRecord != 0 {
		refuse("dataset.hdf5.num_dset_per_record",
			fmt.Sprintf("%d does not divide the first of record_dims, %d", s.HDF5.NumDsetPerRecord, s.RecordDims[0]), "")
	}
	if image := s.Format == "jpeg" || s.Format == "png"; image && s.RecordElementType != "uint8" {
		refuse("dataset.record_element_type", fmt.Sprintf("%q, but %s images have uint8", clip(s.RecordElementType), s.Format), "")
	} else if image && len(s.RecordDims) > 2 {
		refuse("dataset.record_dims", fmt.Sprintf("%d dimensions, but %s images have at most 2", len(s.RecordDims), s.Format), "")
	}
	if (r.DataLoader == "tensorflow" || r.DataLoader == "pytorch") && r.DataLoader != w.Framework {
		refuse("reader.data_loader", fmt.Sprintf("%s does not go with the framework %s", r.DataLoader, w.Framework),
			"write framework: "+r.DataLoader)
	}
	if r.DataLoader == "custom" && !given("reader.data_loader_sampler") {
		refuse("reader.data_loader", "a custom loader needs data_loader_sampler", "write data_loader_sampler: index or iterative")
	}
	if m.NumLayers > 0 && m.NumLayers < m.Parallelism.Pipeline {
		refuse("model.parallelism.pipeline", fmt.Sprintf("%d stages for %d layers", m.Parallelism.Pipeline, m.NumLayers), "")
	}
	if m.Parallelism.Pipeline > 1 && m.Parallelism.ZeroStage == 3 {
		refuse("model.parallelism.zero_stage", "ZeRO 3 does not go with pipeline parallelism", "")
	}
	if _, err := ParseShare(w.Benchpin.VerifySample); err != nil {
		refuse("benchpin.verify_sample", err.Error(), "write 5% or a number of files such as 100")
	}
	if c.NumCheckpointsWrite > 0 && c.NumCheckpointsRead > c.NumCheckpointsWrite {
		refuse("checkpoint.num_checkpoints_read",
			fmt.Sprintf("%d are to be read, but only %d written", c.NumCheckpointsRead, c.NumCheckpointsWrite), "")
	}
	if c.KSM.Enabled && c.RandomizeTensor {
		refuse("checkpoint.ksm.enabled", "has nothing to merge in random tensors", "write randomize_tensor: false")
	}
}
