package report

import (
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
)

// epochWaits shows what the wait for data of each epoch consisted of, and how it was spread over steps and accelerators.
func (p *page) epochWaits(epochs []record.EpochMetrics) {
	var rows [][]string
	for i := range epochs {
		w := epochs[i].Waits
		if w == nil || len(epochs) > maxRows && i >= maxRows/2 && i < len(epochs)-maxRows/2 {
			continue
		}
		s, a := &w.Steps, &w.Accelerators
		share := func(of record.Spread) string {
			if s.Load.Total == 0 {
				return "-"
			}
			return fmt.Sprintf("%.1f", 100*of.Total/s.Load.Total)
		}
		rows = append(rows, []string{strconv.Itoa(epochs[i].Epoch), secondsText(s.Load.Total), share(s.Queue), share(s.Open), share(s.Read),
			share(s.Decode), share(s.Other), secondsText(s.Load.P50), secondsText(s.Load.P99), secondsText(s.Load.Max), secondsText(a.Load.P50),
			secondsText(a.Load.Max)})
	}
	if len(rows) == 0 {
		return
	}
	p.title("Waiting for data (H): in % of it, not begun / opening / reading / decoding / other")
	p.table(false, []string{"epoch", "total", "queue", "open", "read", "dec.", "other", "step: median", "99 %", "longest", "accelerator: median", "most"},
		rows)
}
