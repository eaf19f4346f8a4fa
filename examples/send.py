"""Sends transactions over one kept connection, with the standard library alone."""

import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

URL = urlsplit(os.environ.get("URL", "http://127.0.0.1:8080"))
HEADERS = {"api-x-token": os.environ.get("KEY", ""), "content-type": "application/octet-stream"}
RETRYABLE = ["rate_limited", "no_leader", "overloaded", "internal"]
ATTEMPTS_MAX = 5


def send(connection, transaction):
    """Returns the signature. Exits for a reason that no repetition changes."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        connection.request("POST", "/api/v1/sendRawTransaction", transaction, HEADERS)
        response = connection.getresponse()
        answer = json.loads(response.read())
        if answer["success"]:
            return answer["signature"]
        print(f"{answer['reason']}: {answer['error']}", file=sys.stderr)
        if answer["reason"] not in RETRYABLE or attempt == ATTEMPTS_MAX:
            sys.exit(1)
        time.sleep(float(response.headers.get("Retry-After", 1)))


secure = URL.scheme == "https"
connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
connection = connect(URL.netloc, timeout=10)
# Warm-up: the connection is open before the first transaction is there.
connection.request("GET", "/ping")
connection.getresponse().read()
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        print(send(connection, file.read()))
