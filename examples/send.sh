#!/usr/bin/env bash
#
# Sends transactions over one kept connection, with curl: all transfers of one run share it. --retry
# sends again what was answered with 429 (rate_limited), 503 (no_leader, overloaded) or 500
# (internal), after the seconds that Retry-After says, and what was not answered within 10 s.

set -euo pipefail

url=${URL:-http://127.0.0.1:8080}
answers=$(mktemp -d)
trap 'rm -rf "$answers"' EXIT

# Warm-up: the connection is open before the first transaction is sent.
transfers=(--silent --show-error --max-time 10 --output /dev/null "$url/ping")
number=0
for file in "$@"; do
  number=$((number + 1))
  transfers+=(--next --silent --show-error --output "$answers/$number" --retry 4 --max-time 10)
  transfers+=(--header "api-x-token: ${KEY:-}" --header "content-type: application/octet-stream")
  transfers+=(--data-binary "@$file" "$url/api/v1/sendRawTransaction")
done
status=0
# A failed transfer leaves the answers of the others, which may be signatures.
curl "${transfers[@]}" || status=1

for answer in $(seq "$number"); do
  text=$(cat "$answers/$answer" 2>/dev/null || true)
  if [[ $text =~ \"signature\":\"([^\"]+)\" ]]; then
    echo "${BASH_REMATCH[1]}"
  else
    echo "${!answer}: ${text:-no answer}" >&2
    status=1
  fi
done
exit "$status"
