-- Statements that every SQL engine shares. Parameters are named; rows come back by column name.

-- name: scope_of_project
SELECT id, uid, kind, name, project_path, folder_inode, created_at FROM scopes
WHERE kind = 'project' AND project_path = :path;

-- name: scope_global
SELECT id, uid, kind, name, project_path, folder_inode, created_at FROM scopes WHERE kind = 'global';

-- name: scope_moved
SELECT id, uid, kind, name, project_path, folder_inode, created_at FROM scopes
WHERE kind = 'project' AND folder_inode = :inode AND project_path <> :path
ORDER BY id DESC LIMIT 1;

-- name: add_scope
INSERT INTO scopes (uid, kind, name, project_path, folder_inode, created_at)
VALUES (:uid, :kind, :name, :path, :inode, :now) RETURNING id;

-- name: relink_scope
UPDATE scopes SET project_path = :path, name = :name, folder_inode = :inode WHERE id = :id;

-- name: scope_summaries
SELECT s.id, s.uid, s.kind, s.name, s.project_path, s.folder_inode, s.created_at,
       (SELECT count(*) FROM memories m WHERE m.scope_id = s.id AND m.status = 'active') AS active,
       (SELECT count(*) FROM memories m WHERE m.scope_id = s.id AND m.status = 'archived') AS archived
FROM scopes s ORDER BY s.kind, s.project_path;

-- name: last_stamp
SELECT ms, counter, device FROM changes ORDER BY ms DESC, counter DESC LIMIT 1;

-- name: add_change
INSERT INTO changes (
    uid, ms, counter, device, kind, subject, scope_id, actor, client, session, model, supersedes, verdict, digest, key_id
) VALUES (
    :uid, :ms, :counter, :device, :kind, :subject, :scope_id, :actor, :client, :session, :model, :supersedes, :verdict,
    :digest, :key_id
) RETURNING seq;

-- name: change_known
SELECT seq FROM changes WHERE uid = :uid;

-- name: scope_like
SELECT id FROM scopes WHERE uid = :uid OR (kind = :kind AND project_path IS :path) ORDER BY uid = :uid DESC LIMIT 1;

-- name: newest_category_stamp
SELECT ms, counter, device FROM changes
WHERE subject = :name AND kind LIKE 'category.%' AND seq <> :seq
ORDER BY ms DESC, counter DESC, device DESC LIMIT 1;

-- name: add_payload
INSERT INTO change_payloads (change_seq, body) VALUES (:seq, :body);

-- name: changes
SELECT c.seq, c.uid, c.ms, c.counter, c.device, c.kind, c.subject, s.uid AS scope_uid, c.actor, c.client, c.session,
       c.model, c.supersedes, c.verdict, c.digest, c.key_id, p.body
FROM changes c LEFT JOIN scopes s ON s.id = c.scope_id LEFT JOIN change_payloads p ON p.change_seq = c.seq
WHERE c.seq > :after ORDER BY c.seq LIMIT :limit;

-- name: add_lesson
INSERT INTO memories (
    uid, scope_id, text, text_hash, status, archived_at, supersedes_id, source_actor, source_client, source_session,
    source_model, created_at, change_seq
) VALUES (
    :uid, :scope_id, :text, :text_hash, :status, :archived_at, (SELECT id FROM memories WHERE uid = :supersedes), :actor,
    :client, :session, :model, :created_at, :seq
) RETURNING id;

-- name: add_evidence
INSERT INTO evidence (memory_id, description, source_uri, created_at)
VALUES (:memory_id, :description, :source_uri, :created_at);

-- name: lesson_id
SELECT id FROM memories WHERE uid = :uid;

-- name: archive_lesson
UPDATE memories SET status = 'archived', archived_at = :at WHERE uid = :uid AND status = 'active' RETURNING id;

-- name: add_event
INSERT INTO events (
    memory_id, action, actor, source_client, source_session, source_model, details_json, created_at, change_seq
) VALUES (:memory_id, :action, :actor, :client, :session, :model, :details, :created_at, :seq);

-- name: add_feedback
INSERT INTO memory_feedback (
    memory_id, verdict, reason, source_actor, source_client, source_session, source_model, created_at, change_seq
) VALUES (:memory_id, :verdict, :reason, :actor, :client, :session, :model, :created_at, :seq);

-- name: lesson
SELECT m.id, m.uid, m.text, m.status, m.supersedes_id, m.source_actor, m.source_client, m.source_session,
       m.source_model, m.created_at, m.archived_at,
       s.id AS scope_id, s.uid AS scope_uid, s.kind, s.name, s.project_path, s.folder_inode,
       s.created_at AS scope_created_at
