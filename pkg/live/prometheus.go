package live

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Exporter hands the last sample to Prometheus. The counters are those of the run; nothing about the process or the host is added.
type Exporter struct {
	mu     sync.Mutex
	last   Sample
	first  *int64 // Counts.Device when the run began
	any    bool   // there was a sample
	descs  map[string]*prometheus.Desc
	handle http.Handler
}

// figures are the figures, and what they are.
func figures() []struct{ name, help, label string } {
	return []struct{ name, help, label string }{
		{"benchpin_run_info", "Names the run; always 1.", "run"},
		{"benchpin_run_ended", "1 when the timed part has ended, 0 before.", ""},
		{"benchpin_elapsed_seconds", "Time since the timed part began.", ""},
		{"benchpin_left_seconds", "Time that the rest takes at the overall rate.", ""},
		{"benchpin_accelerators", "Simulated accelerators of this process.", ""},
		{"benchpin_epoch", "The epoch that goes on.", ""},
		{"benchpin_epochs", "Epochs of the run.", ""},
		{"benchpin_step", "Steps done of the epoch; of a run of checkpoints alone, checkpoints.", ""},
		{"benchpin_steps", "Steps of an epoch.", ""},
		{"benchpin_samples_total", "Samples read, evaluation included.", ""},
		{"benchpin_samples_planned", "Samples that the run reads in all.", ""},
		{"benchpin_asked_bytes_total", "Bytes asked of the store; of a run of checkpoints alone, bytes written and read back.", ""},
		{"benchpin_planned_bytes", "Bytes that the run asks for in all.", ""},
		{"benchpin_device_bytes_total", "Bytes that this process read from block devices since the timed part began.", ""},
		{"benchpin_au_ratio", "Accelerator utilisation so far.", ""},
		{"benchpin_au_threshold_ratio", "Threshold of the accelerator utilisation.", ""},
		{"benchpin_accelerator_seconds_total", "Time of all accelerators, by what they did.", "phase"},
		{"benchpin_reader_seconds_total", "Time that readers worked on the batches of steps that ended, by what they did.", "work"},
	}
}

// NewExporter makes an exporter that has no sample yet.
func NewExporter() (*Exporter, error) {
	e := &Exporter{descs: map[string]*prometheus.Desc{}}
	for _, f := range figures() {
		var labels []string
		if f.label != "" {
			labels = []string{f.label}
		}
		e.descs[f.name] = prometheus.NewDesc(f.name, f.help, labels, nil)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(e); err != nil {
		return nil, err
	}
	e.handle = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return e, nil
}

// Show takes a sample.
func (e *Exporter) Show(s Sample) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.any || s.Elapsed < e.last.Elapsed {
		e.first = s.counts.Device
	}
	e.last, e.any = s, true
}

// ServeHTTP answers a scrape.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.handle.ServeHTTP(w, r) }

// Describe implements prometheus.Collector.
func (e *Exporter) Describe(to chan<- *prometheus.Desc) {
	for _, d := range e.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector. Before the timed part begins there is nothing.
func (e *Exporter) Collect(to chan<- prometheus.Metric) {
	e.mu.Lock()
	s, first, shown := e.last, e.first, e.any
	e.mu.Unlock()
	if !shown {
		return
	}
	send := func(kind prometheus.ValueType, name string, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(e.descs[name], kind, v, labels...)
	}
	gauge := func(name string, v float64) { send(prometheus.GaugeValue, name, v) }
	counter := func(name string, v float64) { send(prometheus.CounterValue, name, v) }
	c := &s.counts
	send(prometheus.GaugeValue, "benchpin_run_info", 1, s.Run)
	ended := 0.0
	if s.Last {
		ended = 1
	}
	gauge("benchpin_run_ended", ended)
	gauge("benchpin_elapsed_seconds", s.Elapsed)
	gauge("benchpin_accelerators", float64(c.Accelerators))
	gauge("benchpin_epoch", float64(s.Epoch))
	gauge("benchpin_epochs", float64(s.Epochs))
	gauge("benchpin_step", float64(s.Step))
	gauge("benchpin_steps", float64(s.Steps))
	counter("benchpin_samples_total", float64(s.Samples))
	gauge("benchpin_samples_planned", float64(s.SamplesTotal))
	counter("benchpin_asked_bytes_total", float64(s.Bytes))
	gauge("benchpin_planned_bytes", float64(s.BytesTotal))
	if c.Device != nil && first != nil {
		counter("benchpin_device_bytes_total", float64(*c.Device-*first))
	}
	if s.Left != nil {
		gauge("benchpin_left_seconds", *s.Left)
	}
	if s.AU != nil {
		gauge("benchpin_au_ratio", *s.AU/100)
	}
	if s.Threshold != nil {
		gauge("benchpin_au_threshold_ratio", *s.Threshold/100)
	}
	for p := range Phases {
		send(prometheus.CounterValue, "benchpin_accelerator_seconds_total", c.Spent[p].Seconds(), p.String())
	}
	for w := range Works {
		send(prometheus.CounterValue, "benchpin_reader_seconds_total", c.Worked[w].Seconds(), w.String())
	}
}
