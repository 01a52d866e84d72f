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

-- name: add_payload
INSERT INTO change_payloads (change_seq, body) VALUES (:seq, :body);

-- name: changes
SELECT c.seq, c.uid, c.ms, c.counter, c.device, c.kind, c.subject, s.uid AS scope_uid, c.actor, c.client, c.session,
       c.model, c.supersedes, c.verdict, c.digest, c.key_id, p.body
FROM changes c JOIN scopes s ON s.id = c.scope_id LEFT JOIN change_payloads p ON p.change_seq = c.seq
WHERE c.seq > :after ORDER BY c.seq LIMIT :limit;

-- name: add_lesson
INSERT INTO memories (
    uid, scope_id, text, text_hash, supersedes_id, source_actor, source_client, source_session, source_model,
    created_at, change_seq
) VALUES (
    :uid, :scope_id, :text, :text_hash, (SELECT id FROM memories WHERE uid = :supersedes), :actor, :client, :session,
    :model, :created_at, :seq
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
       (SELECT count(*) FROM memory_feedback) AS feedback;
