// Sends lines of NDJSON from standard input. Every line is stored once, whatever breaks on the way.
//
// INLET_INGEST_URL and INLET_API_KEY say where to and as whom, INLET_ENDPOINT to which endpoint if the key is for several.
// Needs Go 1.22 or newer, and nothing else: go run send.go < events.ndjson
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	mathrand "math/rand"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	batchBytes = 1 << 20
	lineBytes  = 1 << 20         // the longest record that Inlet takes
	patience   = 5 * time.Minute // how long a batch is attempted; below 24 hours
)

type receipt struct {
	Records int    `json:"accepted_records"`
	Node    string `json:"node_id"`
	Segment int64  `json:"segment_seq"`
}

func main() {
	log.SetFlags(0)
	target := strings.TrimRight(os.Getenv("INLET_INGEST_URL"), "/") + "/v1/ingest"
	if endpoint := os.Getenv("INLET_ENDPOINT"); endpoint != "" {
		target += "?endpoint=" + url.QueryEscape(endpoint)
	}
	total := 0
	var batch bytes.Buffer
	flush := func() {
		if batch.Len() == 0 {
			return
		}
		stored, err := send(target, os.Getenv("INLET_API_KEY"), batch.Bytes())
		if err != nil {
			log.Fatal(err)
		}
		total += stored.Records
		batch.Reset()
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 64<<10), lineBytes+2)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if batch.Len()+len(lines.Bytes()) >= batchBytes {
			flush()
		}
		batch.Write(lines.Bytes())
		batch.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
	flush()
	fmt.Printf("%d records stored\n", total)
}

// send returns the receipt once the batch is on disk.
func send(target, key string, batch []byte) (*receipt, error) {
	var body bytes.Buffer
	compressor := gzip.NewWriter(&body)
	compressor.Write(batch)
	compressor.Close()
	// The same key for every attempt: an attempt that was stored although its response was lost is not stored again.
	random := make([]byte, 16)
	rand.Read(random)
	idempotencyKey := hex.EncodeToString(random)
	giveUp := time.Now().Add(patience)
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 10*time.Second) {
		stored, retryAfter, err := attempt(target, key, idempotencyKey, body.Bytes())
		if err == nil || retryAfter < 0 {
			return stored, err
		}
		wait := max(delay/2+time.Duration(mathrand.Int63n(int64(delay/2))), retryAfter)
		if time.Now().Add(wait).After(giveUp) {
			return nil, fmt.Errorf("gave up: %w", err)
		}
		time.Sleep(wait)
	}
}

// attempt sends the batch once. If it fails, it says how long to wait before the next attempt; below zero if that is useless.
func attempt(target, key, idempotencyKey string, body []byte) (*receipt, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, -1, err
	}
	request.Header.Set("X-API-Key", key)
	request.Header.Set("Content-Type", "application/x-ndjson")
	request.Header.Set("Content-Encoding", "gzip")
	request.Header.Set("Idempotency-Key", idempotencyKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, 0, err
	}
	if response.StatusCode == http.StatusAccepted {
		var stored receipt
		return &stored, 0, json.Unmarshal(text, &stored)
	}
	err = fmt.Errorf("%s: %s", response.Status, text)
	switch code := response.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		seconds, _ := strconv.ParseFloat(response.Header.Get("Retry-After"), 64)
		return nil, time.Duration(math.Max(0, seconds) * float64(time.Second)), err
	default:
		return nil, -1, err
	}
}
