package workload

import (
	"math"
	"strconv"
	"strings"
)

// maxWhole bounds every whole number of a workload: 2^53 - 1, the largest that every JSON reader keeps. Seeds may be
// larger.
const maxWhole = 1<<53 - 1

// key is one key of the table: where it stands in a file, and the field of one Workload that it sets.
type key struct {
	path string
	// field points at the field: *string, *bool, *int, *int64, *uint64, *float64, *[]int, *[]int64, *[]string,
	// *[]Column or *Time.
	field any
	// reset sets the field to its default.
	reset func()
	// initial is the default as text, "" where there is none.
	initial string
	// words are the allowed values of an enumeration.
	words []string
	// low and high bound numbers and the elements of lists of numbers.
	low, high float64
	// secret values appear in no output.
	secret bool
	// textual booleans may also be written as the texts "true" and "false".
	textual bool
	// added keys came when canonical forms were in use already: they are left out where they have their default, so that
	// every form and digest that was written before stays what it was.
	added bool
	doc   string
}

func text(path string, field *string, def string) key {
	initial := ""
	if def != "" {
		initial = strconv.Quote(def)
	}
	return key{path: path, field: field, reset: func() { *field = def }, initial: initial}
}

func word(path string, field *string, def string, words ...string) key {
	return key{path: path, field: field, reset: func() { *field = def }, initial: def, words: words}
}

func boolean(path string, field *bool, def bool) key {
	return key{path: path, field: field, reset: func() { *field = def }, initial: strconv.FormatBool(def)}
}

func whole[T int | int64](path string, field *T, def T) key {
	return key{path: path, field: field, reset: func() { *field = def }, initial: strconv.FormatInt(int64(def), 10),
		low: -maxWhole, high: maxWhole}
}

func seed(path string, field *uint64, def uint64) key {
	return key{path: path, field: field, reset: func() { *field = def }, initial: strconv.FormatUint(def, 10)}
}

func decimal(path string, field *float64, def float64) key {
	return key{path: path, field: field, reset: func() { *field = def }, initial: formatFloat(def),
		low: -math.MaxFloat64, high: math.MaxFloat64}
}

func list[T int | int64](path string, field *[]T) key {
	return key{path: path, field: field, reset: func() { *field = []T{} }, initial: "[]", low: -maxWhole, high: maxWhole}
}

func texts(path string, field *[]string) key {
	return key{path: path, field: field, reset: func() { *field = []string{} }, initial: "[]"}
}

func columns(path string, field *[]Column) key {
	return key{path: path, field: field, reset: func() { *field = []Column{} }, initial: "[]"}
}

func duration(path string, field *Time) key {
	return key{path: path, field: field, reset: func() { *field = Time{Type: TimeConstant} }, initial: "0"}
}

func (k key) from(low float64) key       { k.low = low; return k }
func (k key) to(high float64) key        { k.high = high; return k }
func (k key) about(doc string) key       { k.doc = doc; return k }
func (k key) derived(initial string) key { k.initial = initial; return k }
func (k key) hidden() key                { k.secret = true; return k }
func (k key) orText() key                { k.textual = true; return k }
func (k key) later() key                 { k.added = true; return k }

// kind names the type of the key's value for people and for the schema.
func (k key) kind() string {
	switch k.field.(type) {
	case *bool:
		return "boolean"
	case *string:
		if k.words != nil {
			return "word"
		}
		return "text"
	case *int, *int64:
		return "integer"
	case *uint64:
		return "64-bit integer"
	case *float64:
		return "number"
	case *[]int, *[]int64:
		return "list of integers"
	case *[]string:
		return "list of texts"
	case *[]Column:
		return "list of columns"
	case *Time:
		return "time"
	}
	return ""
}

// limits says which values are allowed, "" where any value of the type is.
func (k key) limits() string {
	switch k.field.(type) {
	case *string:
		return strings.Join(k.words, ", ")
	case *bool:
		return "true, false"
	case *int, *int64, *[]int, *[]int64:
		return interval(k.low, k.high, maxWhole)
	case *float64:
		return interval(k.low, k.high, math.MaxFloat64)
	case *uint64:
		return "0 to 18446744073709551615"
	}
	return ""
}

func interval(low, high, widest float64) string {
	switch {
	case low <= -widest && high >= widest:
		return ""
	case high >= widest:
		return formatFloat(low) + " or more"
	case low <= -widest:
		return formatFloat(high) + " or less"
	}
	return formatFloat(low) + " to " + formatFloat(high)
}

// Key describes one key of a workload file.
type Key struct {
	// Path is the key with its sections, "dataset.num_files_train".
	Path string
	// Type is the type of its value, for people.
	Type string
	// Default is the value where the key is absent, "" where there is none.
	Default string
	// Allowed says which values are allowed, "" where every value of the type is.
	Allowed string
	// Doc says what the key means.
	Doc string
	// Inert is true for a key that is accepted and changes nothing.
	Inert bool
}

// Keys lists every key that a workload file may have, in the order of the documentation.
func Keys() []Key {
	table, inert := keys(new(Workload)), inertKeys()
	all := make([]Key, len(table))
	for i, k := range table {
		all[i] = Key{Path: k.path, Type: k.kind(), Default: k.initial, Allowed: k.limits(), Doc: k.doc, Inert: inert[k.path]}
	}
	return all
}
