//go:build bigquery

package bigquery

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goccy/go-googlesql"
)

// engine is GoogleSQL, set up as BigQuery sets it up. It is shared by all statements: the library runs one call at a
// time, and what is set up does not change.
type engine struct {
	analyzer *googlesql.AnalyzerOptions
	builtins *googlesql.SimpleCatalog
	used     atomic.Uint64 // catalogs that were made, each for one analysis
}

// collected is the number of analyses after which what they left is collected. The library frees its memory as Go's
// collector finds its handles, which are small: left to itself the collector waits until the library has taken a
// multiple of what it needs.
const collected = 128

// newEngine starts GoogleSQL, which a process has once.
var newEngine = sync.OnceValues(func() (*engine, error) {
	if err := googlesql.Init(); err != nil {
		return nil, fmt.Errorf("bigquery: GoogleSQL does not start: %w", err)
	}
	e := &engine{}
	if err := e.setUp(); err != nil {
		return nil, fmt.Errorf("bigquery: GoogleSQL cannot be set up: %w", err)
	}
	return e, nil
})

// foreign are features of GoogleSQL under which a name could mean what it does not mean in BigQuery.
var foreign = []googlesql.LanguageFeature{
	googlesql.LanguageFeatureFeatureLateralColumnReferences,
	googlesql.LanguageFeatureFeatureLateralJoin,
	googlesql.LanguageFeatureFeatureSingleTableNameArrayPath,
}

// rewrites are those of the analyzer's rewritings that would replace what the statement says by what computes it. They
// are off, so that a resolved tree holds the functions that the asker wrote.
var rewrites = []googlesql.ResolvedASTRewrite{
	googlesql.ResolvedASTRewriteRewriteFlatten,
	googlesql.ResolvedASTRewriteRewriteArrayIncludes,
	googlesql.ResolvedASTRewriteRewriteTypeofFunction,
	googlesql.ResolvedASTRewriteRewriteWithExpr,
	googlesql.ResolvedASTRewriteRewriteNulliferrorFunction,
	googlesql.ResolvedASTRewriteRewriteLikeAnyAll,
	googlesql.ResolvedASTRewriteRewriteBuiltinFunctionInliner,
	googlesql.ResolvedASTRewriteRewriteGroupingSet,
	googlesql.ResolvedASTRewriteRewriteMultiwayUnnest,
	googlesql.ResolvedASTRewriteRewriteOrderByAndLimitInAggregate,
	googlesql.ResolvedASTRewriteRewriteIsFirstIsLastFunction,
	googlesql.ResolvedASTRewriteRewriteVariadicFunctionSignatureExpander,
}

// language makes BigQuery's set of features. Whatever is set up with it takes it over, so each thing gets one of its own.
func language() (*googlesql.LanguageOptions, error) {
	l, err := googlesql.NewLanguageOptions()
	if err != nil {
		return nil, err
	}
	if err := l.EnableMaximumLanguageFeatures(); err != nil {
		return nil, err
	}
	for _, f := range foreign {
		if err := l.DisableLanguageFeature(f); err != nil {
			return nil, err
		}
	}
	return l, l.SetProductMode(googlesql.ProductModeProductExternal)
}

func (e *engine) setUp() error {
	l, err := language()
	if err != nil {
		return err
	}
	if e.analyzer, err = googlesql.NewAnalyzerOptions(l); err != nil {
		return err
	}
	for _, r := range rewrites {
		if err = e.analyzer.EnableRewrite(r, false); err != nil {
			return err
		}
	}
	if err = e.analyzer.SetParseLocationRecordType(googlesql.ParseLocationRecordTypeParseLocationRecordFullNodeScope); err != nil {
		return err
	}
	if e.builtins, err = googlesql.NewSimpleCatalog("builtins", nil); err != nil {
		return err
	}
	if l, err = language(); err != nil {
		return err
	}
	return e.builtins.AddBuiltinFunctionsAndTypes(&googlesql.BuiltinFunctionOptions{LanguageOptions: l})
}

// parser makes the options of one parse: they keep the memory of all that was parsed with them.
func parser() (*googlesql.ParserOptions, error) {
	l, err := language()
	if err != nil {
		return nil, err
	}
	p, err := googlesql.NewParserOptions()
	if err != nil {
		return nil, err
	}
	return p, p.SetLanguageOptions(l)
}
