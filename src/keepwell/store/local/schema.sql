-- name: schema
-- Version 1. Times are UTC milliseconds. What is append-only says so in triggers, so that no program can forget it.

CREATE TABLE scopes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('project', 'global')),
    name TEXT NOT NULL,
    project_path TEXT,
    folder_inode INTEGER,
    created_at INTEGER NOT NULL,
    CHECK ((kind = 'project') = (project_path IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX scopes_one_global ON scopes (kind) WHERE kind = 'global';
CREATE UNIQUE INDEX scopes_by_path ON scopes (project_path) WHERE kind = 'project';
CREATE INDEX scopes_by_folder ON scopes (folder_inode) WHERE kind = 'project';

-- The log. Everything below it can be rebuilt from it.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    ms INTEGER NOT NULL,
    counter INTEGER NOT NULL,
    device TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    scope_id INTEGER REFERENCES scopes (id),
    actor TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT,
    model TEXT,
    supersedes TEXT,
    verdict TEXT,
    digest TEXT NOT NULL,
    key_id TEXT NOT NULL,
    CHECK ((kind LIKE 'lesson.%') = (scope_id IS NOT NULL))
) STRICT;
CREATE INDEX changes_by_stamp ON changes (ms, counter, device);
CREATE INDEX changes_by_subject ON changes (subject, seq);
CREATE INDEX changes_by_supersedes ON changes (supersedes) WHERE supersedes IS NOT NULL;

-- The text of a change, apart from its envelope so that it can be erased alone.
CREATE TABLE change_payloads (
    change_seq INTEGER PRIMARY KEY REFERENCES changes (seq),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    text TEXT NOT NULL,
    text_hash TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    supersedes_id INTEGER REFERENCES memories (id),
    source_actor TEXT NOT NULL,
    source_client TEXT NOT NULL,
    source_session TEXT,
    source_model TEXT,
    created_at INTEGER NOT NULL,
    archived_at INTEGER,
    change_seq INTEGER NOT NULL REFERENCES changes (seq),
    CHECK ((status = 'archived') = (archived_at IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX memories_active_text ON memories (scope_id, text_hash) WHERE status = 'active';
CREATE INDEX memories_by_scope ON memories (scope_id, status);
CREATE INDEX memories_by_predecessor ON memories (supersedes_id) WHERE supersedes_id IS NOT NULL;

CREATE TABLE evidence (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    description TEXT NOT NULL,
    source_uri TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX evidence_by_memory ON evidence (memory_id);

CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    action TEXT NOT NULL CHECK (action IN ('added', 'archived', 'superseded')),
    actor TEXT NOT NULL,
    source_client TEXT NOT NULL,
    source_session TEXT,
    source_model TEXT,
    details_json TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    change_seq INTEGER NOT NULL REFERENCES changes (seq)
) STRICT;
CREATE INDEX events_by_memory ON events (memory_id);

CREATE TABLE memory_retrievals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    request_id INTEGER NOT NULL,
    method TEXT NOT NULL,
    retrieved_at INTEGER NOT NULL,
    UNIQUE (request_id, memory_id)
) STRICT;
CREATE INDEX memory_retrievals_by_memory ON memory_retrievals (memory_id, retrieved_at);

CREATE TABLE memory_feedback (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    verdict TEXT NOT NULL CHECK (verdict IN ('useful', 'not_useful', 'incorrect', 'outdated')),
    reason TEXT,
    source_actor TEXT NOT NULL,
    source_client TEXT NOT NULL,
    source_session TEXT,
    source_model TEXT,
    created_at INTEGER NOT NULL,
    change_seq INTEGER NOT NULL REFERENCES changes (seq)
) STRICT;
CREATE INDEX memory_feedback_by_memory ON memory_feedback (memory_id);

-- Empty until a local model is switched on.
CREATE TABLE memory_embeddings (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    model TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    vector BLOB NOT NULL,
    content_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (memory_id, model)
) STRICT;

-- `content_hash` is NULL while a log has entries that its file lacks; `file_hash` is what the file is to hold.
CREATE TABLE category (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    name_key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('memory', 'log')),
    content_hash TEXT,
    file_hash TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    version_id INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    deleted_at INTEGER,
    next_entry_id INTEGER NOT NULL DEFAULT 0,
    settled_entry_id INTEGER NOT NULL DEFAULT 0,
    entry_count INTEGER NOT NULL DEFAULT 0,
    max_entries INTEGER,
    max_age_days INTEGER,
    CHECK ((kind = 'log') = (max_entries IS NOT NULL))
) STRICT;
CREATE INDEX category_live ON category (name) WHERE deleted_at IS NULL;

-- The text of a version is the payload of its change, and its id is that of the change.
CREATE TABLE category_version (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    category_id INTEGER NOT NULL REFERENCES category (id),
    action TEXT NOT NULL CHECK (action IN ('written', 'adopted', 'restored', 'deleted')),
    kind TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    previous_hash TEXT,
    size_bytes INTEGER NOT NULL,
    actor TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    change_seq INTEGER NOT NULL REFERENCES changes (seq)
) STRICT;
CREATE INDEX category_version_by_category ON category_version (category_id, id);

CREATE TABLE log_entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    category_id INTEGER NOT NULL REFERENCES category (id),
    entry_id INTEGER NOT NULL,
    ts TEXT NOT NULL,
    at INTEGER,
    data TEXT NOT NULL,
    actor TEXT NOT NULL,
    UNIQUE (category_id, entry_id)
) STRICT;
CREATE INDEX log_entry_by_age ON log_entry (category_id, at);

-- What documents say, a row for each scalar; `entry_id` is set for what a log's entry says.
CREATE TABLE search_index (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    category_id INTEGER NOT NULL REFERENCES category (id),
    entry_id INTEGER,
    key_path TEXT NOT NULL,
    value_text TEXT NOT NULL
) STRICT;
CREATE INDEX search_index_by_category ON search_index (category_id, entry_id);
CREATE VIRTUAL TABLE search_fts USING fts5 (
    key_path, value_text, content = 'search_index', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER search_index_added AFTER INSERT ON search_index
BEGIN INSERT INTO search_fts (rowid, key_path, value_text) VALUES (new.id, new.key_path, new.value_text); END;
CREATE TRIGGER search_index_removed AFTER DELETE ON search_index
BEGIN
    INSERT INTO search_fts (search_fts, rowid, key_path, value_text)
    VALUES ('delete', old.id, old.key_path, old.value_text);
END;

-- What other machines have not seen yet.
CREATE TABLE sync_dirty (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    category_name TEXT NOT NULL UNIQUE,
    operation TEXT NOT NULL CHECK (operation IN ('upsert', 'delete')),
    content_hash TEXT,
    marked_at INTEGER NOT NULL
) STRICT;

-- What was erased for good. The triggers below let go of the texts of these subjects alone.
CREATE TABLE erasures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL UNIQUE,
    change_seq INTEGER NOT NULL REFERENCES changes (seq),
    erased_at INTEGER NOT NULL
) STRICT;

-- What a client's operation id led to; content-free.
CREATE TABLE receipts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_key TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (scope_key, operation_id)
) STRICT;

