package workload

// MaxAccelerators is the largest number of accelerators of a workload.
const MaxAccelerators = 1 << 16

// keys is the key table, bound to the fields of w: the one place that knows every key, its type, default, range and
// meaning. Loading, the canonical form, the schema and the documentation are all derived from it.
func keys(w *Workload) []key {
	var all []key
	all = append(all, modelKeys(&w.Model)...)
	all = append(all, word("framework", &w.Framework, "tensorflow", "tensorflow", "pytorch").
		about("framework that is emulated; chooses the data loader and the checkpoint writer where they are not given"))
	all = append(all, workflowKeys(&w.Workflow)...)
	all = append(all, datasetKeys(&w.Dataset)...)
	all = append(all, readerKeys(&w.Reader)...)
	all = append(all, trainKeys(w)...)
	all = append(all, checkpointKeys(&w.Checkpoint)...)
	all = append(all, storageKeys(w)...)
	all = append(all, benchpinKeys(&w.Benchpin)...)
	return all
}

func modelKeys(m *Model) []key {
	p, t := &m.Parallelism, &m.Transformer
	types := []string{"int8", "uint8", "fp16", "bf16", "fp32", "fp64"}
	return []key{
		text("model.name", &m.Name, "default").about("label of the workload; `model: TEXT` sets it too"),
		text("model.type", &m.Type, "").about("`transformer` is the only value with a meaning to checkpoints"),
		whole("model.model_size_bytes", &m.ModelSizeBytes, 10240).from(0).
			about("bytes of model state in a checkpoint, written by each rank that writes; not used for a transformer"),
		list("model.optimization_groups", &m.OptimizationGroups).from(0).
			about("elements of predefined optimizer tensors"),
		whole("model.num_layers", &m.NumLayers, -1).from(-1).
			about("transformer blocks; more than 0 turns on the transformer's checkpoint model"),
		list("model.layer_parameters", &m.LayerParameters).from(0).about("elements of predefined tensors of a layer"),
		word("model.model_datatype", &m.ModelDatatype, "fp16", types...).about("element type of layer tensors"),
		word("model.optimizer_datatype", &m.OptimizerDatatype, "fp32", types...).
			about("element type of optimizer tensors"),
		whole("model.parallelism.tensor", &p.Tensor, 1).from(1).about("tensor parallelism"),
		whole("model.parallelism.pipeline", &p.Pipeline, 1).from(1).about("pipeline parallelism"),
		whole("model.parallelism.data", &p.Data, -1).from(-1).about("data parallelism; -1: ranks / (tensor x pipeline)"),
		whole("model.parallelism.zero_stage", &p.ZeroStage, 0).from(0).to(3).
			about("ZeRO stage: how optimizer and model state are sharded"),
		whole("model.transformer.vocab_size", &t.VocabSize, 32000).from(1).about("vocabulary"),
		whole("model.transformer.hidden_size", &t.HiddenSize, 2048).from(1).about("hidden size"),
		whole("model.transformer.ffn_hidden_size", &t.FFNHiddenSize, 8192).from(1).
			about("hidden size of the feed-forward network"),
		whole("model.transformer.num_attention_heads", &t.NumAttentionHeads, 32).from(1).about("attention heads"),
		whole("model.transformer.num_kv_heads", &t.NumKVHeads, 8).from(1).about("key-value heads"),
	}
}

func workflowKeys(f *Workflow) []key {
	return []key{
		boolean("workflow.generate_data", &f.GenerateData, false).about("generate the data set first"),
		boolean("workflow.train", &f.Train, true).about("run the epochs"),
		boolean("workflow.evaluation", &f.Evaluation, false).about("evaluate inside the epoch loop"),
		boolean("workflow.checkpoint", &f.Checkpoint, false).
			about("write checkpoints; without `train`: checkpoints alone"),
		boolean("workflow.profiling", &f.Profiling, false).about("start the profiler"),
		text("workflow.query", &f.Query, "").about("for `dlio_benchmark_query` only"),
	}
}

