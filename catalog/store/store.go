// Package store keeps catalogs in a SQLite file: source snapshots, the history of editions, and what stewards edited.
//
// A snapshot is kept as a list of parts, each a table with its columns or one object of another kind, as JSON under the
// hash of its bytes. A new ingest therefore stores only the tables that changed, a catalog of 100,000 columns is some
// thousand rows rather than a hundred thousand, and the file can be read with any SQLite tool. Parts are checked against
// their hashes, and snapshots against their versions, whenever they are read.
//
// The driver is modernc.org/sqlite, which is maintained, follows SQLite's releases and needs no C compiler.
package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/schemagate/schemagate/catalog"
)

// Faults that callers tell apart.
var (
	ErrEmpty          = errors.New("the catalog store is empty; ingest a source first")
	ErrUnknownVersion = errors.New("nothing of that version is stored; history lists what is")
	ErrUnknownObject  = errors.New("the newest edition holds no such object")
)

// Store is an open catalog store. It is safe for concurrent use, also by several processes on one file.
type Store struct {
	db *sql.DB

	mu   sync.Mutex
	last *catalog.Snapshot // the source snapshot used last; snapshots never change, so it is never stale
}

// Edition is one line of history: at some time somebody made a source snapshot the newest.
type Edition struct {
	Number  int64                `json:"number"` // counts from 1
	Version string               `json:"version"`
	At      time.Time            `json:"at"` // UTC
	By      string               `json:"by"`
	Specs   []string             `json:"specs"`  // the sources it was ingested from
	Counts  map[catalog.Kind]int `json:"counts"` // objects of each kind
}

// Close releases the file.
func (s *Store) Close() error { return s.db.Close() }

// Put makes a source snapshot the newest edition, ingested from the sources that specs name. All of it is stored or,
// after an error or a crash, none of it. A snapshot that is stored already adds a line of history and nothing else.
func (s *Store) Put(ctx context.Context, snapshot *catalog.Snapshot, specs []string, by string) (Edition, error) {
	e := Edition{
		Version: snapshot.Version(), At: time.Now().UTC(), By: by,
		Specs: append([]string{}, specs...), Counts: map[catalog.Kind]int{},
	}
	for _, k := range catalog.Kinds {
		e.Counts[k] = snapshot.OfKind(k).Len()
	}
	err := s.write(ctx, func(tx *sql.Tx) error {
		var id int64
		err := tx.QueryRowContext(ctx, `SELECT id FROM snapshots WHERE version = ?`, e.Version).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			id, err = insertSnapshot(ctx, tx, snapshot, e.Counts)
		}
		if err != nil {
			return err
		}
		specs, err := json.Marshal(e.Specs)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `INSERT INTO editions (snapshot_id, at, by, specs) VALUES (?, ?, ?, ?) RETURNING number`,
			id, e.At.Format(time.RFC3339Nano), e.By, string(specs)).Scan(&e.Number)
	})
	if err != nil {
		return Edition{}, fmt.Errorf("catalog store: put: %w", err)
	}
	s.remember(snapshot)
	return e, nil
}

func insertSnapshot(ctx context.Context, tx *sql.Tx, s *catalog.Snapshot, counts map[catalog.Kind]int) (int64, error) {
	databases, err := json.Marshal(s.Databases())
	if err != nil {
		return 0, err
	}
	numbers, err := json.Marshal(counts)
	if err != nil {
		return 0, err
	}
	var id int64
	err = tx.QueryRowContext(ctx, `INSERT INTO snapshots (version, databases, counts) VALUES (?, ?, ?) RETURNING id`,
		s.Version(), string(databases), string(numbers)).Scan(&id)
	if err != nil {
		return 0, err
	}
	part, err := tx.PrepareContext(ctx, `INSERT OR IGNORE INTO parts (hash, body) VALUES (?, ?)`)
	if err != nil {
		return 0, err
	}
	defer part.Close()
	member, err := tx.PrepareContext(ctx, `INSERT INTO snapshot_parts (snapshot_id, part_id) SELECT ?, id FROM parts WHERE hash = ?`)
	if err != nil {
		return 0, err
	}
	defer member.Close()
	for objects := range parts(s) {
		body, err := encode(objects)
		if err != nil {
			return 0, err
		}
		hash := sha256.Sum256(body)
		if _, err := part.ExecContext(ctx, hash[:], string(body)); err != nil {
			return 0, err
		}
		if _, err := member.ExecContext(ctx, id, hash[:]); err != nil {
			return 0, err
		}
	}
	return id, nil
}

