"""What can go wrong with a request to a store or a call of the file system, by name."""

from __future__ import annotations

from enum import Enum


class Crash(BaseException):
    """The process dies here; no handler of an `Exception` may notice."""


class Fault(Enum):
    """A fault of one request; its text says what the client sees, and what has happened."""

    CRASH_BEFORE = "the process dies before the request has an effect"
    CRASH_AFTER = "the process dies once the request has had its effect"
    CRASH_WITHIN = "the process dies once half of a deletion of several objects has happened"
    CRASH_LATE = "the process dies, and the request has its effect some time after that"
    UNAVAILABLE = "an error, and nothing was applied"
    LOST_ANSWER = "an error, though the request was applied"
    EXISTS_BEFORE = "the name is said to be taken, though nothing is stored there"
    EXISTS_AFTER = "the name is said to be taken: by a hidden retry of the same put"
    UNCONDITIONAL = "the put is said to have created the name, though it is taken"
    APPLIED_LATE = "an error, and the request is applied at some later time"
    DUPLICATE = "the request is applied, and once more at some later time"
    STALE_LIST = "a listing as it was some time ago"
    TRUNCATED = "the beginning of the object, as if it were the whole"
    SLOW = "the answer comes after a long time"
    DENIED = "403: this and the next requests are not permitted"
    EXPIRED_TOKEN = "403: the credentials are over until they are renewed"
    THROTTLED = "503: the client is asked to slow down"
    REFUSED = "501: the server does not know such a request"
    ELSEWHERE = "301: the bucket is in another region, which is not told"
    SKEWED_CLOCK = "403: the client's clock is wrong"
    RESET = "the connection is reset, and nothing was applied"
    RESET_AFTER = "the connection is reset once the request was applied"
    TIMEOUT_AFTER = "no answer, though the request was applied"
    BROKEN_BODY = "half of the answer, then the connection is closed"
    SLOW_BODY = "half of the answer, then nothing"
    NO_SPACE = "ENOSPC: nothing was created"
    HALF_WRITTEN = "ENOSPC: half of the bytes were written"
    OVER_QUOTA = "EDQUOT: this user has no space left"
    READ_ONLY = "EROFS: the disk is mounted read-only"
    NOT_PERMITTED = "EACCES: this user may not write there"
    TOO_LARGE = "EFBIG: no file may be so large"
    NO_DESCRIPTOR = "EMFILE: the process has too many open files"
    IO_ERROR = "EIO: an fsync failed, so the object may not be durable"
    POWER_LOSS = "the machine stops, and unsynced writes survive in any order or not at all"