func datasetKeys(d *Dataset) []key {
	h, p := &d.HDF5, &d.Parquet
	return []key{
		decimal("dataset.record_length_bytes", &d.RecordLengthBytes, 65536).from(1).
			about("bytes of one sample; a square image of side int(sqrt(length)) where `record_dims` is empty"),
		decimal("dataset.record_length_bytes_stdev", &d.RecordLengthBytesStdev, 0).from(0).
			about("spread of the sample's bytes from file to file"),
		whole("dataset.record_length_bytes_resize", &d.RecordLengthBytesResize, 0).from(0).
			about("bytes of the sample in memory that is handed to batches; 0: as it was read"),
		whole("dataset.num_files_train", &d.NumFilesTrain, 8).from(0).about("files to train on; a run reads at most 4294967296 samples of them; 0: all of a data set that was pinned as it is"),
		whole("dataset.num_files_eval", &d.NumFilesEval, 0).from(0).about("files to evaluate on"),
		whole("dataset.num_samples_per_file", &d.NumSamplesPerFile, 1).from(1).about("samples in a file"),
		text("dataset.data_folder", &d.DataFolder, "./data").
			about("folder of the data set; a slash at the end is dropped"),
		whole("dataset.num_subfolders_train", &d.NumSubfoldersTrain, 0).from(0).
			about("subfolders of `train`; 0 or 1: none"),
		whole("dataset.num_subfolders_eval", &d.NumSubfoldersEval, 0).from(0).
			about("subfolders of `valid`; 0 or 1: none"),
		text("dataset.file_prefix", &d.FilePrefix, "img").about("first part of a file's name"),
		word("dataset.format", &d.Format, "tfrecord", "tfrecord", "hdf5", "csv", "npz", "npy", "hdf5_opt", "jpeg", "png", "indexed_binary",
			"mmap_indexed_binary", "synthetic", "parquet", "raw").about("container of the samples; raw: a file of whatever content is one sample"),
		word("dataset.compression", &d.Compression, "none", "none", "gzip", "lzf", "bz2", "zip", "xz", "snappy", "lz4", "zstd").
			about("compression inside the container"),
		whole("dataset.compression_level", &d.CompressionLevel, 4).from(0).to(9).about("level of gzip"),
		boolean("dataset.enable_chunking", &d.EnableChunking, false).about("chunks in hdf5 (DLIO v2.0)"),
		whole("dataset.chunk_size", &d.ChunkSize, 0).from(0).about("bytes of a chunk (DLIO v2.0)"),
		whole("dataset.generation_buffer_size", &d.GenerationBufferSize, 2147483648).from(1).
			about("bytes that an indexed_binary writer buffers at most"),
		boolean("dataset.keep_files", &d.KeepFiles, true).about("keep the data set; false: `pipeline` removes it at the end, when its archive was verified"),
		list("dataset.record_dims", &d.RecordDims).from(1).about("shape of one sample; replaces the square image"),
		text("dataset.record_element_type", &d.RecordElementType, "uint8").about("numpy's name of the element type"),
		whole("dataset.record_element_bytes", &d.RecordElementBytes, 4).from(1).
			about("replaced by the size of the element type"),
		list("dataset.hdf5.chunk_dims", &h.ChunkDims).from(1).about("chunk shape"),
		whole("dataset.hdf5.num_dset_per_record", &h.NumDsetPerRecord, 1).from(1).
			about("data sets that a record is split into"),
		list("dataset.hdf5.max_shape", &h.MaxShape).from(1).about("largest shape of a record"),
		word("dataset.jpeg.sizing", &d.JPEG.Sizing, SizingExact, SizingExact, SizingEncoded).later().
			about("size of a jpeg or png file: exactly the record length, or what encoding the record's pixels gives (as DLIO)"),
		columns("dataset.parquet.columns", &p.Columns).
			about("columns, each `{name, dtype, size, read}`: size (1) is the elements in a row, `read: false` is generated and never read"),
		whole("dataset.parquet.row_group_size", &p.RowGroupSize, 1024).from(1).about("rows of a row group"),
		text("dataset.parquet.read_mode", &p.ReadMode, "row_group").about("what one read fetches"),
		text("dataset.parquet.partition_by", &p.PartitionBy, "").about("column to partition by; refused"),
		whole("dataset.parquet.generation_batch_size", &p.GenerationBatchSize, 0).from(0).
			about("rows generated at a time; 0: chosen"),
		boolean("dataset.parquet.use_s3dlio_gen", &p.UseS3dlioGen, false).
			about("generator of the fork; changes nothing here"),
		word("dataset.data_gen_method", &d.DataGenMethod, "dgen", "dgen", "numpy").
			about("generator of the fork; changes nothing here"),
		boolean("dataset.skip_listing", &d.SkipListing, false).about("make up file names instead of listing"),
		whole("dataset.listing_validation_interval", &d.ListingValidationInterval, 1000).from(1).
			about("every n-th name is looked up where listing is skipped"),
		whole("dataset.num_files_generated", &d.NumFilesGenerated, 0).from(0).
			about("training files that are generated where fewer are used; 0: as many as are used"),
	}
}

