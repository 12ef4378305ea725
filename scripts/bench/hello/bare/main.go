// Bare reads the card capacity with net/http and encoding/json. It is what the
// size of the other program is compared with.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	req, err := http.NewRequest(http.MethodGet, os.Getenv("CARDWIRE_BASE_URL")+"/account/capacity", http.NoBody) //nolint:noctx // as small as it can be
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("CARDWIRE_API_KEY"))
	resp, err := new(http.Client).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var response struct {
		Data int64 `json:"data"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return err
	}
	fmt.Println(response.Data)
	return nil
}
