"""Stable ids: UUIDs of version 7, the same on every device and sorted by time."""

import uuid


def uuid7(ms: int, random: bytes) -> str:
    """A version 7 UUID (RFC 9562, section 5.7) from UTC milliseconds and ten random bytes."""
    value = (ms & (2**48 - 1)) << 80 | int.from_bytes(random[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))
