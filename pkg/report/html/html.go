// Package html makes a page of results for a browser: one file that holds everything it shows, reads without a network and without
// scripts, and prints. It is made from records and step times that are handed in, believes them, and judges nothing; what a record
// says reaches the page as text and never as markup. It knows nothing of the engine.
package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// Run is one run on the page.
type Run struct {
	// Name is what the reader calls it, such as the path of its folder.
	Name   string
	Record *record.Record
	// Digest is the BLAKE3 digest of the record's bytes.
	Digest string
	// Archive is the digest of the archive that the record came from, "" for one that lies in a run folder.
	Archive string
	// Steps are the steps of training; nil where the run has none.
	Steps *Series
	// Eval are the steps of the passes over the files for evaluation, whose epochs are the passes from 1 on; nil where the run has none.
	Eval *Series
	// Verification is what verifying the archive found; nil where nobody did.
	Verification *Verification
}

// Verification is the outcome of verifying an archive.
type Verification struct {
	// Holds is true when all checks passed, or were waived.
	Holds bool
	// Signers name the accepted keys and identities that signed it; Times are those at which third parties saw signatures (class W).
	Signers, Times []string
	// Assurance is how far the result is assured, with the reason; "" where it is not.
	Assurance string
	// Notes are what a reader must know of the attestations beside, such as who reproduced the result.
	Notes []string
	// Checks are those that were made, in order.
	Checks []report.Check
}

// MostRuns is the number of runs that one page shows side by side.
const MostRuns = 8

// Options are what a page says beside its runs.
type Options struct {
	// Writer names the program that made the page, with its version.
	Writer string
}

//go:embed page.tmpl
var pageTemplate string

//go:embed style.css
var style string

// Write writes the page of one to MostRuns runs. The same runs give the same bytes. Nothing is written when the page cannot be made.
func Write(w io.Writer, runs []Run, o Options) error {
	if len(runs) == 0 || len(runs) > MostRuns {
		return fmt.Errorf("a page shows 1 to %d runs, found %d", MostRuns, len(runs))
	}
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("template of the page: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newPage(runs, o)); err != nil {
		return fmt.Errorf("making the page: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// IsPage reports whether a file that begins so is a page that benchpin wrote, by its first lines and the program that it names: one may be
// replaced by another.
func IsPage(b []byte) bool {
	first, _, _ := strings.Cut(pageTemplate, "{{")
	head, rest, _ := bytes.Cut(b, []byte("\n<style>"))
	return rest != nil && bytes.HasPrefix(head, []byte(first)) && bytes.Contains(head, []byte("\n<meta name=\"generator\" content=\"benchpin "))
}

// sheet is the style sheet and the policy that allows it and nothing else: a page that somehow held markup of a record could still load
// and run nothing.
func sheet() (template.CSS, string) {
	sum := sha256.Sum256([]byte(style))
	return template.CSS(style), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
}
