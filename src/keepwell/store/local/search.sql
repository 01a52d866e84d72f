-- name: index_lesson
INSERT INTO memory_search_index (rowid, memory_id, memory_text, evidence_text)
VALUES (:memory_id, :memory_id, :memory_text, :evidence_text);

-- name: search
-- Text counts four times as much as evidence. The filters stand inside the candidate query, never after it.
SELECT m.id AS id, -bm25(memory_search_index, 0.0, 4.0, 1.0) AS score
FROM memory_search_index JOIN memories m ON m.id = memory_search_index.rowid
WHERE memory_search_index MATCH :expression
  AND m.status = 'active' AND m.scope_id IN (:scope, :other_scope)
ORDER BY bm25(memory_search_index, 0.0, 4.0, 1.0), m.id DESC
LIMIT :limit;

-- name: index_self_check
INSERT INTO memory_search_index (memory_search_index) VALUES ('integrity-check');

-- name: index_faults
SELECT 'full-text index: lesson ' || m.id || ' is missing' AS fault
FROM memories m LEFT JOIN memory_search_index i ON i.rowid = m.id
WHERE i.rowid IS NULL
UNION ALL
SELECT 'full-text index: lesson ' || m.id || ' has another text'
FROM memories m JOIN memory_search_index i ON i.rowid = m.id
WHERE i.memory_text <> m.text
UNION ALL
SELECT 'full-text index: entry ' || i.rowid || ' belongs to no lesson'
FROM memory_search_index i LEFT JOIN memories m ON m.id = i.rowid
WHERE m.id IS NULL
LIMIT 100;