func readerKeys(r *Reader) []key {
	return []key{
		word("reader.data_loader", &r.DataLoader, "", "tensorflow", "pytorch", "dali", "native_dali", "custom", "none", "synthetic").
			derived("the framework").about("data loader that is emulated"),
		text("reader.data_loader_classname", &r.DataLoaderClassname, "").
			about("Python class of a custom loader; recognised, cannot run here"),
		word("reader.data_loader_sampler", &r.DataLoaderSampler, "", "iterative", "index", "none").
			derived("tensorflow: iterative; pytorch, dali: index; others: none").about("how samples are dealt to ranks"),
		text("reader.reader_classname", &r.ReaderClassname, "").
			about("Python class of a custom reader; recognised, cannot run here"),
		word("reader.multiprocessing_context", &r.MultiprocessingContext, "fork", "fork", "spawn", "forkserver").
			about("how worker processes start; changes nothing here"),
		whole("reader.batch_size", &r.BatchSize, 1).from(1).about("samples of one accelerator in one step"),
		whole("reader.batch_size_eval", &r.BatchSizeEval, 1).from(1).about("the same while evaluating"),
		whole("reader.read_threads", &r.ReadThreads, 1).from(0).
			about("workers of one accelerator; 0: the accelerator reads itself"),
		whole("reader.computation_threads", &r.ComputationThreads, 1).from(0).about("parallel decoding of tfrecord"),
		whole("reader.write_threads", &r.WriteThreads, 0).from(0).
			about("parallel writers while generating (fork); 0: chosen"),
		whole("reader.prefetch_size", &r.PrefetchSize, 2).from(0).
			about("batches read ahead by one accelerator; pytorch: 0 is 2 for each worker"),
		whole("reader.shuffle_size", &r.ShuffleSize, 1024).from(0).
			about("shuffle buffer of tensorflow, initial fill of DALI"),
		word("reader.file_shuffle", &r.FileShuffle, ShuffleOff, ShuffleOff, ShuffleSeed, ShuffleRandom).
			about("shuffle the files each epoch"),
		word("reader.sample_shuffle", &r.SampleShuffle, ShuffleOff, ShuffleOff, ShuffleSeed, ShuffleRandom).
			about("shuffle the samples each epoch"),
		word("reader.read_type", &r.ReadType, "on_demand", "on_demand", "memory").about("when a sample is read"),
		word("reader.file_access", &r.FileAccess, "multi", "multi", "shared", "collective", "mpio", "posix").
			about("changes nothing, in DLIO too"),
		whole("reader.transfer_size", &r.TransferSize, 0).from(0).
			about("buffer of a tfrecord reader in bytes; 0: its own"),
		boolean("reader.odirect", &r.ODirect, false).about("read npy and npz with O_DIRECT"),
		boolean("reader.dont_use_mmap", &r.DontUseMmap, false).about("for native DALI readers"),
		boolean("reader.pin_memory", &r.PinMemory, true).about("changes nothing here"),
		duration("reader.preprocess_time", &r.PreprocessTime).about("seconds slept by a worker for each sample"),
		list("reader.transformed_record_dims", &r.TransformedRecordDims).from(1).
			about("shape of the sample in memory that is handed to batches"),
		text("reader.transformed_record_element_type", &r.TransformedRecordElementType, "uint8").
			about("its element type"),
	}
}

