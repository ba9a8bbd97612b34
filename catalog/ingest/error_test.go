package ingest

import (
	"errors"
	"testing"
)

func TestAnErrorOfADriverIsOneLineWithoutThePassword(t *testing.T) {
	cause := errors.New("cannot log in as u:tiger\n\tat host\n")
	err := oneLine(cause, "tiger")
	if got, want := err.Error(), "cannot log in as u:*** at host"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}
