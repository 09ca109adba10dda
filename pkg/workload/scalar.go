package workload

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// dialect types plain scalars: those without quotes. The zero value is of no use; newDialect makes one.
type dialect struct {
	yamlInt, yamlFloat, hydraInt, hydraFloat *regexp.Regexp
}

// newDialect compiles the patterns. Those of YAML are PyYAML's for YAML 1.1, with OmegaConf's pattern for floats
// (which also takes 1e-3 and 1e3); dates stay texts, as OmegaConf has it. Those of overrides are Hydra's.
func newDialect() *dialect {
	return &dialect{
		yamlInt: regexp.MustCompile(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|` +
			`[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`),
		yamlFloat: regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|` +
			`\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|` +
			`[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`),
		hydraInt: regexp.MustCompile(`^[-+]?(?:0|[1-9](?:_?[0-9])*)$`),
		hydraFloat: regexp.MustCompile(`^[-+]?(?:(?:(?:0|[1-9](?:_?[0-9])*)?\.[0-9](?:_?[0-9])*|(?:0|[1-9](?:_?[0-9])*)\.?)` +
			`(?:[eE][-+]?[0-9](?:_?[0-9])*)?|[iI][nN][fF]|[nN][aA][nN])$`),
	}
}

// yaml types a plain scalar of a file by the rules of YAML 1.1.
func (d *dialect) yaml(raw string, pos Position) *node {
	n := &node{kind: textKind, raw: raw, pos: pos}
	switch raw {
	case "", "~", "null", "Null", "NULL":
		n.kind = nullKind
		return n
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		n.kind, n.truth = boolKind, true
		return n
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		n.kind = boolKind
		return n
	}
	switch digits := strings.ReplaceAll(raw, "_", ""); {
	case d.yamlInt.MatchString(raw):
		if v, ok := yamlInteger(digits); ok {
			n.kind, n.whole = intKind, v
		}
	case d.yamlFloat.MatchString(raw):
		if v, ok := yamlFloat(digits); ok {
			n.kind, n.float = floatKind, v
		}
	}
	return n
}

// yamlInteger reads 0b, 0x, octal, decimal and base-60 integers; false for prefixes without digits.
func yamlInteger(s string) (*big.Int, bool) {
	sign, s := cutSign(s)
	base := 10
	switch {
	case strings.HasPrefix(s, "0b"):
		base, s = 2, s[2:]
	case strings.HasPrefix(s, "0x"):
		base, s = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base = 8
	case strings.Contains(s, ":"):
		v := new(big.Int)
		for _, part := range strings.Split(s, ":") {
			p, ok := new(big.Int).SetString(part, 10)
			if !ok {
				return nil, false
			}
			v.Add(v.Mul(v, big.NewInt(60)), p)
		}
		return v.Mul(v, big.NewInt(sign)), true
	}
	v, ok := new(big.Int).SetString(s, base)
	if !ok {
		return nil, false
	}
	return v.Mul(v, big.NewInt(sign)), true
}

// yamlFloat reads decimal and base-60 floats, infinities and NaN.
func yamlFloat(s string) (float64, bool) {
	sign, s := cutSign(strings.ToLower(s))
	switch {
	case s == ".inf":
		return math.Inf(int(sign)), true
	case s == ".nan":
		return math.NaN(), true
	case strings.Contains(s, ":"):
		v, base := 0.0, 1.0
		parts := strings.Split(s, ":")
		for i := len(parts) - 1; i >= 0; i-- { // from the right, so that the sum rounds as PyYAML's does
			p, err := strconv.ParseFloat(parts[i], 64)
			if err != nil {
				return 0, false
			}
			v, base = v+float64(p*base), base*60
		}
		return float64(sign) * v, true
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, false
	}
	return float64(sign) * v, true
}

func cutSign(s string) (int64, string) {
	if s != "" && s[0] == '-' {
		return -1, s[1:]
	}
	return 1, strings.TrimPrefix(s, "+")
}

// hydra types an unquoted value of an override by Hydra's rules: only true and false are booleans, 010 is a text.
func (d *dialect) hydra(raw string, pos Position) *node {
	n := &node{kind: textKind, raw: raw, pos: pos}
	digits := strings.ReplaceAll(raw, "_", "")
	switch {
	case strings.EqualFold(raw, "null"):
		n.kind = nullKind
	case strings.EqualFold(raw, "true"), strings.EqualFold(raw, "false"):
		n.kind, n.truth = boolKind, strings.EqualFold(raw, "true")
	case d.hydraInt.MatchString(raw):
		n.kind = intKind
		n.whole, _ = new(big.Int).SetString(digits, 10)
	case d.hydraFloat.MatchString(raw):
		n.kind = floatKind
		n.float, _ = strconv.ParseFloat(digits, 64) // out of range is an infinity, which no key accepts
	}
	return n
}

// formatFloat is the shortest text that reads back as f, in ECMAScript's form: the one that canonical JSON uses.
func formatFloat(f float64) string {
	if f == 0 {
		return "0" // -0 too
	}
	form := byte('f')
	if a := math.Abs(f); a < 1e-6 || a >= 1e21 {
		form = 'e'
	}
	s := strconv.FormatFloat(f, form, -1, 64)
	if form == 'e' {
		s = strings.Replace(strings.Replace(s, "e-0", "e-", 1), "e+0", "e+", 1)
	}
	return s
}

// pythonFloat is Python's repr of a float.
func pythonFloat(f float64) string {
	switch a := math.Abs(f); {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	case a != 0 && (a < 1e-4 || a >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
