// Package bigquery is the guard's BigQuery dialect, on GoogleSQL's own parser and analyzer: the front end of BigQuery,
// translated from C++ to Go.
//
// Names are resolved by the analyzer itself, over a catalog that holds nothing but what the principal may query, so a
// hidden table, column or row type is as absent there as one that nobody has. Every base table is then replaced, where
// it stands, by a derived table of its visible columns, masks and row filter.
//
// All but this file is behind the build tag bigquery, because of what the translation costs whoever builds it: the first
// compilation takes six to twenty minutes and 7 GB of memory (0.5 s from then on, from the build cache), and a program
// that links it grows by about 60 MB. Build and test with -tags bigquery.
package bigquery
