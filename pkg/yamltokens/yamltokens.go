// Package yamltokens looks at YAML before a parser does: at tokens, which cost no more than the text has bytes. The parser that both readers of
// YAML here use calls itself for every level of nesting, so that a small file can use up its stack. The package bounds that, and does nothing
// else: it reads no values and knows nothing of what a document means.
package yamltokens

import "github.com/goccy/go-yaml/token"

// TooDeep returns the first token that stands below more than most levels of nesting, nil where there is none. Levels are counted from the
// tokens alone, and generously: a document that passes makes a parser call itself no deeper, and one that is refused may have a few levels
// fewer than were counted, such as keys of one line that follow each other.
func TooDeep(tokens token.Tokens, most int) *token.Token {
	flow, onLine, line := 0, 0, 0
	var indents []int // columns at which the enclosing blocks start
	for _, t := range tokens {
		if t.Position == nil {
			continue
		}
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
			if flow == 0 {
				for len(indents) > 0 && indents[len(indents)-1] >= t.Position.Column {
					indents = indents[:len(indents)-1]
				}
				indents = append(indents, t.Position.Column)
			}
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(flow-1, 0)
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			if flow == 0 {
				onLine++
			}
		}
		if flow+onLine+len(indents) > most {
			return t
		}
	}
	return nil
}
