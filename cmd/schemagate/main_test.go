package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"schemagate": func() {
			os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs the command line as its users do. A script that needs benchmark data begins with [bench].
func TestScripts(t *testing.T) {
	bench := os.Getenv("SCHEMAGATE_BENCH")
	if bench == "" && os.Getenv("CI") == "true" {
		t.Fatal("SCHEMAGATE_BENCH is not set; CI needs the benchmark data")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			env.Setenv("BENCH", bench)
			return nil
		},
		Condition: func(cond string) (bool, error) { return cond == "bench" && bench != "", nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// sqlite FILE SCRIPT builds a database file.
			"sqlite": func(ts *testscript.TestScript, _ bool, args []string) {
				db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
				ts.Check(err)
				defer db.Close()
				_, err = db.Exec(ts.ReadFile(args[1]))
				ts.Check(err)
			},
			// damage FILE COPY copies a database file and overwrites all of it but the first page's header.
			"damage": func(ts *testscript.TestScript, _ bool, args []string) {
				data := []byte(ts.ReadFile(args[0]))
				for i := 100; i < len(data); i++ {
					data[i] = 0xff
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o644))
			},
			// repeat FILE TEXT N writes a text N times.
			"repeat": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[2])
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[1], n)), 0o644))
			},
			// exits CODE COMMAND... runs a command that must end with that exit code.
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				err := ts.Exec(args[1], args[2:]...)
				code := "0"
				if err != nil {
					code = exitStatus(err)
				}
				if code != args[0] {
					ts.Fatalf("exit code %s, want %s", code, args[0])
				}
			},
		},
	})
}

func exitStatus(err error) string {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return strconv.Itoa(e.ExitCode())
	}
	return err.Error()
}
