"""Reads the files of a run as docs/formats.md describes them, and checks that they agree.

It is written from that page and shares no code with the programs, so that an error of theirs is not repeated here.
"""
import collections
import hashlib
import os
import struct

PAGE, BLOCK = 4096, 64
OWNER = struct.Struct("<256sII")  # run id, member, unused
EVERY_MEMBER = 2**32 - 1


class Damaged(Exception):
    """A file that is not as the page says; the message names it."""


def _table():
    entries = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        entries.append(value)
    return entries


CRC_TABLE = _table()


def crc32c(*parts):
    crc = 0xFFFFFFFF
    for part in parts:
        for byte in part:
            crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def require(condition, path, *what):
    if not condition:
        raise Damaged(f"{path}: " + " ".join(map(str, what)))


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise Damaged(f"{path}: missing") from None


def unframe(path, data, magic, version):
    """The payload of the frame, and what follows it."""
    require(len(data) >= 24, path, "ends in its frame")
    found, number, crc, length = struct.unpack_from("<8sIIQ", data)
    require(found == magic, path, "magic", found)
    require(number == version, path, "version", number)
    require(24 + length <= len(data), path, "ends in its payload")
    payload = data[24:24 + length]
    require(crc32c(struct.pack("<IQ", number, length), payload) == crc, path, "checksum of the frame")
    return payload, data[24 + length:]


def checked(path, word, place):
    number = word & (1 << 48) - 1
    check = crc32c(struct.pack("<QQ", number, place)) & 0xFFFF | 0x8000
    require(word >> 48 == check, path, f"checked word {word:016x} at place {place}")
    return number


def name_of(field):
    return field.split(b"\0", 1)[0].decode()


def owner(path, payload, member):
    """The run that a file of this member belongs to."""
    run_id, found, unused = OWNER.unpack_from(payload)
    require((found, unused) == (member, 0), path, "of member", found)
    return name_of(run_id)


