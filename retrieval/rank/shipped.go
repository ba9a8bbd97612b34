package rank

import (
	_ "embed" // carries the model
	"fmt"
)

// The folder recipe holds what makes it.
//
//go:embed ranker.model
var shipped []byte

// Shipped returns the model that the binary carries.
func Shipped() (*Model, error) {
	m := new(Model)
	if err := m.UnmarshalBinary(shipped); err != nil {
		return nil, fmt.Errorf("reading the built-in ranker: %w; build the program anew from a clean checkout", err)
	}
	return m, nil
}
