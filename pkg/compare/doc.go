// Package compare says how runs differ: whether two were the same thing at all, what each figure comes to in both, and whether a difference
// is more than the noise of their step times.
//
// # The interval of a ratio
//
// A figure that follows from step times is a ratio of two sums over the steps of the window (AU: compute by window time; samples/s: samples
// by wall time; a mean: time by steps). The sums are those of package bench/stats: a step's part of the window time is the time from the
// end of the step before it, in the same block, to its own end, and in a block's first step the time from its start. So the parts add up to
// what the record has, and nothing that happened between two steps is lost.
//
// Steps of one run hang together: a batch that was prefetched behind a slow one is there at once, the ranks of a step wait for each other. So
// single steps are not drawn. All ranks of a step stay together, and the steps of a block (the stretch between two checkpoints) are cut
// into chunks of consecutive steps, of about the third root of the number of steps in an epoch's window, that never cross the end of a
// block. Chunks are drawn with replacement, as many as there are (the block bootstrap with blocks that do not overlap; E. Carlstein:
// The use of subseries values for estimating the variance of a general statistic from a stationary sequence. Annals of Statistics 14,
// 1986, 1171-1179; the length: P. Hall, J. Horowitz, B.-Y. Jing: On blocking rules for the bootstrap with dependent data. Biometrika 82,
// 1995, 561-574). Each epoch is drawn from by itself, because a first epoch on a cold cache is not noise; where an epoch has fewer than four
// chunks, all epochs are drawn from together, and their differences count as noise.
//
// Two runs that have the same chunks are drawn together, the same chunks of both: their steps read the same samples and compute for the same
// prescribed times, and what comes from that is no difference between the runs (a paired bootstrap; valid too where the pairs have nothing
// in common). Others are drawn each by itself.
//
// The interval is that of the percentiles of log(ratio), widened around its value for what a bootstrap of few chunks does not see: by
// sqrt(K/(K-E)), K chunks in E epochs, and by Student's t with K-E degrees of freedom over the normal quantile (after the expanded
// percentile interval of T. Hesterberg: What teachers should know about the bootstrap. The American Statistician 69, 2015, 371-386,
// section 5). For two runs drawn apart, K and E are those of the run that has fewer degrees of freedom. The generator is PCG with a
// fixed seed: the same files give the same interval.
//
// Percentiles, which records have over all steps, those outside of the window too, are drawn in the same way, with each row as often as its
// chunk; there must be 10 rows beyond the percentile in each run.
//
// Of each figure by itself, the interval of 95 % misses 1 in about 5 of 100 pairs of runs that differ in nothing; tests hold it to that. It knows the noise within a run alone. What stays the same during a run and is another in the next (where files lie on the
// device, a neighbour, the temperature) is not in it: only repeated runs show that, and Summarise is for them.
//
// The package never runs, verifies or judges anything: records and step times are believed.
package compare