class Ring:
    """records: by number, those that are readable."""

    def __init__(self, path, member):
        data = content(path)
        payload, _ = unframe(path, data, b"DCRINGS\n", 4)
        require(len(payload) == 32 + OWNER.size and len(data) >= PAGE, path, "sizes")
        self.fingerprint, self.record_bytes, self.kept, self.guard = struct.unpack_from("<4Q", payload)
        self.run_id = owner(path, payload[32:], member)
        words = struct.unpack_from("<5Q", data, 320)
        self.cursor, *self.counters = (checked(path, word, place) for place, word in enumerate(words))
        blocks = (self.kept + self.guard + BLOCK - 1) // BLOCK + 1
        size = 16 + BLOCK * self.record_bytes
        require(len(data) >= PAGE + blocks * size, path, len(data), "bytes for", blocks, "blocks")
        self.records = {}
        first = max(0, self.cursor - self.kept)
        for block in range(first // BLOCK, (self.cursor + BLOCK - 1) // BLOCK):
            begin = PAGE + block % blocks * size
            count = min(BLOCK, self.cursor - BLOCK * block)
            records = data[begin + 16:begin + 16 + count * self.record_bytes]
            sum_of = (count, crc32c(struct.pack("<Q", block), records))
            sums = [struct.unpack_from("<II", data, begin + offset) for offset in (0, 8)]
            require(sum_of in sums, path, "checksum of block", block)
            for index in range(count):
                number = BLOCK * block + index
                if number >= first:
                    self.records[number] = records[index * self.record_bytes:(index + 1) * self.record_bytes]


Row = collections.namedtuple("Row", "cost absorbing last environment episode step incarnation update session sequence told")


class RowReader:
    """Rows of a task with these sizes under the acting rule safe_map, or of an on-policy algorithm, which cuts episodes at the end of an
    epoch and goes on with them. `told`: the columns before absorbing, as bytes."""

    def __init__(self, observation, actions, on_policy=False):
        self.on_policy = on_policy
        numbers = observation + actions + 1 + 1 + observation + actions + (1 if on_policy else 2)
        self.cost = 4 * (observation + actions + 1)
        self.flags = 4 * numbers
        self.counts = (self.flags + 2 + 3) // 4 * 4
        self.update = (self.counts + 16 + 7) // 8 * 8
        self.session = self.update + 8
        self.sequence = (self.session + 4 + 7) // 8 * 8
        self.bytes = self.sequence + 8

    def read(self, record):
        cost, = struct.unpack_from("<f", record, self.cost)
        absorbing, last = record[self.flags], record[self.flags + 1]
        environment, episode, step, incarnation = struct.unpack_from("<4I", record, self.counts)
        update, = struct.unpack_from("<Q", record, self.update)
        session, = struct.unpack_from("<I", record, self.session)
        sequence, = struct.unpack_from("<Q", record, self.sequence)
        return Row(cost, absorbing, last, environment, episode, step, incarnation, update, session, sequence, record[:self.flags])


def fields(path, message):
    """The fields of a Protocol Buffers message: lists by number. Varints and fixed numbers as integers, the others as bytes."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            require(at < len(message), path, "message ends early")
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            found[number].append(varint())
            continue
        require(kind in (1, 2, 5), path, "wire type", kind)
        size = {1: 8, 5: 4}.get(kind) or varint()
        require(at + size <= len(message), path, "message ends early")
        value = message[at:at + size]
        found[number].append(int.from_bytes(value, "little") if kind != 2 else value)
        at += size
    return found


def run_id_of(folder):
    return content(os.path.join(folder, "run_id")).decode().strip()


def starts_of(folder):
    path = os.path.join(folder, "replay", "sessions")
    payload, rest = unframe(path, content(path), b"DCSESSNS", 5)
    require(not rest, path, "bytes behind the payload")
    packed = b"".join(value if isinstance(value, bytes) else struct.pack("<Q", value) for value in fields(path, payload)[5])
    return [start for start, in struct.iter_unpack("<Q", packed)]


def start_of_credit(folder):
    path = os.path.join(folder, "replay", "credit")
    data = content(path)
    payload, _ = unframe(path, data, b"DCCREDIT", 4)
    slots, members = struct.unpack_from("<II", payload)
    require(owner(path, payload[8:], EVERY_MEMBER) == run_id_of(folder), path, "of another run")
    require(len(data) == PAGE + 16 * slots * members, path, len(data), "bytes for", slots, "slots")
    words = struct.unpack_from(f"<{2 * slots * members}Q", data, PAGE)
    for place, word in enumerate(words):
        if word != 0:
            checked(path, word, place)
    return checked(path, struct.unpack_from("<Q", data, 320)[0], 1 << 63)


def newest_checkpoint(folder):
    """The fields of its learner.state."""
    base = os.path.join(folder, "checkpoints")
    path = os.path.join(base, max((name for name in os.listdir(base) if name.isdigit()), key=int), "learner.state")
    payload, rest = unframe(path, content(path), b"DCCHECKP", 6)
    require(not rest, path, "bytes behind the payload")
    return fields(path, payload)


def check_record_files(folder, checkpoint):
    require(checkpoint[7], folder, "the checkpoint names no record files")
    for message in checkpoint[7]:
        end = fields(folder, message)
        path = os.path.join(folder, end[1][0].decode())
        data = content(path)
        require(len(data) >= end[2][0], path, len(data), "bytes; the checkpoint names", end[2][0])
        require(hashlib.sha256(data[:end[2][0]]).hexdigest() == end[3][0].decode(), path, "SHA-256 in the checkpoint")


def steps_of(folder, member):
    """The records of a step file: session, environment, episode, step, cost, check, executed action."""
    path = os.path.join(folder, "ledger", f"member_{member}.steps")
    payload, rest = unframe(path, content(path), b"DCSTEPS\n", 3)
    require(owner(path, payload, member) == run_id_of(folder), path, "of another run")
    actions, = struct.unpack_from("<Q", payload, OWNER.size)
    size = 28 + 4 * actions
    require(len(rest) % size == 0, path, "ends in a record")
    steps = []
    for number in range(len(rest) // size):
        record = rest[number * size:(number + 1) * size]
        crc, = struct.unpack_from("<I", record, size - 4)
        require(crc32c(struct.pack("<Q", number), record[:-4]) == crc, path, "checksum of record", number)
        steps.append(struct.unpack_from(f"<4IfI{actions}f", record))
    return steps


def check_order(path, rows, goes_on):
    """Of each session and environment: episodes grow, steps count from 0, and an end is followed by another episode, unless `goes_on`."""
    last = {}
    for number, row in rows.items():
        require(row.last or not row.absorbing, path, f"row {number} absorbs without an end")
        key = (row.session, row.environment)
        before = last.get(key)
        if before is not None:
            follows = (row.episode, row.step) == (before.episode, before.step + 1) and (goes_on or not before.last)
            require(follows or (row.step == 0 and row.episode > before.episode), path, f"row {number}, {row[:9]}, does not follow {before[:9]}")
        last[key] = row


def rows_of(folder, member, reader, starts):
    """The readable rows of a member, after its rings were compared."""
    path = os.path.join(folder, "replay", f"member_{member}.rows")
    rows, failures = Ring(path, member), Ring(path.replace(".rows", ".failures"), member)
    require(rows.run_id == failures.run_id == run_id_of(folder), path, "of another run")
    require(rows.record_bytes == reader.bytes, path, rows.record_bytes, "bytes of a row, not", reader.bytes)
    for ring in (rows, failures):
        require(ring.counters[3] in starts, path, f"start {ring.counters[3]:012x} is not in the file of sessions")
    read = {number: reader.read(record) for number, record in rows.records.items()}
    check_order(path, read, reader.on_policy)
    copies = {struct.unpack_from("<Q", record)[0]: record[8:] for record in failures.records.values()}
    require(list(copies) == sorted(copies), path, "the order of the failures")
    held = {number: record for number, record in rows.records.items() if read[number].cost > 0}
    oldest = min(copies, default=rows.cursor)
    for number, record in held.items():
        require(number < oldest or copies.get(number) == record, path, f"the copy of failure {number}")
    for number, record in copies.items():
        require(number not in rows.records or number in held, path, f"a copy of row {number}, which is no failure")
        require(reader.read(record).cost > 0, path, f"a copy of row {number} without a cost")
    require(rows.counters[2] == failures.cursor, path, rows.counters[2], "failures counted,", failures.cursor, "copied")
    return read, {number: reader.read(record) for number, record in copies.items()}


def check_run(folder, members, reader):
    """Checks all files. Returns the rows and the copies of failures of each member, without what differs between starts."""
    starts = starts_of(folder)
    require(len(set(starts)) == len(starts), folder, "a start twice")
    require(start_of_credit(folder) in starts, folder, "the start of the credit is not in the file of sessions")
    checkpoint = newest_checkpoint(folder)
    require((checkpoint[14] or [0])[0] in [0, *starts], folder, "the start of the checkpoint is not in the file of sessions")
    check_record_files(folder, checkpoint)
    told = []
    for member in range(members):
        rows, copies = rows_of(folder, member, reader, starts)
        steps = steps_of(folder, member)
        for number, row in rows.items():
            if number < len(steps):
                step = steps[number]
                same = (row.session, row.environment, row.episode, row.step, row.cost) == step[:5]
                require(same, folder, f"member {member}: row {number} and its step differ")
        told.append([[(number, row.told, row.last, row.environment, row.update) for number, row in part.items()]
                     for part in (rows, copies)])
    return told
# SPDX-License-Identifier: Apache-2.0
