//go:build bigquery

package main

import "github.com/schemagate/schemagate/rewrite/bigquery"

// tagged are the dialects that a build tag adds.
func tagged() []dialect { return []dialect{bigquery.New()} }
