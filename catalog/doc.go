// Package catalog holds what Schemagate searches: typed objects (tables, columns, metrics, relationships and past
// queries) in immutable, content-addressed snapshots. It knows names, not rows and not principals.
package catalog