// parts splits a snapshot into what is stored together.
func parts(s *catalog.Snapshot) iter.Seq[[]catalog.Object] {
	return func(yield func([]catalog.Object) bool) {
		for _, k := range catalog.Kinds {
			for _, o := range s.Objects(k) {
				objects := []catalog.Object{o}
				switch k {
				case catalog.KindColumn: // stored with its table
					continue
				case catalog.KindTable:
					objects = append(objects, s.Columns(o.ID)...)
				}
				if !yield(objects) {
					return
				}
			}
		}
	}
}

// encode refuses text that is not UTF-8: JSON replaces its bytes, so that another snapshot would be read back.
func encode(objects []catalog.Object) ([]byte, error) {
	body, err := json.Marshal(objects)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(body, []byte(`\ufffd`)) {
		return body, nil
	}
	for _, o := range objects {
		written, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		var read catalog.Object
		if err := json.Unmarshal(written, &read); err != nil {
			return nil, err
		}
		again, err := json.Marshal(read)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(written, again) {
			return nil, fmt.Errorf("%s holds text that is not UTF-8; clean it where it is ingested", o.Ref)
		}
	}
	return body, nil
}

// Latest returns the newest source snapshot with all edits laid over it, and the edition that it belongs to. Edits of
// objects that the snapshot does not hold wait until one does. Before the first Put it returns ErrEmpty.
func (s *Store) Latest(ctx context.Context) (*catalog.Snapshot, Edition, error) {
	var out *catalog.Snapshot
	var e Edition
	err := s.read(ctx, func(tx *sql.Tx) error {
		var err error
		if e, err = newest(ctx, tx); err != nil {
			return err
		}
		source, err := s.snapshot(ctx, tx, e.Version)
		if err != nil {
			return err
		}
		edits, err := selectEdits(ctx, tx)
		if err != nil {
			return err
		}
		out, _, err = catalog.Apply(source, edits)
		return err
	})
	if err != nil {
		return nil, Edition{}, fmt.Errorf("catalog store: latest: %w", err)
	}
	return out, e, nil
}

// At returns a source snapshot, without edits, by its version. A version that was never put is ErrUnknownVersion.
func (s *Store) At(ctx context.Context, version string) (*catalog.Snapshot, error) {
	var out *catalog.Snapshot
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		out, err = s.snapshot(ctx, tx, version)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("catalog store: snapshot %q: %w", version, err)
	}
	return out, nil
}

