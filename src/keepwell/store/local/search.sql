-- name: index_lesson
INSERT INTO memory_search_index (rowid, memory_id, memory_text, evidence_text)
VALUES (:memory_id, :memory_id, :memory_text, :evidence_text);

-- name: search
-- Text counts four times as much as evidence. The filters stand inside the candidate query, never after it.
SELECT m.id AS id, -bm25(memory_search_index, 0.0, 4.0, 1.0) AS score
FROM memory_search_index JOIN memories m ON m.id = memory_search_index.rowid
WHERE memory_search_index MATCH :expression
  AND m.status = 'active' AND m.scope_id IN (:scope, :other_scope)
  AND (:after IS NULL OR m.created_at >= :after) AND (:before IS NULL OR m.created_at <= :before)
  AND (:actor IS NULL OR m.source_client = :actor OR m.source_actor = :actor)
ORDER BY bm25(memory_search_index, 0.0, 4.0, 1.0), m.id DESC
LIMIT :limit;

-- name: leaves_of_document
SELECT id, key_path, value_text FROM search_index WHERE category_id = :category_id AND entry_id IS NULL;

-- name: leaves_of_category
SELECT entry_id, key_path, value_text FROM search_index WHERE category_id = :category_id;

-- name: drop_leaves
DELETE FROM search_index WHERE category_id = :category_id;

-- name: add_leaf
INSERT INTO search_index (category_id, entry_id, key_path, value_text)
VALUES (:category_id, :entry_id, :key_path, :value_text);

-- name: drop_leaf
DELETE FROM search_index WHERE id = :id;

-- name: drop_leaves_of_entry
DELETE FROM search_index WHERE category_id = :category_id AND entry_id = :entry_id;

-- name: search_documents
-- What is said counts ten times as much as the name of the place where it is said.
SELECT c.name AS category, c.kind AS kind, i.entry_id AS entry_id, i.key_path AS key_path, i.value_text AS text,
       coalesce(e.at, c.updated_at) AS updated_at, coalesce(e.actor, c.updated_by) AS updated_by,
       -bm25(search_fts, 0.4, 4.0) AS score
FROM search_fts JOIN search_index i ON i.id = search_fts.rowid JOIN category c ON c.id = i.category_id
LEFT JOIN log_entry e ON e.category_id = i.category_id AND e.entry_id = i.entry_id
WHERE search_fts MATCH :expression
  AND c.deleted_at IS NULL AND c.kind IN (:kind, :other_kind) AND (:category IS NULL OR c.name = :category)
  AND (:after IS NULL OR coalesce(e.at, c.updated_at) >= :after)
  AND (:before IS NULL OR coalesce(e.at, c.updated_at) <= :before)
  AND (:actor IS NULL OR coalesce(e.actor, c.updated_by) = :actor)
ORDER BY bm25(search_fts, 0.4, 4.0), i.id
LIMIT :limit;

-- name: lesson_index_rows
INSERT INTO memory_search_index (rowid, memory_id, memory_text, evidence_text)
SELECT m.id, m.id, m.text, coalesce(
    (SELECT group_concat(e.description, char(10)) FROM (
        SELECT description FROM evidence WHERE memory_id = m.id ORDER BY id
    ) e), ''
)
FROM memories m WHERE m.text <> '';

-- name: empty_lesson_index
DELETE FROM memory_search_index;

-- name: documents_self_check
INSERT INTO search_fts (search_fts, rank) VALUES ('integrity-check', 1);

-- name: rebuild_document_index
INSERT INTO search_fts (search_fts) VALUES ('rebuild');

-- name: index_self_check
INSERT INTO memory_search_index (memory_search_index) VALUES ('integrity-check');

-- name: index_faults
SELECT 'full-text index: lesson ' || m.id || ' is missing' AS fault
FROM memories m LEFT JOIN memory_search_index i ON i.rowid = m.id
WHERE i.rowid IS NULL AND m.text <> ''
UNION ALL
SELECT 'full-text index: lesson ' || m.id || ' has another text'
FROM memories m JOIN memory_search_index i ON i.rowid = m.id
WHERE i.memory_text <> m.text
UNION ALL
SELECT 'full-text index: entry ' || i.rowid || ' belongs to no lesson'
FROM memory_search_index i LEFT JOIN memories m ON m.id = i.rowid
WHERE m.id IS NULL
LIMIT 100;

-- name: unindex_lesson
DELETE FROM memory_search_index WHERE rowid = :id;

-- name: merge_lesson_index
INSERT INTO memory_search_index (memory_search_index) VALUES ('optimize');

-- name: merge_document_index
INSERT INTO search_fts (search_fts) VALUES ('optimize');