func trainKeys(w *Workload) []key {
	t, e := &w.Train, &w.Evaluation
	return []key{
		whole("train.epochs", &t.Epochs, 1).from(1).about("epochs"),
		whole("train.total_training_steps", &t.TotalTrainingSteps, -1).from(-1).
			about("most steps of each epoch; -1: all"),
		duration("train.computation_time", &t.ComputationTime).about("seconds that an accelerator computes in each step"),
		whole("train.seed", &t.Seed, 123).from(0).to(1<<32 - 1).about("seed of the order of samples and of drawn times"),
		boolean("train.seed_change_epoch", &t.SeedChangeEpoch, true).about("use seed + epoch"),
		duration("evaluation.eval_time", &e.EvalTime).
			about("seconds that an accelerator computes in each step of an evaluation"),
		whole("evaluation.eval_after_epoch", &e.EvalAfterEpoch, 1).from(1).about("first epoch with an evaluation"),
		whole("evaluation.epochs_between_evals", &e.EpochsBetweenEvals, 1).from(1).
			about("epochs from one evaluation to the next"),
		decimal("metric.au", &w.Metric.AU, 0.90).from(0).to(1).about("least accelerator utilisation, as a fraction of 1"),
	}
}

func checkpointKeys(c *Checkpoint) []key {
	k := &c.KSM
	return []key{
		text("checkpoint.checkpoint_folder", &c.CheckpointFolder, "./checkpoints").
			about("folder of the checkpoints; a slash at the end is dropped"),
		whole("checkpoint.checkpoint_after_epoch", &c.CheckpointAfterEpoch, 1).from(1).
			about("first epoch that ends with a checkpoint"),
		whole("checkpoint.epochs_between_checkpoints", &c.EpochsBetweenCheckpoints, 1).from(1).
			about("epochs from one checkpoint to the next"),
		whole("checkpoint.steps_between_checkpoints", &c.StepsBetweenCheckpoints, -1).from(-1).
			about("steps from one checkpoint to the next; -1: checkpoints at the end of epochs; 0: never"),
		word("checkpoint.type", &c.Type, "rank_zero", "rank_zero", "all_ranks").about("changes nothing, in DLIO too"),
		word("checkpoint.mode", &c.Mode, "default", "default", "subset").about("`subset`: some ranks of a larger model"),
		text("checkpoint.checkpoint_mechanism_classname", &c.CheckpointMechanismClassname, "").
			about("Python class of a custom writer; recognised, cannot run here"),
		boolean("checkpoint.fsync", &c.Fsync, false).about("flush each file to stable storage"),
		decimal("checkpoint.time_between_checkpoints", &c.TimeBetweenCheckpoints, 0).to(MaxSeconds).
			about("seconds of pause where checkpoints run alone; a negative number, DLIO's default, is 0"),
		whole("checkpoint.num_checkpoints_write", &c.NumCheckpointsWrite, -1).from(-1).
			about("checkpoints written where they run alone; none below 1"),
		whole("checkpoint.num_checkpoints_read", &c.NumCheckpointsRead, -1).from(-1).
			about("checkpoints read where they run alone; none below 1"),
		boolean("checkpoint.recovery_rank_shift", &c.RecoveryRankShift, false).about("read what the next node wrote"),
		boolean("checkpoint.rank_sync", &c.RankSync, false).about("barrier inside the timed part of a checkpoint"),
		boolean("checkpoint.randomize_tensor", &c.RandomizeTensor, true).about("false: all ones"),
		boolean("checkpoint.ksm.enabled", &k.Enabled, false).derived("true where the section `ksm` is given").
			about("merge equal pages of memory (KSM)"),
		whole("checkpoint.ksm.madv_mergeable_id", &k.MadvMergeableID, 12).from(0).about("code of madvise"),
		decimal("checkpoint.ksm.high_ram_trigger", &k.HighRAMTrigger, 30).from(0).to(100).
			about("percent of memory used at which waiting starts"),
		decimal("checkpoint.ksm.low_ram_exit", &k.LowRAMExit, 15).from(0).to(100).
			about("percent of memory used at which waiting ends"),
		decimal("checkpoint.ksm.await_time", &k.AwaitTime, 200).from(0).to(MaxSeconds).about("most seconds of waiting for a tensor"),
	}
}

