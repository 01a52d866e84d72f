-- name: foreign_keys
PRAGMA foreign_keys = ON;

-- name: foreign_keys_off
PRAGMA foreign_keys = OFF;

-- name: distrust_schema
PRAGMA trusted_schema = OFF;

-- name: synchronous_full
PRAGMA synchronous = FULL;

-- name: synchronous_normal
PRAGMA synchronous = NORMAL;

-- name: synchronous
PRAGMA synchronous;

-- name: journal_wal
PRAGMA journal_mode = WAL;

-- name: journal_delete
PRAGMA journal_mode = DELETE;

-- name: journal_mode
PRAGMA journal_mode;

-- name: wal_size_limit
PRAGMA journal_size_limit = 16777216;

-- name: wal_autocheckpoint
PRAGMA wal_autocheckpoint = 1000;

-- name: read_only
PRAGMA query_only = ON;

-- name: identify
PRAGMA application_id = 1264010572;

-- name: version_1
PRAGMA user_version = 1;

-- name: application_id
PRAGMA application_id;

-- name: user_version
PRAGMA user_version;

-- name: tables
SELECT count(*) FROM sqlite_schema;

-- name: begin_read
BEGIN DEFERRED;

-- name: touch
SELECT 1 FROM sqlite_schema LIMIT 1;

-- name: begin_write
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: integrity
PRAGMA integrity_check;

-- name: foreign_key_faults
PRAGMA foreign_key_check;

-- name: copy_whole
VACUUM INTO :target;

-- name: lock_exclusively
PRAGMA locking_mode = EXCLUSIVE;

-- name: begin_exclusive
BEGIN EXCLUSIVE;

-- name: secure_delete
PRAGMA secure_delete = ON;

-- name: rewrite_file
VACUUM;

-- name: checkpoint_truncate
PRAGMA wal_checkpoint(TRUNCATE);
