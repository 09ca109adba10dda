package export

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrCard is wrapped by errors about a card: something that a format demands is missing, or is not what it must be.
var ErrCard = errors.New("what is published about it")

// Card is what people say about a data set or a run, and no manifest or record knows. Nothing is filled in for what is absent, except for name
// and description, which are made of what is known.
type Card struct {
	Name        string
	Description string
	// License is the URL of a licence, such as one of https://spdx.org/licenses/.
	License string
	// URL is the page about it.
	URL string
	// Persons and Organizations are its creators, by name.
	Persons, Organizations []string
	// Publisher is the organization that publishes it.
	Publisher string
	// Published is the day of publication, YYYY-MM-DD.
	Published string
	// Version is a semantic version, absent where nobody gave it one.
	Version string
	// Citation says how to cite it, in BibTeX for preference.
	Citation string
}

// need is a field of a card that a format demands.
type need struct {
	name string
	have bool
}

// check refuses a card that lacks something, or has what is none. All of it is named at once.
func (c *Card) check(format string, needs ...need) error {
	var missing []string
	for _, n := range needs {
		if !n.have {
			missing = append(missing, n.name)
		}
	}
	var errs []error
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%s demands what no manifest and no record says: give %s", format, strings.Join(missing, ", ")))
	}
	for _, u := range []struct{ name, value string }{{"license", c.License}, {"URL", c.URL}} {
		if u.value == "" {
			continue
		}
		if parsed, err := url.Parse(u.value); err != nil || parsed.Host == "" || (parsed.Scheme != "https" && parsed.Scheme != "http") {
			errs = append(errs, fmt.Errorf("%s %.200q: expected a URL that begins with https://", u.name, u.value))
		}
	}
	if c.Published != "" {
		if _, err := time.Parse(time.DateOnly, c.Published); err != nil {
			errs = append(errs, fmt.Errorf("day of publication %.40q: expected YYYY-MM-DD", c.Published))
		}
	}
	for _, n := range append(append([]string{}, c.Persons...), c.Organizations...) {
		if strings.TrimSpace(n) == "" {
			errs = append(errs, errors.New("creator: the name is empty"))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrCard, err)
	}
	return nil
}

func (c *Card) creators() bool { return len(c.Persons)+len(c.Organizations) > 0 }
