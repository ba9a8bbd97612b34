//go:build !bigquery

package main

// tagged are the dialects that a build tag adds.
func tagged() []dialect { return nil }
