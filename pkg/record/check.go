package record

// Problem is one thing that a record says and that cannot be.
type Problem struct {
	// Field is the path of JSON names.
	Field string
	// Message says what was expected and what was found.
	Message string
}

// Check returns what is wrong in what the record says.
func (r *Record) Check() []Problem { return nil }
