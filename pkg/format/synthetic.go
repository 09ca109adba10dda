package format

import (
	"fmt"
	"io"
	"strconv"
)

// synthetic stands for data that nobody stores: each file is the text of its number, and reading a sample reads nothing. It measures
// what the benchmark itself costs.
type synthetic struct{}

func newSynthetic() Format { return synthetic{} }

func (synthetic) Name() string { return "synthetic" }

func (synthetic) check(l Layout) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("synthetic: %w", err)
	}
	return nil
}

func (synthetic) sizedByNumber() {}

func (f synthetic) Size(l Layout) (int64, error) {
	if err := f.check(l); err != nil {
		return 0, err
	}
	return int64(len(strconv.Itoa(l.File))), nil
}

func (f synthetic) Write(w io.Writer, l Layout, _ Content, _ []byte) error {
	if err := f.check(l); err != nil {
		return err
	}
	out := writer{w: w, buf: make([]byte, 20)}
	if err := out.write(strconv.AppendInt(nil, int64(l.File), 10)); err != nil {
		return err
	}
	return out.flush()
}

// ReadSample asks the file for nothing. There is nothing that could be wrong, and nothing that says what a sample would be.
func (synthetic) ReadSample(io.ReaderAt, int64, int, []byte) (Sample, error) {
	return Sample{Logical: Unsaid}, nil
}

// AskedBytes is nothing.
func (synthetic) AskedBytes(int64, int, int64) int64 { return 0 }

var _ Partial = synthetic{}
