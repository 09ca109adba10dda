package record

// Environment is what a run saw of its machine. Every figure in it is class H. Unknown values are "unknown", with the reason in
// Unknown.
type Environment struct {
	Class Class `json:"class"`
}
