"""How large the pages of a Parquet file are when they are unpacked, by their own headers.

The sizes in a file's footer are what its author wrote there, and pyarrow makes room for what the
pages say. So these are read here first: a header is a struct in Thrift's compact form.
"""

from __future__ import annotations

from typing import Any

# Fields of PageHeader in parquet.thrift: sizes, and what the two kinds of data pages say.
UNPACKED, PACKED, DATA, DATA_V2 = 2, 3, 5, 8
ENCODING = {DATA: 2, DATA_V2: 4}  # the field with the encoding in each of the two
PREFIXES = 7  # DELTA_BYTE_ARRAY: a text as the length of what it shares with the one before
DEEPEST = 8  # structs in structs; a page header has two


def unpacked_size(content: bytes, metadata: Any) -> int:
    """The bytes of all pages together, unpacked. ValueError where texts are stored by prefixes,
    which may stand for any length, and where there is no header of a page.
    """
    total = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            at = column.data_page_offset
            first = column.dictionary_page_offset
            at = first if first and first < at else at
            end = at + column.total_compressed_size
            while at < end:
                header, at = _struct(content, at, DEEPEST)
                for kind, field in ENCODING.items():
                    if kind in header and header[kind].get(field) == PREFIXES:
                        raise ValueError("it stores texts by prefixes: save it in a plainer way")
                if not (header.get(UNPACKED, -1) >= 0 and header.get(PACKED, -1) >= 0):
                    raise ValueError(f"no page begins at byte {at}")
                total += header[UNPACKED]
                at += header[PACKED]
    return total


def _struct(content: bytes, at: int, deep: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct that are numbers or structs, by their numbers, and where it ends."""
    found: dict[int, Any] = {}
    field = 0
    while True:
        head, at = _byte(content, at)
        if head == 0:
            return found, at
        if head >> 4:
            field += head >> 4
        else:
            field, at = _signed(content, at)
        found[field], at = _value(content, at, head & 15, deep)


def _value(content: bytes, at: int, kind: int, deep: int) -> tuple[Any, int]:
    match kind:
        case 1 | 2:  # true, false
            return kind == 1, at
        case 3:
            return _byte(content, at)
        case 4 | 5 | 6:
            return _signed(content, at)
        case 7:  # a double
            return None, at + 8
        case 8:  # bytes
            size, at = _varint(content, at)
            return None, at + size
        case 12 if deep:
            return _struct(content, at, deep - 1)
    raise ValueError(f"a page header has a field of kind {kind}")


def _signed(content: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = _byte(content, at)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number in a page header is too long")


def _byte(content: bytes, at: int) -> tuple[int, int]:
    if not 0 <= at < len(content):
        raise ValueError("a page header is cut short")
    return content[at], at + 1
