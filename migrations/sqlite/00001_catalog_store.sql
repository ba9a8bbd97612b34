-- +goose Up

-- A part is a JSON array of catalog objects: a table with its columns, or one object of another kind. Equal parts of
-- different snapshots are one row.
CREATE TABLE parts (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE, -- SHA-256 of body
    body TEXT NOT NULL
) STRICT;

CREATE TABLE snapshots (
    id        INTEGER PRIMARY KEY,
    version   TEXT NOT NULL UNIQUE,
    databases TEXT NOT NULL, -- JSON array
    counts    TEXT NOT NULL  -- JSON object, number of objects by kind
) STRICT;

CREATE TABLE snapshot_parts (
    snapshot_id INTEGER NOT NULL REFERENCES snapshots (id),
    part_id     INTEGER NOT NULL REFERENCES parts (id),
    PRIMARY KEY (snapshot_id, part_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE editions (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    snapshot_id INTEGER NOT NULL REFERENCES snapshots (id),
    at          TEXT NOT NULL, -- RFC 3339, UTC
    by          TEXT NOT NULL,
    specs       TEXT NOT NULL  -- JSON array
) STRICT;

CREATE TABLE edits (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    ref    TEXT NOT NULL,
    field  TEXT NOT NULL,
    vals   TEXT NOT NULL, -- JSON array
    author TEXT NOT NULL,
    at     TEXT NOT NULL  -- RFC 3339, UTC
) STRICT;

-- History and edits only grow.

-- +goose StatementBegin
CREATE TRIGGER editions_stay BEFORE UPDATE ON editions
BEGIN SELECT RAISE(ABORT, 'an edition cannot be changed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER editions_remain BEFORE DELETE ON editions
BEGIN SELECT RAISE(ABORT, 'an edition cannot be deleted'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER edits_stay BEFORE UPDATE ON edits
BEGIN SELECT RAISE(ABORT, 'an edit cannot be changed; a later edit replaces it'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER edits_remain BEFORE DELETE ON edits
BEGIN SELECT RAISE(ABORT, 'an edit cannot be deleted; a later edit replaces it'); END;
-- +goose StatementEnd