// History returns all editions, newest first.
func (s *Store) History(ctx context.Context) ([]Edition, error) {
	out := []Edition{}
	err := s.read(ctx, func(tx *sql.Tx) error {
		for e, err := range editions(ctx, tx) {
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("catalog store: history: %w", err)
	}
	return out, nil
}

// Edit adds edits, all of them or none, and keeps each under its object's own spelling. An edit must name its author
// and an object of the newest edition (else ErrUnknownObject); one without a time gets the present. What was edited
// before is replaced in what Latest returns, and stays in Edits.
func (s *Store) Edit(ctx context.Context, edits ...catalog.Edit) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		e, err := newest(ctx, tx)
		if err != nil {
			return err
		}
		source, err := s.snapshot(ctx, tx, e.Version)
		if err != nil {
			return err
		}
		for _, edit := range edits {
			if err := insertEdit(ctx, tx, source, edit); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("catalog store: edit: %w", err)
	}
	return nil
}

func insertEdit(ctx context.Context, tx *sql.Tx, source *catalog.Snapshot, e catalog.Edit) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if e.Author == "" {
		return fmt.Errorf("an edit of %s must name its author", e.Ref)
	}
	o, ok := source.Lookup(e.Ref)
	if !ok {
		return fmt.Errorf("%s %s: %w", e.Ref.Kind, e.Ref, ErrUnknownObject)
	}
	ref, err := o.Ref.MarshalText()
	if err != nil {
		return err
	}
	values, err := json.Marshal(append([]string{}, e.Values...))
	if err != nil {
		return err
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO edits (ref, field, vals, author, at) VALUES (?, ?, ?, ?, ?)`,
		string(ref), string(e.Field), string(values), e.Author, e.At.UTC().Format(time.RFC3339Nano))
	return err
}

// Edits returns every edit there was, oldest first, also of objects that the newest edition does not hold.
func (s *Store) Edits(ctx context.Context) ([]catalog.Edit, error) {
	var out []catalog.Edit
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		out, err = selectEdits(ctx, tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("catalog store: edits: %w", err)
	}
	return out, nil
}

func selectEdits(ctx context.Context, tx *sql.Tx) ([]catalog.Edit, error) {
	rows, err := tx.QueryContext(ctx, `SELECT ref, field, vals, author, at FROM edits ORDER BY number`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []catalog.Edit{}
	for rows.Next() {
		var e catalog.Edit
		var ref, values, at string
		if err := rows.Scan(&ref, &e.Field, &values, &e.Author, &at); err != nil {
			return nil, err
		}
		if err := e.Ref.UnmarshalText([]byte(ref)); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(values), &e.Values); err != nil {
			return nil, fmt.Errorf("values of an edit of %s: %w", e.Ref, err)
		}
		if e.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

func newest(ctx context.Context, tx *sql.Tx) (Edition, error) {
	for e, err := range editions(ctx, tx) {
		return e, err
	}
	return Edition{}, ErrEmpty
}

// editions yields the editions, newest first.
func editions(ctx context.Context, tx *sql.Tx) iter.Seq2[Edition, error] {
	return func(yield func(Edition, error) bool) {
		rows, err := tx.QueryContext(ctx, `SELECT e.number, s.version, e.at, e.by, e.specs, s.counts
			FROM editions e JOIN snapshots s ON s.id = e.snapshot_id ORDER BY e.number DESC`)
		if err != nil {
			yield(Edition{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var e Edition
			var at, specs, counts string
			if err = rows.Scan(&e.Number, &e.Version, &at, &e.By, &specs, &counts); err == nil {
				e.At, err = time.Parse(time.RFC3339Nano, at)
			}
			if err == nil {
				err = errors.Join(json.Unmarshal([]byte(specs), &e.Specs), json.Unmarshal([]byte(counts), &e.Counts))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Edition{}, err)
		}
	}
}

// snapshot reads a source snapshot, unless it is the one used last.
func (s *Store) snapshot(ctx context.Context, tx *sql.Tx, version string) (*catalog.Snapshot, error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last != nil && last.Version() == version {
		return last, nil
	}
	var id int64
	var text string
	err := tx.QueryRowContext(ctx, `SELECT id, databases FROM snapshots WHERE version = ?`, version).Scan(&id, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknownVersion
	}
	if err != nil {
		return nil, err
	}
	var databases []catalog.Database
	if err := json.Unmarshal([]byte(text), &databases); err != nil {
		return nil, damaged(err)
	}
	objects, err := selectObjects(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	out, err := catalog.Build(databases, objects)
	if err != nil {
		return nil, damaged(err)
	}
	if out.Version() != version {
		return nil, errors.New("it does not read back as the version it was stored under: parts of it are missing, or " +
			"another release stored it; ingest again (edits are kept)")
	}
	s.remember(out)
	return out, nil
}

func selectObjects(ctx context.Context, tx *sql.Tx, snapshot int64) ([]catalog.Object, error) {
	rows, err := tx.QueryContext(ctx, `SELECT p.hash, p.body FROM snapshot_parts m JOIN parts p ON p.id = m.part_id
		WHERE m.snapshot_id = ?`, snapshot)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var objects []catalog.Object
	for rows.Next() {
		var hash, body sql.RawBytes
		if err := rows.Scan(&hash, &body); err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(body); !bytes.Equal(sum[:], hash) {
			return nil, damaged(errors.New("the hash of a part does not match"))
		}
		var part []catalog.Object
		if err := json.Unmarshal(body, &part); err != nil {
			return nil, damaged(err)
		}
		objects = append(objects, part...)
	}
	return objects, rows.Err()
}

func damaged(err error) error {
	return fmt.Errorf("the stored snapshot is damaged; restore the file or ingest again: %w", err)
}

func (s *Store) remember(snapshot *catalog.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = snapshot
}

func (s *Store) read(ctx context.Context, do func(*sql.Tx) error) error {
	return transact(ctx, s.db, true, do)
}

func (s *Store) write(ctx context.Context, do func(*sql.Tx) error) error {
	return transact(ctx, s.db, false, do)
}
