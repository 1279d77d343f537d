"""Audits, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

AUDIT, SCAN = "executor/audit.py", "scan.py"
_TESTS = ("tests/executor/test_audit.py",)
SUITES = {AUDIT: _TESTS, SCAN: _TESTS}

MUTANTS = (
    Mutant(
        AUDIT,
        "the share is the wrong one",
        "return digest < self.percent",
        "return digest >= self.percent",
    ),
    Mutant(AUDIT, "the hash forgets the row group", 'f"{part_id}/{row_group}"', "part_id"),
    Mutant(
        AUDIT,
        "the hash forgets the table",
        'f"{self.table_uuid}/{name}".encode()',
        "name.encode()",
    ),
    Mutant(
        AUDIT,
        "the hash is another one in every process (trap T30)",
        'xxhash.xxh3_64_intdigest(f"{self.table_uuid}/{name}".encode())',
        'hash(f"{self.table_uuid}/{name}") % _HASHES',
    ),
    Mutant(
        AUDIT,
        "hidden rows are judged (invariant 28)",
        "                visible.intersect(picked),",
        "                picked,",
    ),
    Mutant(
        AUDIT,
        "what is skipped and what is stale are swapped",
        "skipped, stale = visible & ~shown, shown & ~visible",
        "stale, skipped = visible & ~shown, shown & ~visible",
    ),
    Mutant(
        AUDIT,
        "a skipped part counts as read",
        "shown.get(part_id, RowSet.empty(picked.row_count))",
        "shown.get(part_id, RowSet.full(picked.row_count))",
    ),
    Mutant(
        AUDIT,
        "that all rows match is not checked (invariant 28)",
        "self._certain = self._read - filtered",
        "self._certain = self._read - self._read",
    ),
    Mutant(
        AUDIT,
        "a NULL counts as a match",
        "visible & shown & ~answer.true",
        "visible & shown & answer.false",
    ),
    Mutant(
        AUDIT,
        "errors on skipped rows are forgotten (invariant 27)",
        "skipped & answer.failed",
        "skipped & ~skipped",
    ),
    Mutant(
        AUDIT,
        "rows that come back are forgotten",
        "yield _STALE, stale & (answer.true | answer.failed)",
        "yield _STALE, stale & ~stale",
    ),
    Mutant(
        AUDIT,
        "visibility is resolved among the skipped rows alone",
        "        self._whole = _with_parts(whole, self._picked)",
        "        self._whole = _with_parts(pruned, self._picked)",
    ),
    Mutant(
        AUDIT,
        "what may hide rows is taken away",
        "return msgspec.structs.replace(piece, reads=reads)",
        "return msgspec.structs.replace(\n"
        "            piece,\n"
        "            parts=tuple(piece.parts[read.part] for read in reads),\n"
        "            reads=tuple(\n"
        "                msgspec.structs.replace(read, part=i) for i, read in enumerate(reads)\n"
        "            ),\n"
        "        )",
    ),
    Mutant(
        AUDIT,
        "the first row of the batch is blamed",
        "row, rows = int(ids[np.argmax(wrong)])",
        "row, rows = int(ids[0])",
    ),
    Mutant(AUDIT, "nothing is raised", 'if self._on_violation == "raise":', "if False:"),
    Mutant(AUDIT, "nothing is logged", '_LOG.warning("%s", violation)', "pass"),
    Mutant(
        AUDIT,
        "nothing is counted",
        "outcome.violations += violation.rows",
        "outcome.violations += 0",
    ),
    Mutant(
        SCAN,
        "the answer stays wrong (trap T31)",
        "if outcome.violations:",
        "if outcome.violations < 0:",
    ),
)
