package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/catalog/store"
	"github.com/schemagate/schemagate/migrations"
)

func migrateCommand() *cobra.Command {
	c := &cobra.Command{Use: "migrate", Short: "Bring a catalog store to this version's schema, or see where it stands"}
	c.AddCommand(
		migrationsCommand("up", "Create the catalog store if it is missing and apply pending migrations", store.Migrate),
		migrationsCommand("status", "List the migrations and when each was applied", store.Migrations),
	)
	return c
}

func migrationsCommand(use, short string, do func(context.Context, string) ([]migrations.Migration, error)) *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Example: "  schemagate migrate " + use + " --store catalog.db",
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := stateFile(path, "catalog.db")
			if err != nil {
				return err
			}
			list, err := do(c.Context(), file)
			if err != nil {
				return err
			}
			if list == nil {
				list = []migrations.Migration{}
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), map[string]any{"store": file, "migrations": list})
			}
			if len(list) == 0 {
				fmt.Fprintf(c.OutOrStdout(), "%s is up to date\n", file)
			}
			for _, m := range list {
				state := "pending"
				if m.Applied {
					state = "applied " + m.At.Format(time.RFC3339)
				}
				fmt.Fprintf(c.OutOrStdout(), "%05d %-24s %s\n", m.Number, m.Name, state)
			}
			return nil
		},
	}
	c.Flags().StringVar(&path, "store", "", "catalog store (default in the user's state directory)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