FROM memories m JOIN scopes s ON s.id = m.scope_id WHERE m.id = :id;

-- name: active_lesson
SELECT id FROM memories WHERE scope_id = :scope_id AND text_hash = :text_hash AND status = 'active';

-- name: recent_lessons
SELECT id FROM memories WHERE status = 'active' AND scope_id IN (:scope, :other_scope) ORDER BY id DESC LIMIT :limit;

-- name: evidence
SELECT description, source_uri FROM evidence WHERE memory_id = :id ORDER BY id;

-- name: successors
SELECT id FROM memories WHERE supersedes_id = :id ORDER BY id;

-- name: retrieval_statistics
SELECT count(*) AS retrieval_count, max(retrieved_at) AS last_retrieved_at
FROM memory_retrievals WHERE memory_id = :id;

-- name: feedback_statistics
SELECT count(*) FILTER (WHERE verdict = 'useful') AS useful_count,
       count(*) FILTER (WHERE verdict = 'not_useful') AS not_useful_count,
       count(*) FILTER (WHERE verdict = 'incorrect') AS incorrect_count,
       count(*) FILTER (WHERE verdict = 'outdated') AS outdated_count,
       max(created_at) AS last_feedback_at,
       (SELECT verdict FROM memory_feedback WHERE memory_id = :id ORDER BY id DESC LIMIT 1) AS last_verdict
FROM memory_feedback WHERE memory_id = :id;

-- name: events
SELECT e.id, e.action, e.actor, e.source_client, e.source_session, e.source_model, e.details_json, e.created_at
FROM events e WHERE e.memory_id = :id ORDER BY e.id DESC LIMIT :limit;

-- name: feedback
SELECT id, verdict, reason, source_actor, source_client, source_session, source_model, created_at
FROM memory_feedback WHERE memory_id = :id ORDER BY id DESC LIMIT :limit;

-- name: next_request_id
SELECT coalesce(max(request_id), 0) + 1 AS request_id FROM memory_retrievals;

-- name: add_retrieval
INSERT INTO memory_retrievals (memory_id, request_id, method, retrieved_at)
VALUES (:memory_id, :request_id, :method, :now);

-- name: receipt
SELECT operation, fingerprint, result FROM receipts WHERE scope_key = :scope_key AND operation_id = :operation_id;

-- name: add_receipt
INSERT INTO receipts (scope_key, operation_id, operation, fingerprint, result, created_at)
VALUES (:scope_key, :operation_id, :operation, :fingerprint, :result, :now);

-- name: counts
SELECT (SELECT count(*) FROM scopes) AS scopes,
       (SELECT count(*) FROM memories) AS lessons,
       (SELECT count(*) FROM memories WHERE status = 'active') AS active_lessons,
       (SELECT count(*) FROM changes) AS changes,
       (SELECT count(*) FROM memory_retrievals) AS retrievals,
       (SELECT count(*) FROM memory_feedback) AS feedback,
       (SELECT count(*) FROM category WHERE deleted_at IS NULL) AS categories,
       (SELECT count(*) FROM category_version) AS category_versions,
       (SELECT count(*) FROM log_entry) AS log_entries;

-- name: category
SELECT id, name, kind, content_hash, file_hash, size_bytes, version_id, updated_at, updated_by, deleted_at,
       next_entry_id, settled_entry_id, entry_count, max_entries, max_age_days
FROM category WHERE name_key = :key;

-- name: categories
SELECT id, name, kind, content_hash, file_hash, size_bytes, version_id, updated_at, updated_by, deleted_at,
       next_entry_id, settled_entry_id, entry_count, max_entries, max_age_days
FROM category WHERE deleted_at IS NULL AND name > :after ORDER BY name LIMIT :limit;

-- name: add_category
INSERT INTO category (name, name_key, kind, content_hash, file_hash, size_bytes, version_id, updated_at, updated_by,
                      next_entry_id, settled_entry_id, max_entries, max_age_days)
VALUES (:name, :key, :kind, :hash, :hash, :size, 0, :at, :by, :next_entry_id, :next_entry_id, :max_entries,
        :max_age_days)
RETURNING id;

-- name: replace_category
UPDATE category
SET kind = :kind, content_hash = :hash, file_hash = :hash, size_bytes = :size, updated_at = :at, updated_by = :by,
    deleted_at = NULL, next_entry_id = max(next_entry_id, :next_entry_id),
    settled_entry_id = max(next_entry_id, :next_entry_id), max_entries = :max_entries, max_age_days = :max_age_days
