-- +goose Up

-- The policies that were in force, as they were written. The newest is the one that is.
CREATE TABLE policies (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    version TEXT NOT NULL, -- SHA-256 of body, in hex
    body    TEXT NOT NULL, -- a policy file
    at      TEXT NOT NULL, -- RFC 3339, UTC
    by      TEXT NOT NULL,
    why     TEXT NOT NULL
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER policies_stay BEFORE UPDATE ON policies
BEGIN SELECT RAISE(ABORT, 'a policy cannot be changed; a later one replaces it'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER policies_remain BEFORE DELETE ON policies
BEGIN SELECT RAISE(ABORT, 'a policy cannot be deleted; a later one replaces it'); END;
-- +goose StatementEnd