func storageKeys(w *Workload) []key {
	o, s, so, p := &w.Output, &w.Storage, &w.Storage.StorageOptions, &w.Profiling
	return []key{
		text("output.folder", &o.Folder, "").about("DLIO's folder of results; `--out` says it here"),
		text("output.log_file", &o.LogFile, "dlio.log").about("name of the log"),
		whole("output.metric.exclude_start_steps", &o.Metric.ExcludeStartSteps, 1).from(0).
			about("first steps that do not count for AU"),
		whole("output.metric.exclude_end_steps", &o.Metric.ExcludeEndSteps, 0).from(0).
			about("last steps that do not count for AU"),
		word("storage.storage_type", &s.StorageType, "local_fs", "local_fs", "parallel_fs", "s3", "aistore", "direct_fs").
			about("where files live"),
		text("storage.storage_root", &s.StorageRoot, "./").
			about("put before `data_folder`; the bucket of an object store"),
		text("storage.storage_library", &s.StorageLibrary, "").about("object client of the fork; recognised"),
		decimal("storage.post_generation_settle_seconds", &s.PostGenerationSettleSeconds, 0).from(0).to(MaxSeconds).
			about("wait after generating (fork)"),
		text("storage.storage_options.endpoint_url", &so.EndpointURL, "").about("address of the object store; several, separated by commas, are dealt to accelerators"),
		text("storage.storage_options.region", &so.Region, "us-east-1").about("region"),
		text("storage.storage_options.access_key_id", &so.AccessKeyID, "").hidden().
			about("credential; never part of the canonical form"),
		text("storage.storage_options.secret_access_key", &so.SecretAccessKey, "").hidden().
			about("credential; never part of the canonical form"),
		boolean("storage.storage_options.s3_force_path_style", &so.S3ForcePathStyle, false).orText().
			about("bucket in the path of the address; a boolean, or the text that DLIO asks for"),
		whole("storage.storage_options.s3_max_attempts", &so.S3MaxAttempts, 5).from(1).about("attempts of a request"),
		text("storage.storage_options.storage_library", &so.StorageLibrary, "").
			about("object client of the fork; recognised"),
		text("storage.storage_options.uri_scheme", &so.URIScheme, "").about("`s3`, or nothing"),
		whole("storage.storage_options.prefetch_window", &so.PrefetchWindow, 0).from(0).
			about("parts of an object that are fetched or held ahead; 0 is twice `prefetch_workers`"),
		whole("storage.storage_options.prefetch_workers", &so.PrefetchWorkers, 0).from(0).
			about("requests that bring one object at once; below 2 an object is one answer"),
		boolean("storage.storage_options.simulate_io", &so.SimulateIO, false).
			about("object client of the fork; recognised"),
		word("profiling.profiler", &p.Profiler, "iostat", "none", "iostat", "darshan", "tensorboard").
			about("profiler of DLIO; recognised, none runs here"),
		texts("profiling.iostat_devices", &p.IostatDevices).about("devices to watch, a list or one name"),
	}
}

func benchpinKeys(b *Benchpin) []key {
	return []key{
		seed("benchpin.seed", &b.Seed, 1).about("seed of the data set"),
		word("benchpin.verify", &b.Verify, VerifyBefore, VerifyBefore, VerifyInline, VerifyAfter, VerifySample, VerifyNone).
			about("when the data set is compared with its manifest; the default policy refuses a result with `none`"),
		text("benchpin.verify_sample", &b.VerifySample, DefaultSample).later().
			about("how many files `benchpin.verify: sample` hashes: a number, or a percentage such as `5%`"),
		whole("benchpin.accelerators", &b.Accelerators, 1).from(1).to(MaxAccelerators).
			about("simulated accelerators, DLIO's MPI ranks"),
		whole("benchpin.accelerators_per_process", &b.AcceleratorsPerProcess, 0).from(0).to(MaxAccelerators).
			about("accelerators of each process, where several carry a run together; 0: dealt out evenly"),
		word("benchpin.cold_cache", &b.ColdCache, ColdEpoch, ColdNone, ColdStart, ColdEpoch, ColdAll).
			about("drop the data set's pages from the page cache: never, before the first epoch, before each epoch; all: all pages of the machine before each epoch"),
		word("benchpin.order", &b.Order, OrderNumpy, OrderNumpy, OrderDLIO).
			about("order of samples: shuffled as DLIO means to, or as DLIO really reads"),
		decimal("benchpin.thresholds.samples_per_second", &b.Thresholds.SamplesPerSecond, 0).from(0).
			about("least samples/s of all accelerators; 0: none asked"),
		decimal("benchpin.thresholds.bytes_per_second", &b.Thresholds.BytesPerSecond, 0).from(0).
			about("least bytes/s of all accelerators; 0: none asked"),
	}
}
