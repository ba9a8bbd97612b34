package audit

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Key signs checkpoints.
type Key struct {
	signer note.Signer
	// Public is what others need to check its signatures, in one line.
	Public string
}

// Name is what the key calls the logs that it signs for.
func (k Key) Name() string { return k.signer.Name() }

// OpenKey reads the Ed25519 key in a file, and makes one, readable only by its owner, if the file is missing. The file
// has two lines, the private key and the public one.
func OpenKey(path string) (Key, error) {
	k, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			k, err = readKey(path)
		}
	}
	if err != nil {
		return Key{}, fmt.Errorf("open the key %s: %w", path, err)
	}
	return k, nil
}

func readKey(path string) (Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Key{}, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return Key{}, fmt.Errorf("others may read it (%v); chmod 600 it, and make another if they did", info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return Key{}, err
	}
	private, rest, _ := strings.Cut(string(b), "\n")
	public, _, _ := strings.Cut(rest, "\n")
	s, err := note.NewSigner(private)
	if err != nil {
		return Key{}, errors.New("its first line is not a private key")
	}
	v, err := note.NewVerifier(public)
	if err != nil || v.KeyHash() != s.KeyHash() { // which covers the name too
		return Key{}, errors.New("its second line is not the public key of the first")
	}
	return Key{signer: s, Public: public}, nil
}

// makeKey writes a new key, whole or not at all, unless another process is faster.
func makeKey(path string) error {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	private, public, err := note.GenerateKey(rand.Reader, "schemagate-audit-"+strings.ToLower(rand.Text()[:10]))
	if err != nil {
		return err
	}
	return writeNew(path, fmt.Appendf(nil, "%s\n%s\n", private, public))
}

// writeNew writes a file, whole or not at all, readable only by its owner. A file that is there already stays.
func writeNew(path string, b []byte) error {
	temp, err := writeTemp(path, b)
	if err != nil {
		return err
	}
	err = os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err = errors.Join(err, os.Remove(temp)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// replace writes a file, whole or not at all, readable only by its owner.
func replace(path string, b []byte) error {
	temp, err := writeTemp(path, b)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncFolder(filepath.Dir(path))
}

// writeTemp writes a file beside the one at path, durably, and returns its name.
func writeTemp(path string, b []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// Verifier checks the signatures of one key.
type Verifier = note.Verifier

// ReadVerifier reads the public key in a file, which may also be the file of a private key.
func ReadVerifier(path string) (Verifier, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the public key: %w", err)
	}
	for line := range bytes.Lines(b) {
		if v, err := note.NewVerifier(strings.TrimSpace(string(line))); err == nil {
			return v, nil
		}
	}
	return nil, fmt.Errorf("read the public key %s: it holds none; want a line as schemagate-audit-NAME+HASH+KEY", path)
}