CREATE VIRTUAL TABLE memory_search_index USING fts5 (
    memory_id UNINDEXED, memory_text, evidence_text, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER scopes_keep_identity BEFORE UPDATE OF id, uid, kind, created_at ON scopes
BEGIN SELECT raise(ABORT, 'a scope keeps its identity'); END;
CREATE TRIGGER scopes_stay BEFORE DELETE ON scopes
BEGIN SELECT raise(ABORT, 'scopes are never deleted'); END;

CREATE TRIGGER changes_are_final BEFORE UPDATE ON changes
BEGIN SELECT raise(ABORT, 'changes are append-only'); END;
CREATE TRIGGER changes_stay BEFORE DELETE ON changes
BEGIN SELECT raise(ABORT, 'changes are append-only'); END;
CREATE TRIGGER change_payloads_are_final BEFORE UPDATE ON change_payloads
BEGIN SELECT raise(ABORT, 'payloads are append-only'); END;
CREATE TRIGGER change_payloads_stay BEFORE DELETE ON change_payloads
WHEN (SELECT kind FROM changes WHERE seq = old.change_seq) LIKE 'lesson.%'
    AND NOT EXISTS (
        SELECT 1 FROM erasures e JOIN changes c ON c.subject = e.subject WHERE c.seq = old.change_seq
    )
BEGIN SELECT raise(ABORT, 'payloads of lessons are append-only'); END;

CREATE TRIGGER category_stays BEFORE DELETE ON category
BEGIN SELECT raise(ABORT, 'a deleted category keeps its row'); END;
CREATE TRIGGER category_keeps_identity BEFORE UPDATE OF id, name, name_key ON category
BEGIN SELECT raise(ABORT, 'a category keeps its name'); END;
CREATE TRIGGER category_version_is_final BEFORE UPDATE ON category_version
BEGIN SELECT raise(ABORT, 'versions are append-only'); END;
CREATE TRIGGER log_entry_is_final BEFORE UPDATE ON log_entry
BEGIN SELECT raise(ABORT, 'entries are append-only'); END;

CREATE TRIGGER memories_keep_content BEFORE UPDATE OF
    id, uid, scope_id, text, text_hash, supersedes_id, source_actor, source_client, source_session, source_model,
    created_at, change_seq
ON memories
WHEN NOT EXISTS (SELECT 1 FROM erasures WHERE subject = old.uid)
BEGIN SELECT raise(ABORT, 'a lesson is never edited'); END;
CREATE TRIGGER memories_archive_once BEFORE UPDATE OF status, archived_at ON memories
WHEN (old.status, old.archived_at) IS NOT (new.status, new.archived_at)
    AND (old.status <> 'active' OR new.status <> 'archived')
BEGIN SELECT raise(ABORT, 'an archived lesson stays archived'); END;
CREATE TRIGGER memories_stay BEFORE DELETE ON memories
BEGIN SELECT raise(ABORT, 'lessons are never deleted'); END;

CREATE TRIGGER evidence_is_final BEFORE UPDATE ON evidence
WHEN NOT EXISTS (SELECT 1 FROM erasures e JOIN memories m ON m.uid = e.subject WHERE m.id = old.memory_id)
BEGIN SELECT raise(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_stays BEFORE DELETE ON evidence
WHEN NOT EXISTS (SELECT 1 FROM erasures e JOIN memories m ON m.uid = e.subject WHERE m.id = old.memory_id)
BEGIN SELECT raise(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER events_are_final BEFORE UPDATE ON events
WHEN NOT EXISTS (SELECT 1 FROM erasures e JOIN memories m ON m.uid = e.subject WHERE m.id = old.memory_id)
BEGIN SELECT raise(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT raise(ABORT, 'events are append-only'); END;
CREATE TRIGGER memory_retrievals_are_final BEFORE UPDATE ON memory_retrievals
BEGIN SELECT raise(ABORT, 'retrievals are append-only'); END;
CREATE TRIGGER memory_retrievals_stay BEFORE DELETE ON memory_retrievals
BEGIN SELECT raise(ABORT, 'retrievals are append-only'); END;
CREATE TRIGGER memory_feedback_is_final BEFORE UPDATE ON memory_feedback
WHEN NOT EXISTS (SELECT 1 FROM erasures e JOIN memories m ON m.uid = e.subject WHERE m.id = old.memory_id)
BEGIN SELECT raise(ABORT, 'feedback is append-only'); END;
CREATE TRIGGER memory_feedback_stays BEFORE DELETE ON memory_feedback
BEGIN SELECT raise(ABORT, 'feedback is append-only'); END;
CREATE TRIGGER erasures_are_final BEFORE UPDATE ON erasures
BEGIN SELECT raise(ABORT, 'erasures are append-only'); END;
CREATE TRIGGER erasures_stay BEFORE DELETE ON erasures
BEGIN SELECT raise(ABORT, 'erasures are append-only'); END;
CREATE TRIGGER receipts_are_final BEFORE UPDATE ON receipts
BEGIN SELECT raise(ABORT, 'receipts are append-only'); END;
CREATE TRIGGER receipts_stay BEFORE DELETE ON receipts
BEGIN SELECT raise(ABORT, 'receipts are append-only'); END;
