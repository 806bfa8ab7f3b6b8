"""The tables of a hub, and the steps from one version of them to the next.

The statements are for both engines but for the pieces in braces, which are different for each.
"""

from __future__ import annotations

SCHEMA = 1
"""The version of the tables that this package reads and writes: the number of ``MIGRATIONS``."""

_FIRST = (
    # One row. Whoever stores events takes their numbers here, and holds the row's lock until its commit.
    "CREATE TABLE fleet (one bigint PRIMARY KEY, application text NOT NULL, schema_version bigint NOT NULL,"
    " first_seq bigint NOT NULL, last_seq bigint NOT NULL,"
    # The history of numbers, the server by which they are given, and those that were passed over: ``EventSequence``.
    " history text NOT NULL DEFAULT '', server text NOT NULL DEFAULT '',"
    " skipped bigint NOT NULL DEFAULT 0, skipped_upto bigint NOT NULL DEFAULT 0)",
    "INSERT INTO fleet (one, application, schema_version, first_seq, last_seq)"
    " VALUES (1, 'dimos_streams hub', 1, 1, 0)",
    "CREATE TABLE robots (name text PRIMARY KEY, token_hash text NOT NULL UNIQUE, added bigint NOT NULL,"
    " heard bigint, connected_by text NOT NULL DEFAULT '', connected_until bigint NOT NULL DEFAULT 0,"
    # The process whose stream is the newest one, the one whose place it took, and when: ``RobotTable.connect``.
    " process text NOT NULL DEFAULT '', replaced text NOT NULL DEFAULT '', replaced_at bigint NOT NULL DEFAULT 0,"
    " doubled_until bigint NOT NULL DEFAULT 0,"
    " clock_us bigint, version text NOT NULL DEFAULT '', report text NOT NULL DEFAULT '',"
    " skills text NOT NULL DEFAULT '', journal text NOT NULL DEFAULT '')",
    "CREATE TABLE journals (id {identity}, robot text NOT NULL, journal text NOT NULL, acknowledged bigint NOT NULL,"
    " stored bigint NOT NULL, UNIQUE (robot, journal))",
    "CREATE TABLE events (seq bigint NOT NULL PRIMARY KEY, stored bigint NOT NULL, robot text NOT NULL,"
    " journal_id bigint NOT NULL, journal_offset bigint NOT NULL, call_id text NOT NULL, caller text NOT NULL,"
    " type text NOT NULL, body text NOT NULL){partitioned}",
    "CREATE INDEX events_by_offset ON events (journal_id, journal_offset)",
    "CREATE TABLE calls (robot text NOT NULL, call_id text NOT NULL, first_seq bigint NOT NULL,"
    " last_seq bigint NOT NULL, closed bigint NOT NULL, record text NOT NULL, PRIMARY KEY (robot, call_id))",
    "CREATE INDEX calls_by_id ON calls (call_id)",
    "CREATE INDEX calls_by_age ON calls (first_seq)",
    "CREATE TABLE commands (id {identity}, robot text NOT NULL, key text NOT NULL, asked_by text NOT NULL,"
    " role text NOT NULL, method text NOT NULL, path text NOT NULL, body text NOT NULL, given bigint NOT NULL,"
    " expires bigint NOT NULL, sent bigint, sent_by text NOT NULL DEFAULT '',"
    " sent_to text NOT NULL DEFAULT '', answered bigint, outcome text, status bigint, headers text, answer text,"
    " UNIQUE (robot, key))",
    "CREATE INDEX commands_due ON commands (robot) WHERE answered IS NULL",
    "CREATE TABLE hubs (name text PRIMARY KEY, version text NOT NULL, url text NOT NULL, until bigint NOT NULL)",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST,)
"""The statements that lead to version 1, 2, …; each also sets ``fleet.schema_version`` through ``migrate``."""
