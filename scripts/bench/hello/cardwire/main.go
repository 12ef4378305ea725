// Cardwire reads the card capacity with cardwire: the smallest program that
// uses it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/cardwire/cardwire-go"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	client, err := cardwire.NewFromEnv()
	if err != nil {
		return err
	}
	capacity, err := client.CardCapacity(context.Background())
	if err != nil {
		return err
	}
	fmt.Println(capacity)
	return nil
}
