"""Sums of updates, frontiers, and rows of codecs, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

SUMS, CONSOLIDATION, FRONTIERS = (
    "executor/consolidation/sums.py",
    "planner/differential/consolidation.py",
    "storage/differential.py",
)
CODEC_FILE, VIEWS, NUMBERS = (
    "executor/codec_file.py",
    "storage/parts/reading_views.py",
    "encodings/number_bytes.py",
)
_TIMES = (
    "tests/differential/test_differential_tables.py",
    "tests/differential/test_consolidation.py",
    "tests/differential/test_conversions.py",
)
_FORMS = (
    "tests/encodings/test_encodings.py",
    "tests/encodings/test_encodings_elsewhere.py",
    "tests/encodings/test_row_formats.py",
)
SUITES = {
    **dict.fromkeys((SUMS, CONSOLIDATION, FRONTIERS), _TIMES),
    **dict.fromkeys((CODEC_FILE, VIEWS, NUMBERS), _FORMS),
}

MUTANTS = (
    Mutant(
        SUMS,
        "equal words are taken for equal rows",
        "if not _are_equal(columns, places, np.flatnonzero(~differs)):",
        "if False:",
        ("tests/differential/test_consolidation.py",),
    ),
    Mutant(
        CONSOLIDATION,
        "a condition that can fail drops updates",
        "and not may_fail(",
        "or not may_fail(",
    ),
    Mutant(
        CONSOLIDATION,
        "updates after the time are summed",
        "ir.Comparison(ComparisonOp.LE, ir.Column(TIME), until)",
        "ir.Comparison(ComparisonOp.GE, ir.Column(TIME), until)",
    ),
    Mutant(
        FRONTIERS,
        "a subscription goes on at since",
        "return since >= time and since > _range_of(type_)[0]",
        "return since > time and since > _range_of(type_)[0]",
    ),
    Mutant(
        FRONTIERS,
        "a time that is not complete is read",
        "if moment >= upper:",
        "if moment > upper:",
    ),
    Mutant(
        CODEC_FILE,
        "columns are returned where the bytes differ",
        "same = codec.encoded(stored, self._where).equals(encoded)",
        "same = len(codec.encoded(stored, self._where)) == len(encoded)",
        ("tests/encodings/test_encodings.py", "tests/encodings/test_stored_bytes.py"),
    ),
    Mutant(
        CODEC_FILE,
        "equal bytes are not decoded",
        "if same and self._decodes_to(stored, encoded, codec, fields):",
        "if same:",
        ("tests/encodings/test_encodings.py",),
    ),
    Mutant(
        VIEWS,
        "a wrong batch version is believed",
        "if is_ignored:\n            return CODEC",
        "if is_ignored and self.mode == CODEC:\n            return CODEC",
    ),
    Mutant(
        NUMBERS,
        "numbers lose the byte of their sign",
        "repeats &= (octets[:, 1:] & 0x80) == (signs & 0x80)[:, None]",
        "repeats &= True",
    ),
)
