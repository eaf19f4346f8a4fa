// Sends transactions over one kept connection, with the standard library alone.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

var retryable = []string{"rate_limited", "no_leader", "overloaded", "internal"}

const attemptsMax = 5

type answer struct {
	Signature string `json:"signature"`
	Reason    string `json:"reason"`
	Error     string `json:"error"`
}

// send returns the signature, or an error for a reason that no repetition changes.
func send(client *http.Client, url, key string, transaction []byte) (string, error) {
	for attempt := 1; ; attempt++ {
		body := bytes.NewReader(transaction)
		request, err := http.NewRequest("POST", url+"/api/v1/sendRawTransaction", body)
		if err != nil {
			return "", err
		}
		request.Header.Set("api-x-token", key)
		request.Header.Set("content-type", "application/octet-stream")
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		var found answer
		err = json.NewDecoder(response.Body).Decode(&found)
		// A connection is kept only if its response was read to the end.
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil {
			return "", err
		}
		if found.Signature != "" {
			return found.Signature, nil
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", found.Reason, found.Error)
		if !slices.Contains(retryable, found.Reason) || attempt == attemptsMax {
			return "", fmt.Errorf("refused: %s", found.Reason)
		}
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func main() {
	url, key := os.Getenv("URL"), os.Getenv("KEY")
	client := &http.Client{Timeout: 10 * time.Second}
	// Warm-up: the connection is open before the first transaction is there.
	response, err := client.Get(url + "/ping")
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
	for _, path := range os.Args[1:] {
		transaction, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		signature, err := send(client, url, key, transaction)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(signature)
	}
}
