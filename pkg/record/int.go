package record

import (
	"fmt"
	"strconv"
)

// Int is a 64-bit integer that is written as a decimal string in JSON, because many JSON readers lose integers above 2^53.
type Int int64

// MarshalJSON writes the number as a quoted decimal.
func (i Int) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(i), 10)), nil
}

// UnmarshalJSON reads a quoted decimal in canonical form and refuses everything else.
func (i *Int) UnmarshalJSON(b []byte) error {
	s, err := strconv.Unquote(string(b))
	if err != nil {
		return fmt.Errorf("expected an integer in quotes such as \"42\", found %s", b)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return fmt.Errorf("expected a decimal 64-bit integer in quotes, found %s", b)
	}
	*i = Int(n)
	return nil
}
