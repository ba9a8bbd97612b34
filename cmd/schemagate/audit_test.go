package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl/audit"
)

func TestAuditProvesARecordToWhoHasThePublicKeyAlone(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	l, err := audit.Open(t.Context(), file("audit.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var ids []string
	for _, question := range []string{"one", "two", "three"} {
		id, err := l.Append(t.Context(), audit.Record{Action: "ask", Principal: "ana", Question: question, Outcome: audit.Answered})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	invoke := func(want int, args ...string) string {
		t.Helper()
		var out, messages bytes.Buffer
		if code := run(t.Context(), append([]string{"audit"}, args...), nil, &out, &messages); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s", args, code, want, messages.String())
		}
		return out.String() + messages.String()
	}
	keep := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file(name)
	}

	if got := invoke(2, "prove", ids[1], "--audit", file("audit.jsonl")); !strings.Contains(got, "public key") {
		t.Errorf("without a key: %s", got)
	}
	public := keep("public.key", invoke(0, "checkpoint", "--public", "--audit", file("audit.jsonl")))
	if got := invoke(2, "prove", ids[1], "--audit", file("audit.jsonl")); !strings.Contains(got, "sign one with schemagate audit checkpoint") {
		t.Errorf("without a checkpoint: %s", got)
	}
	invoke(0, "checkpoint", "--audit", file("audit.jsonl"))
	proof := invoke(0, "prove", ids[1], "--audit", file("audit.jsonl"))
	elsewhere := keep("proof.json", proof)
	if got := invoke(0, "prove", "--check", elsewhere, "--key", public); !strings.Contains(got, "record 2 with the hash") || !strings.Contains(got, ids[1]) {
		t.Error(got)
	}
	var shown struct {
		OK     bool
		Seq    uint64
		Record struct{ Question string }
	}
	if err := json.Unmarshal([]byte(invoke(0, "prove", "--check", elsewhere, "--key", public, "--json")), &shown); err != nil || !shown.OK || shown.Seq != 2 || shown.Record.Question != "two" {
		t.Errorf("%+v, %v", shown, err)
	}
	forged := keep("forged.json", strings.Replace(proof, "two", "harmless", 1))
	if got := invoke(4, "prove", "--check", forged, "--key", public); !strings.Contains(got, "does not hold") {
		t.Error(got)
	}
	bare := invoke(0, "prove", ids[1], "--hash-only", "--audit", file("audit.jsonl"))
	if strings.Contains(bare, "two") || strings.Contains(bare, "ana") {
		t.Errorf("content is in it: %s", bare)
	}
	invoke(0, "prove", "--check", keep("bare.json", bare), "--key", public)

	if got := invoke(0, "show", ids[2], "--audit", file("audit.jsonl")); !strings.Contains(got, "question: three\n") || !strings.Contains(got, "number: 3\n") {
		t.Error(got)
	}
	if got := invoke(0, "show", ids[2], "--json", "--audit", file("audit.jsonl")); !strings.Contains(got, `"question": "three"`) {
		t.Error(got)
	}
	invoke(0, "retain", "--older", "0d", "--audit", file("audit.jsonl"))
	if got := invoke(0, "show", ids[1], "--audit", file("audit.jsonl")); !strings.Contains(got, "removed by retention") {
		t.Error(got)
	}
	if got := invoke(0, "prove", ids[1], "--audit", file("audit.jsonl")); !strings.Contains(got, "removed") {
		t.Error(got)
	}
}
