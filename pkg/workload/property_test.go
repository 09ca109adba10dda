package workload

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// draw gives the field of k a random allowed value.
func draw(t *rapid.T, k key) {
	if k.path == "benchpin.verify_sample" {
		*k.field.(*string) = rapid.SampledFrom([]string{"1", "77", "5%", "0.25%", "100%"}).Draw(t, k.path)
		return
	}
	text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(append(strings.Split("a|b|Z|0|1|9| |_|-|.|/|\\|\\\\|${|${a}|}|[|]|:|: |, |'|\"|#| #|&|*|!|>|%|@|~|? |=|é|漢|😀|off|null", "|"), "|")),
		0, 6), func(parts []string) string { return strings.Join(parts, "") })
	whole := func(low, high float64) int64 {
		return rapid.Int64Range(int64(max(low, k.low)), int64(min(high, k.high))).Draw(t, k.path)
	}
	switch f := k.field.(type) {
	case *string:
		if k.words != nil {
			*f = rapid.SampledFrom(k.words).Draw(t, k.path)
		} else {
			*f = text.Draw(t, k.path)
		}
	case *bool:
		*f = rapid.Bool().Draw(t, k.path)
	case *int:
		*f = int(whole(-maxWhole, maxWhole))
	case *int64:
		*f = whole(-maxWhole, maxWhole)
	case *uint64:
		*f = rapid.Uint64().Draw(t, k.path)
	case *float64:
		*f = rapid.Float64Range(max(k.low, 0), min(k.high, 1e300)).Draw(t, k.path) + 0
	case *[]int:
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			*f = append(*f, int(whole(0, 1<<40)))
		}
	case *[]int64:
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			*f = append(*f, whole(0, 1<<40))
		}
	case *[]string:
		*f = append(*f, rapid.SliceOfN(text, 0, 3).Draw(t, k.path)...)
	case *[]Column:
		for i := range rapid.IntRange(0, 3).Draw(t, k.path) {
			*f = append(*f, Column{Name: fmt.Sprint("c", i), DType: text.Draw(t, "dtype"), Size: rapid.IntRange(1, maxWhole).Draw(t, "size"), Read: rapid.Bool().Draw(t, "read")})
		}
	case *Time:
		table := timeKeys("", f)
		f.Type = rapid.SampledFrom(timeTypes()).Draw(t, k.path)
		for _, p := range table[f.Type] {
			*p.field.(*float64) = rapid.Float64Range(math.SmallestNonzeroFloat64, 5000).Draw(t, p.path)
		}
		f.Max += f.Min
		if f.Type != TimeUniform {
			f.Min, f.Max = 0, 0
		}
	}
}

// drawWorkload makes a random workload whose keys do not contradict each other.
func drawWorkload(t *rapid.T) *Workload {
	w := new(Workload)
	for _, k := range keys(w) {
		k.reset()
		if !k.secret {
			draw(t, k)
		}
	}
	if w.Reader.DataLoader == "tensorflow" || w.Reader.DataLoader == "pytorch" {
		w.Framework = w.Reader.DataLoader
	}
	w.Dataset.RecordLengthBytesStdev, w.Dataset.HDF5.NumDsetPerRecord = 0, 1
	w.Dataset.RecordDims, w.Dataset.RecordElementType = w.Dataset.RecordDims[:min(2, len(w.Dataset.RecordDims))], "uint8"
	w.Model.NumLayers, w.Model.Parallelism.Pipeline = -1, 1
	w.Checkpoint.NumCheckpointsRead = min(w.Checkpoint.NumCheckpointsRead, w.Checkpoint.NumCheckpointsWrite)
	w.Checkpoint.RandomizeTensor = w.Checkpoint.RandomizeTensor && !w.Checkpoint.KSM.Enabled
	finish(w)
	return w
}

// TestShownWorkloadsLoad: any workload, shown as YAML, loads as the same workload without a warning.
func TestShownWorkloadsLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkload(t)
		r := &Resolved{Workload: w, Name: "w", Canonical: canonical(w)}
		r.Digest = blake3Digest(r.Canonical)
		again, err := Load(Source{Name: "w.yaml", Data: r.YAML()}, Options{Strict: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, r.YAML())
		}
		if !bytes.Equal(again.Canonical, r.Canonical) {
			t.Fatalf("%s\n%s\n%s", r.YAML(), r.Canonical, again.Canonical)
		}
		if _, err := ParseCanonical(r.Canonical); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOverriddenKeys: any key, overridden with any value that it may have, has that value.
func TestOverriddenKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := new(Workload)
		all := keys(w)
		i := rapid.IntRange(0, len(all)-1).Draw(t, "key")
		if all[i].path == "reader.data_loader" {
			return // it needs the framework beside it
		}
		all[i].reset()
		draw(t, all[i])
		w.Dataset.DataFolder, w.Checkpoint.CheckpointFolder = trimSlash(w.Dataset.DataFolder), trimSlash(w.Checkpoint.CheckpointFolder)
		override := "++workload." + all[i].path + "=" + hydraValue(plain(all[i].field))
		r, err := Load(Source{Name: "w.yaml", Data: []byte("checkpoint: {randomize_tensor: false}\n")}, Options{Overrides: []string{override}, Strict: true})
		if err != nil {
			t.Fatalf("%s: %v", override, err)
		}
		want := string(appendJSON(nil, plain(all[i].field)))
		if got := string(appendJSON(nil, plain(keys(r.Workload)[i].field))); got != want {
			t.Fatalf("%s gives %s, expected %s", override, got, want)
		}
	})
}

// hydraValue writes a value in Hydra's grammar.
func hydraValue(v any) string {
	switch v := v.(type) {
	case string:
		var b strings.Builder
		b.WriteByte('\'')
		for i := 0; i < len(v); i++ {
			n := 0
			for i+n < len(v) && v[i+n] == '\\' {
				n++
			}
			switch {
			case n > 0:
				doubled := i+n == len(v) || v[i+n] == '\''
				escaped := strings.HasPrefix(v[i+n:], "${")
				if doubled || escaped {
					n, i = 2*n, i+n-1
				} else {
					i += n - 1
				}
				b.WriteString(strings.Repeat(`\`, n))
			case v[i] == '\'':
				b.WriteString(`\'`)
			case strings.HasPrefix(v[i:], "${"):
				b.WriteString(`\$`)
			default:
				b.WriteByte(v[i])
			}
		}
		return b.String() + "'"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, hydraValue(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		var parts []string
		for name, item := range v {
			parts = append(parts, name+": "+hydraValue(item))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return string(appendJSON(nil, v))
}
