-- The tables of `playhead sql`, which DuckDB makes of the lines of trace files. Variables: files, answered (reason codes), format.

CREATE MACRO lines() AS TABLE FROM read_json_objects(
    getvariable('files'),
    format = 'newline_delimited', filename = true, ignore_errors = true, maximum_object_size = 33554432
);

CREATE TABLE events AS
SELECT regexp_extract(filename, '([^/]*?)(\.jsonl)?(\.gz|\.zst)?$', 1) AS run_id, line.seq, line.ts, line.kind, line.owner,
    line.iteration, CASE WHEN line.kind NOT IN ('message-added', 'tools-defined') THEN line.data END AS data,
    filename AS path, line.h
FROM (
    SELECT filename, json_transform(
        json,
        '{"seq": "BIGINT", "ts": "BIGINT", "kind": "VARCHAR", "owner": "VARCHAR", "iteration": "BIGINT", "data": "JSON", "h": "VARCHAR"}'
    ) AS line FROM lines()
);

-- Files with lines that do not continue the chain of hashes. Erased lines are among them.
CREATE TABLE unsound AS
SELECT line.filename AS path, count(*) AS lines
FROM lines() AS line
LEFT JOIN events AS before ON before.path = line.filename AND before.seq = TRY_CAST(line.json->>'seq' AS BIGINT) - 1
WHERE line.json IS NULL
    OR line.json->>'h' IS DISTINCT FROM sha256(coalesce(before.h, '') || left(line.json, -72))
    OR (line.json->>'kind' = 'run-started' AND split_part(line.json->'data'->>'format', '.', 1) <> getvariable('format'))
GROUP BY line.filename;

CREATE MACRO number(given) AS TRY_CAST(given AS DOUBLE);
CREATE MACRO whole(given) AS TRY_CAST(given AS BIGINT);
CREATE MACRO error_of(given) AS given->'error'->>'type' || ': ' || (given->'error'->>'message');
-- A number of tokens; 0 is not known where an attempt was not counted, or the prompt had none.
CREATE MACRO tokens(given, name, is_counted) AS CASE WHEN is_counted OR whole(given->>name) > 0 THEN whole(given->>name) END;

CREATE VIEW runs AS
SELECT began.run_id,
    CASE
        WHEN ended.data IS NULL THEN 'open'
        WHEN ended.data->>'status' <> 'done' THEN 'failed'
        WHEN list_contains(getvariable('answered'), ended.data->>'terminated_by') THEN 'answered'
        ELSE 'stopped'
    END AS ending,
    ended.data->>'terminated_by' AS terminated_by, began.data->'agent'->>'name' AS agent, began.data->'agent'->>'model' AS model,
    began.data->>'task' AS task, ended.data->>'output' AS output, make_timestamp(began.ts) AS started,
    number(ended.data->>'duration_ms') AS duration_ms,
    tokens(ended.data->'usage', 'input_tokens', ended.data->'usage'->>'unknown' IS NULL) AS tokens_in,
    tokens(ended.data->'usage', 'output_tokens', ended.data->'usage'->>'unknown' IS NULL) AS tokens_out,
    whole(ended.data->'usage'->>'unknown') AS usage_unknown, number(ended.data->>'cost_usd') AS cost_usd,
    whole(ended.data->>'cost_unknown') AS cost_unknown, began.data->>'replay_of' AS replay_of, began.path
FROM events AS began LEFT JOIN events AS ended ON began.path = ended.path AND ended.kind = 'run-completed'
WHERE began.kind = 'run-started';

CREATE VIEW calls AS
SELECT asked.run_id, asked.seq, asked.owner, asked.iteration, asked.data->>'call_id' AS call_id, asked.data->>'tool' AS tool,
    asked.data->'args' AS args, TRY_CAST(done.data->>'ok' AS BOOLEAN) AS ok, done.data->'result' AS result,
    error_of(done.data) AS error, number(done.data->>'duration_ms') AS duration_ms
FROM events AS asked LEFT JOIN events AS done
    ON asked.path = done.path AND asked.owner = done.owner AND done.kind = 'tool-call-completed'
    AND asked.data->>'call_id' = done.data->>'call_id'
WHERE asked.kind = 'tool-call-started';

CREATE VIEW requests AS
SELECT asked.run_id, asked.seq, asked.owner, asked.iteration, whole(asked.data->>'request') AS request,
    whole(asked.data->>'attempt') AS attempt, asked.data->>'model' AS model, asked.data->>'purpose' AS purpose,
    done.data->>'finish_reason' AS finish_reason, error_of(done.data) AS error,
    tokens(done.data->'usage', 'input_tokens', false) AS tokens_in,
    tokens(done.data->'usage', 'output_tokens', whole(done.data->'usage'->>'input_tokens') > 0 AND done.data->'usage'->>'unknown' IS NULL)
        AS tokens_out,
    number(done.data->>'cost_usd') AS cost_usd, number(done.data->>'latency_ms') AS latency_ms
FROM events AS asked LEFT JOIN events AS done
    ON asked.path = done.path AND asked.owner = done.owner AND done.kind IN ('llm-responded', 'llm-failed')
    AND asked.data->>'request' = done.data->>'request' AND asked.data->>'attempt' = done.data->>'attempt'
WHERE asked.kind = 'llm-requested';

CREATE VIEW decisions AS
SELECT run_id, seq, owner, iteration, kind, data->>'tool' AS tool, reason->>'why' AS why, number(reason->>'confidence') AS confidence
FROM events, LATERAL (SELECT coalesce(data->'rationale', data->'termination_rationale') AS reason) AS stated
WHERE kind = 'tool-call-started' OR reason->>'why' IS NOT NULL;

-- From here on no file, no connection, no Python variable, and no way back.
SET python_enable_replacements = false;
SET autoinstall_known_extensions = false;
SET autoload_known_extensions = false;
SET allow_community_extensions = false;
SET enable_external_access = false;
SET lock_configuration = true;