WHERE id = :id;

-- name: set_category_version
UPDATE category SET version_id = :version WHERE id = :id;

-- name: delete_category
UPDATE category SET deleted_at = :at, updated_at = :at, updated_by = :by, content_hash = :hash, size_bytes = :size
WHERE id = :id;

-- name: grow_category
UPDATE category
SET content_hash = NULL, updated_at = :at, updated_by = :by, next_entry_id = next_entry_id + 1,
    max_entries = :max_entries, max_age_days = :max_age_days
WHERE id = :id;

-- name: count_entries
UPDATE category SET entry_count = entry_count + :more WHERE id = :id;

-- name: settle_category
UPDATE category
SET content_hash = :hash, file_hash = :hash, size_bytes = :size, settled_entry_id = next_entry_id
WHERE id = :id;

-- name: unsettled
SELECT name FROM category WHERE content_hash IS NULL AND deleted_at IS NULL ORDER BY name;

-- name: add_version
INSERT INTO category_version (
    id, category_id, action, kind, content_hash, previous_hash, size_bytes, actor, created_at, change_seq
) VALUES (:seq, :category_id, :action, :kind, :hash, :previous_hash, :size, :actor, :at, :seq) RETURNING id;

-- name: versions
SELECT v.id, v.action, v.kind, v.content_hash, v.previous_hash, v.size_bytes, v.actor, v.created_at, p.body
FROM category_version v JOIN category c ON c.id = v.category_id
LEFT JOIN change_payloads p ON p.change_seq = v.change_seq
WHERE c.name = :name AND v.id < :before ORDER BY v.id DESC LIMIT :limit;

-- name: version_text
SELECT p.body FROM category_version v JOIN category c ON c.id = v.category_id
JOIN change_payloads p ON p.change_seq = v.change_seq
WHERE c.name = :name AND v.content_hash = :hash AND json_extract(p.body, '$.text') IS NOT NULL
ORDER BY v.id DESC LIMIT 1;

-- name: superfluous_versions
SELECT id, change_seq FROM category_version
WHERE category_id = :category_id AND id NOT IN (
    SELECT id FROM category_version WHERE category_id = :category_id ORDER BY id DESC LIMIT :keep
);

-- name: drop_version
DELETE FROM category_version WHERE id = :id;

-- name: drop_payload
DELETE FROM change_payloads WHERE change_seq = :seq;

-- name: entries
SELECT entry_id, ts, data FROM log_entry WHERE category_id = :category_id ORDER BY entry_id;

-- name: add_entry
INSERT INTO log_entry (category_id, entry_id, ts, at, data, actor) VALUES (:category_id, :entry_id, :ts, :at, :data, :by);

-- name: entries_to_drop
SELECT entry_id FROM log_entry WHERE category_id = :category_id AND entry_id < :smallest
UNION
SELECT entry_id FROM log_entry WHERE category_id = :category_id AND at < :earliest;

-- name: drop_entry
DELETE FROM log_entry WHERE category_id = :category_id AND entry_id = :entry_id;

-- name: mark_dirty
INSERT INTO sync_dirty (category_name, operation, content_hash, marked_at) VALUES (:name, :operation, :hash, :at)
ON CONFLICT (category_name) DO UPDATE
SET operation = excluded.operation, content_hash = excluded.content_hash, marked_at = excluded.marked_at;

-- name: dirty
SELECT category_name FROM sync_dirty ORDER BY marked_at, category_name;

-- name: payload_digests
SELECT c.seq, c.digest, p.body FROM changes c JOIN change_payloads p ON p.change_seq = c.seq
WHERE c.seq > :after AND c.key_id = :key_id ORDER BY c.seq LIMIT :limit;

-- name: version_bodies
SELECT v.id, v.content_hash, p.body FROM category_version v JOIN change_payloads p ON p.change_seq = v.change_seq
WHERE v.id > :after ORDER BY v.id LIMIT :limit;

