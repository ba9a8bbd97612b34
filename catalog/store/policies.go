package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/schemagate/schemagate/catalog"
)

// Faults about policies that callers tell apart.
var (
	ErrNoPolicy      = errors.New("the store holds no policy; put one first")
	ErrPolicyChanged = errors.New("somebody has put another policy meanwhile; look at it and put yours again")
)

// Policy is one that was put in force, as it was written; whoever puts it checks it before.
type Policy struct {
	Number  int64     `json:"number"`  // counts from 1
	Version string    `json:"version"` // hex SHA-256 of Body
	Body    string    `json:"-"`
	At      time.Time `json:"at"` // UTC
	By      string    `json:"by"`
	Why     string    `json:"why"`
}

// PutPolicy puts a policy in force. If expect is not empty, it must be the version that is in force, else nothing is put
// and the error is ErrPolicyChanged. It must be said who puts it and why.
func (s *Store) PutPolicy(ctx context.Context, body, by, why, expect string) (Policy, error) {
	sum := sha256.Sum256([]byte(body))
	p := Policy{Version: hex.EncodeToString(sum[:]), Body: body, At: time.Now().UTC(), By: by, Why: why}
	err := s.write(ctx, func(tx *sql.Tx) error {
		switch {
		case by == "" || why == "":
			return errors.New("it must be said who puts a policy, and why")
		case !utf8.ValidString(body):
			return errors.New("the policy is not valid UTF-8")
		}
		if expect != "" {
			last, err := selectPolicy(ctx, tx, "ORDER BY number DESC LIMIT 1")
			if err != nil {
				return err
			}
			if last.Version != expect {
				return ErrPolicyChanged
			}
		}
		return tx.QueryRowContext(ctx, `INSERT INTO policies (version, body, at, by, why) VALUES (?, ?, ?, ?, ?) RETURNING number`,
			p.Version, p.Body, p.At.Format(time.RFC3339Nano), by, why).Scan(&p.Number)
	})
	if err != nil {
		return Policy{}, fmt.Errorf("catalog store: put a policy: %w", err)
	}
	return p, nil
}

// Policy returns the policy of a version, or the one in force if version is empty. Before the first PutPolicy it returns
// ErrNoPolicy.
func (s *Store) Policy(ctx context.Context, version string) (Policy, error) {
	var out Policy
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		if version == "" {
			out, err = selectPolicy(ctx, tx, "ORDER BY number DESC LIMIT 1")
			return err
		}
		out, err = selectPolicy(ctx, tx, "WHERE version = ? ORDER BY number DESC LIMIT 1", version)
		if errors.Is(err, ErrNoPolicy) {
			return ErrUnknownVersion
		}
		return err
	})
	if err != nil {
		return Policy{}, fmt.Errorf("catalog store: policy: %w", err)
	}
	return out, nil
}

func selectPolicy(ctx context.Context, tx *sql.Tx, which string, args ...any) (Policy, error) {
	var p Policy
	var at string
	err := tx.QueryRowContext(ctx, `SELECT number, version, body, at, by, why FROM policies `+which, args...).
		Scan(&p.Number, &p.Version, &p.Body, &at, &p.By, &p.Why)
	if errors.Is(err, sql.ErrNoRows) {
		return p, ErrNoPolicy
	}
	if err != nil {
		return p, err
	}
	if p.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return p, damaged(err)
	}
	if sum := sha256.Sum256([]byte(p.Body)); hex.EncodeToString(sum[:]) != p.Version {
		return p, damaged(fmt.Errorf("policy %d does not match its version", p.Number))
	}
	return p, nil
}

// Policies returns all that were ever in force, newest first, without their bodies.
func (s *Store) Policies(ctx context.Context) ([]Policy, error) {
	out := []Policy{}
	err := s.read(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT number, version, at, by, why FROM policies ORDER BY number DESC`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p Policy
			var at string
			if err := rows.Scan(&p.Number, &p.Version, &at, &p.By, &p.Why); err != nil {
				return err
			}
			if p.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
				return damaged(err)
			}
			out = append(out, p)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("catalog store: policies: %w", err)
	}
	return out, nil
}

// AsOf returns what Latest would have returned at a moment: the edition that was the newest then, under the edits that
// were made by then. Before the first edition it returns ErrEmpty.
func (s *Store) AsOf(ctx context.Context, at time.Time) (*catalog.Snapshot, Edition, error) {
	var out *catalog.Snapshot
	var found Edition
	err := s.read(ctx, func(tx *sql.Tx) error {
		for e, err := range editions(ctx, tx) {
			if err != nil {
				return err
			}
			if e.At.After(at) {
				continue
			}
			found = e
			break
		}
		if found.Number == 0 {
			return ErrEmpty
		}
		source, err := s.snapshot(ctx, tx, found.Version)
		if err != nil {
			return err
		}
		edits, err := selectEdits(ctx, tx)
		if err != nil {
			return err
		}
		var then []catalog.Edit
		for _, e := range edits {
			if !e.At.After(at) {
				then = append(then, e)
			}
		}
		out, _, err = catalog.Apply(source, then)
		return err
	})
	if err != nil {
		return nil, Edition{}, fmt.Errorf("catalog store: as of %s: %w", at.Format(time.RFC3339), err)
	}
	return out, found, nil
}
