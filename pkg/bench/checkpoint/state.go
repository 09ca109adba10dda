package checkpoint

import "strconv"

// builder makes the dictionary of one file and numbers its tensors in the order of their appearance.
type builder struct {
	tensors []Tensor
	prefix  string
}

// tensor adds an int8 tensor.
func (b *builder) tensor(key string, elements int64) entry {
	return b.typed(key, Int8(), elements)
}

func (b *builder) typed(key string, t Type, elements int64) entry {
	b.tensors = append(b.tensors, Tensor{Name: b.prefix + key, Type: t, Elements: elements})
	return entry{key: key, tensor: len(b.tensors) - 1}
}

// nested makes a dictionary in the dictionary.
func (b *builder) nested(key string, items func() []entry) entry {
	outer := b.prefix
	b.prefix += key + "/"
	e := entry{key: key, dict: items()}
	b.prefix = outer
	return e
}

// groups is {"0": {"a": tensor, "b": tensor}, ..., "combined": tensor}.
func (b *builder) groups(sizes []int64) []entry {
	state, sum := make([]entry, 0, len(sizes)+1), int64(0)
	for i, elements := range sizes {
		sum += elements
		state = append(state, b.nested(strconv.Itoa(i), func() []entry {
			return []entry{b.tensor("a", elements), b.tensor("b", elements)}
		}))
	}
	return append(state, b.tensor("combined", sum))
}
