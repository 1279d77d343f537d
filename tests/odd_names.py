"""Names of tables that paths, URIs, shells, globs, Spark or SQL could take for something else."""

from __future__ import annotations

from typing import Final

_WRITTEN: Final = (
    " ", "a b", " a", "a ", "a  b", "%", "%%", "%20", "a%20b", "a%2520b", "a%2Fb", "a%2fb",
    "%2E%2E", "%2e", "%00", "%0A", "a%0Ab", "%GG", "100%", "%E9", "%C3%A9", "%ED%B2%80", "?",
    "a?b", "a%3Fb", "?x=1", "??", "#", "a#b", "#frag", "a%23b", "?#", "&", "a&b", "&amp;", "+",
    "a+b", "a%2Bb", "=", "a=b", "day=2024-01-01", "__HIVE_DEFAULT_PARTITION__", ";", "a;b",
    "a;type=i", ",", "a,b", "'", "a'b", "''", '"', 'a"b', '""', "`", "a`b", "\\", "a\\b", "\\\\",
    "a\\", "\\n", "\\x20", "C:\\x", "\n", "a\nb", "a\n", "\na", "\t", "a\tb", "\r", "a\r\nb",
    "\v", "\f", "\x01", "\x1b[31m", "\x7f", "\x85", "\xa0", "..x", "...", "....", ".x", "x.",
    "x..", ". .", ".. ", " ..", "..%2F", "._x", ".tmp-x", "-", "--", "-x", "--help", "é",
    "e\u0301", "ñ", "n\u0303", "Å", "\u212b", "A\u030a", "日本語", "表", "Ω", "\u2126", "😀",
    "👩\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "שלום", "مرحبا", "\u202eabc", "a\u200bb", "\ufeffx",
    "\u2028", "\u2029", "ﬁ", "ß", "ẞ", "İ", "\u0131", "x" * 200, "é" * 100, "%20" * 66,
    "😀" * 50, "s3:x", "s3:", "file:x", "file:", "memory:x", "memory:", "http:x", "C:x", "C:",
    "x:y", ":", "::", "::::x", ":memory:", "a@b", "u:p@h", "@", "~", "~x", "~root", "a~", "~+",
    "$HOME", "${HOME}", "$", "$(id)", "`id`", "!", "!!", "a!b", "*", "a*b", "**", "*.parquet",
    "[", "]", "[a]", "[!a]", "[^a]", "[a-z]", "{", "}", "{a,b}", "{}", "{0}", "{x}", "%s", "%d",
    "%(x)s", "(", ")", "a(b)", "<", ">", "a>b", "|", "a|b", "^", "_", "__", "_delta_log",
    "_temporary", "data", "log", "00000000000000000000.json", "NULL", "None", "nan", "0", "1e9",
    "-1", "true", "CON", "nul", "a.b", "a.parquet", "x.parquet.crc", "table", "select", "a.b.c",
    "a-b", "A", "a", "Straße", "ŠŽ", "\U0010ffff",
)  # fmt: skip
ODD_NAMES: Final = tuple(dict.fromkeys(_WRITTEN))
"""At least 200, none of them the same as another."""

PAIRS: Final = (
    ("a b", "a%20b"), ("a%20b", "a%2520b"), ("a?b", "a%3Fb"), ("a#b", "a%23b"), ("a+b", "a b"),
    ("a+b", "a%2Bb"), ("a", "a?x=1"), ("a", "a#x"), ("é", "e\u0301"), ("Å", "\u212b"),
    ("é", "%C3%A9"), ("Ω", "\u2126"), ("a\nb", "ab"), ("a\nb", "a%0Ab"), ("a", "a\n"),
    ("a", "a "), ("a", " a"), ("a\tb", "ab"), ("a%2Fb", "a%2fb"), ("a&b", "a&amp;b"),
    ("[a]", "a"), ("{a,b}", "a"), ("a*", "ab"), ("~", "~root"), ("$HOME", "HOME"), ("x.", "x"),
    ("A", "a"), ("a\\b", "a%5Cb"), ("a;b", "a"), ("file:x", "x"), ("s3:x", "x"),
    ("100%", "100%25"), ("%", "%25"), ("..x", ".x"), ('"a"', "a"),
)  # fmt: skip
"""Names that become one where somebody encodes once too little, or decodes once too often."""
