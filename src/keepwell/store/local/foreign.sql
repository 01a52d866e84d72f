-- What is read of the databases of other programs.

-- name: lessons_memories
SELECT m.id, m.text, m.supersedes_id, m.source_client, m.source_session, m.source_model, m.created_at, m.archived_at,
       s.name, s.project_path
FROM memories m JOIN scopes s ON s.id = m.scope_id ORDER BY m.id;

-- name: lessons_evidence
SELECT memory_id, description, source_uri FROM evidence ORDER BY id;

-- name: lessons_archivings
SELECT e.id, e.memory_id, json_extract(e.details_json, '$.reason') AS reason, e.source_client, e.source_session,
       NULL AS source_model, e.created_at
FROM events e
WHERE e.action = 'archived' AND NOT EXISTS (SELECT 1 FROM memories n WHERE n.supersedes_id = e.memory_id) ORDER BY e.id;

-- name: lessons_feedback
SELECT id, memory_id, verdict, reason, source_client, NULL AS source_session, source_model, created_at
FROM memory_feedback ORDER BY id;

-- name: lessons_retrievals
SELECT memory_id, request_id, method, retrieved_at FROM memory_retrievals ORDER BY id;

-- name: category_versions
SELECT category_name, content_hash, reason, actor, timestamp FROM category_version ORDER BY id;
