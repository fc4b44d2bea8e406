// SPDX-License-Identifier: BSD-2-Clause

package policy

// TokenKind is the kind of a [Token].
type TokenKind uint8

// The kinds of tokens.
const (
	TokenName     TokenKind = iota // a lower-case word: keywords, predicates, parameters, policies
	TokenVariable                  // begins with a capital or an underscore
	TokenValue                     // a text, a number or a time
	TokenSymbol                    // punctuation, and what the language does not know
)

// Token is a piece of a policy's text.
type Token struct {
	Kind  TokenKind
	Text  string // as written
	Range Range
}

// Tokens splits a text, also one with mistakes, which it leaves out. It is for editors: they
// look at texts that are not finished.
func Tokens(text []byte) []Token {
	if len(text) > MaxText {
		return nil
	}
	l := &lexer{text: string(text), line: 1}
	var tokens []Token
	for {
		next, mistake := l.next()
		if mistake != nil && next.text == "" {
			continue
		}
		if next.kind == endOfText {
			return tokens
		}
		kind := TokenSymbol
		switch next.kind {
		case nameToken:
			kind = TokenName
		case variableToken, anonymousToken:
			kind = TokenVariable
		case valueToken:
			kind = TokenValue
		}
		tokens = append(tokens, Token{Kind: kind, Text: next.text, Range: next.rangeOf()})
	}
}

// IsReserved reports whether a word has a meaning of its own, and so names no parameter.
func IsReserved(word string) bool { return reserved[word] }
