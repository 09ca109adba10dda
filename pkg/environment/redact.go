package environment

import (
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// hostNames are the names by which this host may appear in paths and mounts.
func hostNames() []string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return nil
	}
	names := []string{name}
	if short, _, ok := strings.Cut(name, "."); ok && short != "" {
		names = append(names, short)
	}
	return names
}

// redact replaces the host's name, serial numbers, the server part of mount sources ("nas7:/export", "//nas7/share") and the
// addresses in mount options, and then the host's own name wherever else it stands as a word of its own.
func redact(e *record.Environment, names []string) {
	e.Redacted = true
	e.Host.Name = hide(e.Host.Name)
	e.Host.Serial = hide(e.Host.Serial)
	address := regexp.MustCompile(`(^|,)((?:mount|client)?addr|ip|server|mon_addr)=[^,]*`)
	for i := range e.Folders {
		f := &e.Folders[i]
		f.Device.Serial = hide(f.Device.Serial)
		f.Source = hideServer(f.Source)
		f.Options = address.ReplaceAllString(f.Options, "${1}${2}="+record.RedactedText)
	}
	var words []string
	for _, name := range names {
		// A host called "data" or "localhost" would take common words out of paths, and names nobody.
		if len(name) > 2 && name != "localhost" {
			words = append(words, regexp.QuoteMeta(name))
		}
	}
	if len(words) == 0 {
		return
	}
	own := regexp.MustCompile(`(?i)(^|[^A-Za-z0-9])(?:` + strings.Join(words, "|") + `)($|[^A-Za-z0-9])`)
	for i := range e.Folders {
		eachText(reflect.ValueOf(&e.Folders[i]).Elem(), func(s string) string {
			return own.ReplaceAllString(s, "${1}"+record.RedactedText+"${2}")
		})
	}
	for i := range e.Unknown {
		e.Unknown[i].Reason = own.ReplaceAllString(e.Unknown[i].Reason, "${1}"+record.RedactedText+"${2}")
	}
}

func hide(s string) string {
	if s == record.UnknownText || s == "" {
		return s
	}
	return record.RedactedText
}

// hideServer replaces the host part of a network mount's source and leaves devices and names of local file systems alone.
func hideServer(source string) string {
	if rest, ok := strings.CutPrefix(source, "//"); ok {
		_, share, _ := strings.Cut(rest, "/")
		return "//" + record.RedactedText + "/" + share
	}
	// The path of NFS, Lustre and Ceph starts after the last ":/"; Lustre lists several servers with ":" between them.
	if at := strings.LastIndex(source, ":/"); at > 0 {
		return record.RedactedText + source[at:]
	}
	return source
}

// eachText changes every text below a struct but the role, which is a key.
func eachText(v reflect.Value, change func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(change(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Role" {
				eachText(v.Field(i), change)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), change)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.ValueOf(change(v.MapIndex(key).String())))
		}
	}
}
