"""Submits files with one signed transaction each over QUIC (touchdown/1), and prints each verdict.

EDGE=host:port KEY=… python3 examples/quic.py transaction.bin …

Needs `pip install aioquic`. AUTHORITY names a file with the authority of the edge's certificate, as
PEM; without it the system's authorities count. Instead of KEY, KEYPAIR names a file of solana-keygen
whose public key is registered. The format is docs/quic.md.
"""

import asyncio
import datetime
import json
import os
import struct
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StopSendingReceived, StreamDataReceived, StreamReset
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

STATES = {0: "refused", 1: "accepted", 5: "processed", 6: "landed", 7: "expired", 8: "dropped"}
CONTROL, HELLO, LIMITS, TIPS = 0x00, 0x01, 0x81, 0x82
VERDICT_BYTES = 88
TIMEOUT_SECONDS = 10


class Refused(Exception):
    """The edge closed the connection, or there was no answer."""


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.limits = asyncio.get_running_loop().create_future()
        # Where `connect` fails, nobody waits for them.
        self.limits.add_done_callback(lambda limits: limits.cancelled() or limits.exception())
        self.verdicts = {}
        self.bytes = {}
        self.control_stream = None

    def hello(self, key):
        self.control_stream = self._quic.get_next_available_stream_id()
        content = struct.pack("<BB", 1, 0) + key.encode("ascii")
        head = struct.pack("<BBBH", CONTROL, HELLO, 0, len(content))
        self._quic.send_stream_data(self.control_stream, head + content, end_stream=True)
        self.transmit()

    async def submit(self, transaction):
        stream = self._quic.get_next_available_stream_id()
        verdict = asyncio.get_running_loop().create_future()
        self.verdicts[stream] = verdict
        self.bytes[stream] = b""
        self._quic.send_stream_data(stream, transaction, end_stream=True)
        self.transmit()
        return await asyncio.wait_for(verdict, TIMEOUT_SECONDS)

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            data = self.bytes.get(event.stream_id, b"") + event.data
            self.bytes[event.stream_id] = data
            if event.stream_id == self.control_stream:
                self.bytes[event.stream_id] = self.read_frames(data)
            elif event.end_stream and len(data) == VERDICT_BYTES:
                self.end(self.verdicts.pop(event.stream_id), read_verdict(data))
        elif isinstance(event, (StreamReset, StopSendingReceived)):
            # A refused stream is stopped and has its verdict all the same; a reset one has none.
            if isinstance(event, StreamReset) and event.stream_id in self.verdicts:
                self.fail(self.verdicts.pop(event.stream_id), f"reset: {event.error_code:#x}")
        elif isinstance(event, ConnectionTerminated):
            reason = f"the connection is closed: {event.error_code:#x} {event.reason_phrase}"
            for waiting in [self.limits, *self.verdicts.values()]:
                self.fail(waiting, reason)

    def read_frames(self, data):
        while len(data) >= 4:
            kind, _, size = struct.unpack_from("<BBH", data)
            if len(data) < 4 + size:
                break
            content, data = data[4 : 4 + size], data[4 + size :]
            if kind == LIMITS:
                self.end(self.limits, struct.unpack_from("<dIIII", content))
        return data

    def end(self, waiting, result):
        if not waiting.done():
            waiting.set_result(result)

    def fail(self, waiting, reason):
        if not waiting.done():
            waiting.set_exception(Refused(reason))


def read_verdict(data):
    version, state, code, microseconds, credit, bits, slot = struct.unpack_from("<BBHIIIQ", data)
    if version != 1:
        raise Refused(f"a verdict of version {version}")
    return STATES.get(state, "accepted"), code, microseconds, credit, slot, data[24:88]


def use_keypair(configuration, file):
    """A self-signed certificate: its key alone counts."""
    with open(file) as opened:
        seed = bytes(json.load(opened)[:32])
    key = Ed25519PrivateKey.from_private_bytes(seed)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now,
        not_valid_after=now + datetime.timedelta(days=365),
    )
    configuration.certificate = builder.sign(key, None)
    configuration.private_key = key


async def main(files):
    host, _, port = os.environ["EDGE"].rpartition(":")
    host = host.strip("[]")  # Of an IPv6 address.
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=["touchdown/1"], server_name=host, idle_timeout=TIMEOUT_SECONDS
    )
    if "AUTHORITY" in os.environ:
        configuration.load_verify_locations(os.environ["AUTHORITY"])
    if "KEYPAIR" in os.environ:
        use_keypair(configuration, os.environ["KEYPAIR"])
    async with connect(host, int(port), configuration=configuration, create_protocol=Client) as client:
        client.hello(os.environ.get("KEY", ""))
        rate, burst, credit, *_ = await asyncio.wait_for(client.limits, TIMEOUT_SECONDS)
        print(f"{rate:g} a second, {burst} at once, {credit} now", file=sys.stderr)
        for file in files:
            with open(file, "rb") as opened:
                transaction = opened.read()
            state, code, microseconds, *_ = await client.submit(transaction)
            print(f"{file}: {state}{f' {code:#x}' if code else ''} after {microseconds} us")


try:
    asyncio.run(main(sys.argv[1:]))
except (Refused, ConnectionError, asyncio.TimeoutError) as error:
    # A timeout has no text of its own.
    text = str(error) or f"no answer within {TIMEOUT_SECONDS} s"
    sys.exit(f"{type(error).__name__}: {text}")