-- name: log_faults
SELECT 'lesson ' || m.id AS subject, 'its text is not the one in the log.' AS fault
FROM memories m JOIN change_payloads p ON p.change_seq = m.change_seq
WHERE json_extract(p.body, '$.text') <> m.text
UNION ALL
SELECT 'lesson ' || m.id, 'it is archived and the log does not say so.' FROM memories m
WHERE m.status = 'archived' AND m.text <> '' AND NOT EXISTS (
    SELECT 1 FROM changes c WHERE (c.kind = 'lesson.archived' AND c.subject = m.uid) OR c.supersedes = m.uid
)
UNION ALL
SELECT 'lesson ' || m.id, 'it is active and the log says that it is archived.' FROM memories m
WHERE m.status = 'active' AND EXISTS (
    SELECT 1 FROM changes c WHERE (c.kind = 'lesson.archived' AND c.subject = m.uid) OR c.supersedes = m.uid
)
UNION ALL
SELECT 'change ' || c.seq, 'it added a lesson that is not there.' FROM changes c
WHERE c.kind = 'lesson.added' AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.uid = c.subject)
UNION ALL
SELECT 'change ' || c.seq, 'it reported on a lesson and the report is not there.' FROM changes c
WHERE c.kind = 'lesson.rated' AND NOT EXISTS (SELECT 1 FROM memory_feedback f WHERE f.change_seq = c.seq)
UNION ALL
SELECT 'category ' || k.name, 'it has ' || k.entry_count || ' entries by its count and others by its rows.'
FROM category k WHERE k.entry_count <> (SELECT count(*) FROM log_entry e WHERE e.category_id = k.id)
LIMIT 100;

-- name: all_retrievals
SELECT m.uid AS lesson_uid, r.request_id, r.method, r.retrieved_at AS at
FROM memory_retrievals r JOIN memories m ON m.id = r.memory_id ORDER BY r.id;

-- name: put_retrievals
INSERT OR IGNORE INTO memory_retrievals (memory_id, request_id, method, retrieved_at)
SELECT id, :request_id, :method, :at FROM memories WHERE uid = :lesson_uid;

-- name: all_receipts
SELECT scope_key, operation_id, operation, fingerprint, result, created_at FROM receipts ORDER BY id;

-- name: put_receipts
INSERT OR IGNORE INTO receipts (scope_key, operation_id, operation, fingerprint, result, created_at)
VALUES (:scope_key, :operation_id, :operation, :fingerprint, :result, :created_at);

-- name: add_erasure
INSERT OR IGNORE INTO erasures (subject, change_seq, erased_at) VALUES (:subject, :seq, :at);

-- name: last_erasure
SELECT ms, counter, device FROM changes WHERE subject = :subject AND kind LIKE '%.forgotten'
ORDER BY ms DESC, counter DESC, device DESC LIMIT 1;

-- name: erasures
SELECT e.subject, c.kind FROM erasures e JOIN changes c ON c.seq = e.change_seq ORDER BY e.id;

-- name: erase_payloads
DELETE FROM change_payloads WHERE change_seq IN (
    SELECT seq FROM changes
    WHERE subject = :subject AND (ms, counter, device) <= (:ms, :counter, :device) AND kind NOT LIKE '%.forgotten'
);

-- name: erase_lesson
UPDATE memories
SET text = '', text_hash = 'erased:' || uid, status = 'archived', archived_at = coalesce(archived_at, :at)
WHERE uid = :subject RETURNING id;

-- name: erase_evidence
DELETE FROM evidence WHERE memory_id = :id;

-- name: erase_reasons_of_events
UPDATE events SET details_json = json_remove(details_json, '$.reason') WHERE memory_id = :id;

-- name: erase_reasons_of_feedback
UPDATE memory_feedback SET reason = NULL WHERE memory_id = :id;

-- name: erase_vectors
DELETE FROM memory_embeddings WHERE memory_id = :id;

-- name: erase_category
UPDATE category
SET kind = 'memory', content_hash = NULL, file_hash = '', size_bytes = 0, version_id = 0, updated_at = :at,
    updated_by = :by, deleted_at = :at, max_entries = NULL, max_age_days = NULL
WHERE id = :id;

-- name: keep_entry_numbers
UPDATE category SET next_entry_id = max(next_entry_id, :next_entry_id) WHERE id = :id;

-- name: erase_versions
DELETE FROM category_version WHERE category_id = :category_id AND change_seq IN (
    SELECT seq FROM changes WHERE subject = :subject AND (ms, counter, device) <= (:ms, :counter, :device)
);

-- name: forgetting_changes
SELECT c.seq, c.uid, c.ms, c.counter, c.device, c.kind, c.subject, s.uid AS scope_uid, c.actor, c.client, c.session,
       c.model, c.supersedes, c.verdict, c.digest, c.key_id, p.body
FROM changes c LEFT JOIN scopes s ON s.id = c.scope_id LEFT JOIN change_payloads p ON p.change_seq = c.seq
WHERE c.kind LIKE '%.forgotten' ORDER BY c.seq;
