package html

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/report"
)

// chromium is a browser, in the slow suite. One that is missing there is a failure in CI.
func chromium(t *testing.T) string {
	t.Helper()
	if os.Getenv("BENCHPIN_LONG") == "" {
		t.Skip("starts a browser: set BENCHPIN_LONG=1")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Chromium: in CI it must be there (make deps)")
	}
	t.Skip("no Chromium to open pages with")
	return ""
}

// browse opens a page from disk without a network, and returns what the browser prints.
func browse(t *testing.T, browser, page string, args ...string) string {
	t.Helper()
	folder := t.TempDir()
	name := filepath.Join(folder, "page.html")
	if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(folder, "profile"),
		"--host-resolver-rules=MAP * ~NOTFOUND"}, args...)
	cmd := exec.CommandContext(ctx, browser, append(args, "file://"+name)...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, problems.String())
	}
	return string(out)
}

// TestHostileRecordsInABrowser: after the browser read the page, and ran whatever it found to run, its document has the elements and
// attributes of a harmless record's, and the texts. The policy that would stop scripts is taken out, so that escaping alone must do.
func TestHostileRecordsInABrowser(t *testing.T) {
	browser := chromium(t)
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	document := func(texts []string) (shape, seen string) {
		var runs []Run
		for _, s := range texts {
			runs = append(runs, laden(t, s))
		}
		var b bytes.Buffer
		if err := Write(&b, runs, Options{Writer: texts[0]}); err != nil {
			t.Fatal(err)
		}
		page := policy.ReplaceAllString(b.String(), "")
		if page == b.String() {
			t.Fatal("the page has no policy to take out")
		}
		return skeleton(t, browse(t, browser, page, "--dump-dom"))
	}
	all := hostile()
	for len(all) > 0 {
		some := all[:min(MostRuns, len(all))]
		all = all[len(some):]
		var harmless []string
		for i := range some {
			harmless = append(harmless, "harmless"+strconv.Itoa(i)) // unlike each other, as the hostile ones are
		}
		want, _ := document(harmless)
		got, seen := document(some)
		if got != want {
			t.Errorf("%.60q changed the document:\n%s", some, firstDifference(want, got))
		}
		for _, s := range some {
			if n := strings.Count(seen, report.Clean(s)); n < 50 {
				t.Errorf("%.60q is seen %d times, expected everywhere", s, n)
			}
		}
	}
	// The test would see a script that ran.
	if _, seen := skeleton(t, browse(t, browser, "<title>a</title><script>document.title='owned'</script>", "--dump-dom")); !strings.Contains(seen, "owned") {
		t.Error("the browser does not run scripts: this test shows nothing")
	}
}

// TestPageFitsAPhone: nothing but what scrolls by itself is wider than the screen, the style sheet passes the page's own policy, and the page prints.
func TestPageFitsAPhone(t *testing.T) {
	browser := chromium(t)
	for _, page := range []string{write(t, run(t)), write(t, run(t), run(t))} {
		// A script of this test's measures the page, which the policy would stop; the style sheet stays under it.
		measured := strings.Replace(page, "default-src &#39;none&#39;", "default-src &#39;none&#39;; script-src &#39;unsafe-inline&#39;", 1)
		measured = strings.Replace(measured, "</body>", "<script>document.title='wide '+document.documentElement.scrollWidth+' of '+innerWidth+' font '+getComputedStyle(document.querySelector('.value')||document.body).fontWeight</script></body>", 1)
		seen := browse(t, browser, measured, "--window-size=500,900", "--dump-dom")
		title := regexp.MustCompile(`<title>wide (\d+) of (\d+) font (\d+)</title>`).FindStringSubmatch(seen)
		if title == nil || len(title[1]) > len(title[2]) || title[1] > title[2] {
			t.Errorf("the page is wider than the screen: %q", title)
		}
		if !strings.Contains(page, "h1>2 runs") && (title == nil || title[3] != "650") {
			t.Errorf("the style sheet does not apply: %q", title)
		}
		pdf := filepath.Join(t.TempDir(), "page.pdf")
		browse(t, browser, page, "--print-to-pdf="+pdf)
		b, err := os.ReadFile(pdf)
		if err != nil || !bytes.HasPrefix(b, []byte("%PDF-")) {
			t.Errorf("the page does not print: %v", err)
		}
	}
}
