//go:build bigquery

package bigquery_test

import (
	"testing"

	"github.com/schemagate/schemagate/rewrite/bigquery"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

func TestSpecifications(t *testing.T) { rewritetest.Golden(t, bigquery.New(), "testdata") }
