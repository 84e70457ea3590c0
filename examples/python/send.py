"""Sends lines of NDJSON from standard input. Every line is stored once, whatever breaks on the way.

INLET_INGEST_URL and INLET_API_KEY say where to and as whom, INLET_ENDPOINT to which endpoint if the key is for several.
Needs Python 3.9 or newer, and nothing else.
"""
import gzip
import json
import os
import random
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

url = os.environ["INLET_INGEST_URL"].rstrip("/") + "/v1/ingest"
if "INLET_ENDPOINT" in os.environ:
    url += "?" + urllib.parse.urlencode({"endpoint": os.environ["INLET_ENDPOINT"]})

BYTES = 1 << 20  # of a batch, before compression
SECONDS = 300  # how long a batch is attempted; below 24 hours


def batches(lines):
    batch = bytearray()
    for line in lines:
        line = line.rstrip(b"\r\n")
        if not line.strip():
            continue
        if batch and len(batch) + len(line) >= BYTES:
            yield bytes(batch)
            batch.clear()
        batch += line + b"\n"
    if batch:
        yield bytes(batch)


def send(batch):
    """Returns the receipt once the batch is on disk."""
    request = urllib.request.Request(url, gzip.compress(batch))
    request.add_header("X-API-Key", os.environ["INLET_API_KEY"])
    request.add_header("Content-Type", "application/x-ndjson")
    request.add_header("Content-Encoding", "gzip")
    # The same key for every attempt: an attempt that was stored although its response was lost is not stored again.
    request.add_header("Idempotency-Key", str(uuid.uuid4()))
    give_up = time.monotonic() + SECONDS
    delay = 0.1
    while True:
        wait = delay * random.uniform(0.5, 1)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")
            if error.code not in (408, 429) and error.code < 500:
                raise SystemExit(f"{error.code}: {detail}")
            wait = max(wait, float(error.headers.get("Retry-After", 0)))
        except (OSError, ValueError) as error:  # no response, or half of one
            detail = str(error)
        if time.monotonic() + wait > give_up:
            raise SystemExit(f"gave up: {detail}")
        time.sleep(wait)
        delay = min(delay * 2, 10)


total = 0
for batch in batches(sys.stdin.buffer):
    total += send(batch)["accepted_records"]
print(f"{total} records stored")
