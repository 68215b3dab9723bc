#pragma once

// Enqueueing inside an application's transaction, from any language. It runs with the rights of
// its owner: applications need to use the schema, not to touch its tables. `canonical` is
// base/canonical.hpp in SQL, so that a request has the same digest whichever way it comes.
//
// Who changes it appends a step to the schema, which puts it in place of the old.

namespace holdfast::postgres {

inline constexpr char kEnqueueSql[] = R"sql(
CREATE OR REPLACE FUNCTION @.canonical(this json, depth int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
  kind text := json_typeof(this);
  said text;
  made text;
BEGIN
  IF kind IN ('object', 'array') AND depth > 64 THEN
    RAISE EXCEPTION 'holdfast: input: is nested deeper than 64 levels; flatten it or send it as text'
      USING ERRCODE = '22023';
  END IF;
  CASE kind
    WHEN 'object' THEN
      SELECT 'o' || count(*) || ':' || coalesce(string_agg('s' || octet_length(m.name) || ':' ||
        m.name || @.canonical(m.value, depth + 1), '' ORDER BY m.name COLLATE "C"), '') INTO made
        FROM (SELECT DISTINCT ON (e.name COLLATE "C") e.name, e.value
          FROM json_each(this) WITH ORDINALITY AS e(name, value, number)
          ORDER BY e.name COLLATE "C", e.number DESC) m;
      RETURN made;
    WHEN 'array' THEN
      SELECT 'a' || count(*) || ':' || coalesce(string_agg(@.canonical(e.value, depth + 1), ''
        ORDER BY e.number), '') INTO made
        FROM json_array_elements(this) WITH ORDINALITY AS e(value, number);
      RETURN made;
    WHEN 'string' THEN
      said := this #>> '{}';
      RETURN 's' || octet_length(said) || ':' || said;
    WHEN 'number' THEN
      said := this #>> '{}';
      IF said ~ '[.eE]' THEN
        RETURN 'd' || encode(float8send(said::float8), 'hex');
      END IF;
      IF octet_length(said) > 20 OR
          said::numeric NOT BETWEEN -9223372036854775808 AND 18446744073709551615 THEN
        RAISE EXCEPTION 'holdfast: input: the number % does not fit in 64 bits; write it as a string',
          left(said, 64) USING ERRCODE = '22023';
      END IF;
      RETURN 'i' || said::numeric || ';';
    WHEN 'boolean' THEN
      RETURN left(this #>> '{}', 1);
    ELSE
      RETURN 'n';
  END CASE;
END
$body$;
CREATE OR REPLACE FUNCTION @.enqueue(agent text, request json) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $body$
DECLARE
  the_now bigint := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
  the_due bigint := the_now;
  the_id text;
  the_queue text := 'default';
  the_priority bigint := 0;
  the_requeues bigint := -1;
  the_key text;
  the_digest text;
  the_first bigint;
  the_position bigint;
  the_delay bigint;
  the_at bigint;
  the_content text;
  the_random text := replace(gen_random_uuid()::text, '-', '');
  the_match text[];
  kind text;
  field text;
  label record;
  found_run uuid;
  found_digest text;
BEGIN
  IF coalesce(agent, '') = '' OR octet_length(agent) > 128 OR agent ~ '[\u0001-\u001f\u007f]' THEN
    RAISE EXCEPTION 'holdfast: agent: a name of 1 to 128 bytes without control characters is needed'
      USING ERRCODE = '22023';
  END IF;
  IF request IS NULL OR json_typeof(request) <> 'object' THEN
    RAISE EXCEPTION 'holdfast: request: a JSON object with the field input is needed'
      USING ERRCODE = '22023';
  END IF;
  BEGIN
    PERFORM request::jsonb;
    IF request -> 'input' IS NULL THEN
      RAISE EXCEPTION 'holdfast: input: is missing' USING ERRCODE = '22023';
    END IF;
    IF (CASE json_typeof(request -> 'input') WHEN 'string' THEN
          octet_length(request ->> 'input') > 1048576
        ELSE octet_length((request -> 'input')::text) > 1048576 AND
          octet_length(regexp_replace((request -> 'input')::text, '("(?:[^"\\]|\\.)*")|\s+', '\1',
            'g')) > 1048576 END) THEN
      RAISE EXCEPTION 'holdfast: input: is larger than 1 MiB; pass a reference to the data instead'
        USING ERRCODE = '22023';
    END IF;
    the_content := @.canonical(request -> 'input', 1);
  EXCEPTION
    WHEN untranslatable_character THEN
      RAISE EXCEPTION 'holdfast: request: holds U+0000, which cannot be taken in SQL; leave it out'
        USING ERRCODE = '22023';
    WHEN invalid_text_representation THEN
      RAISE EXCEPTION 'holdfast: request: holds half of a surrogate pair; send it as UTF-8'
        USING ERRCODE = '22023';
    WHEN numeric_value_out_of_range THEN
      RAISE EXCEPTION 'holdfast: input: holds a number too large or too small for 64 bits; write it as a string'
        USING ERRCODE = '22023';
  END;
  SELECT k INTO field FROM json_object_keys(request) k GROUP BY k HAVING count(*) > 1 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'holdfast: %: stands twice in the request', left(field, 64)
      USING ERRCODE = '22023';
  END IF;
  FOR field IN SELECT k FROM json_object_keys(request) k LOOP
    kind := json_typeof(request -> field);
    IF kind = 'null' AND field <> 'input' THEN
      CONTINUE;
    END IF;
    IF field IN ('id', 'queue', 'delay', 'at', 'idempotency_key') AND kind <> 'string' THEN
      RAISE EXCEPTION 'holdfast: %: is not a string', field USING ERRCODE = '22023';
    END IF;
    CASE field
      WHEN 'input' THEN NULL;
      WHEN 'id' THEN
        the_id := request ->> 'id';
        IF the_id !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
          RAISE EXCEPTION 'holdfast: id: is not a UUID in lower case' USING ERRCODE = '22023';
        END IF;
      WHEN 'queue' THEN
        the_queue := request ->> 'queue';
        IF octet_length(the_queue) NOT BETWEEN 1 AND 128 OR the_queue ~ '[\u0001-\u001f\u007f]' THEN
          RAISE EXCEPTION 'holdfast: queue: a name of 1 to 128 bytes is needed'
            USING ERRCODE = '22023';
        END IF;
      WHEN 'priority', 'max_requeues' THEN
        IF kind <> 'number' OR request ->> field !~ '^-?[0-9]{1,9}$' THEN
          RAISE EXCEPTION 'holdfast: %: is not a whole number', field USING ERRCODE = '22023';
        END IF;
        IF field = 'priority' THEN
          the_priority := (request ->> field)::bigint;
        ELSE
          the_requeues := (request ->> field)::bigint;
          IF the_requeues NOT BETWEEN 0 AND 1000000 THEN
            RAISE EXCEPTION 'holdfast: max_requeues: use 0 to 1000000' USING ERRCODE = '22023';
          END IF;
        END IF;
      WHEN 'delay' THEN
        the_match := regexp_match(request ->> 'delay', '^([0-9]{1,9})(ms|s|m|h|d)$');
        IF the_match IS NULL THEN
          RAISE EXCEPTION 'holdfast: delay: use a form like 500ms, 30s, 10m, 2h or 30d'
            USING ERRCODE = '22023';
        END IF;
        the_delay := the_match[1]::bigint * CASE the_match[2] WHEN 'ms' THEN 1
          WHEN 's' THEN 1000 WHEN 'm' THEN 60000 WHEN 'h' THEN 3600000 ELSE 86400000 END;
        the_due := the_now + the_delay;
        IF the_delay > 3162240000000 THEN
          RAISE EXCEPTION 'holdfast: delay: is longer than a hundred years' USING ERRCODE = '22023';
        END IF;
      WHEN 'at' THEN
        IF request ->> 'at' !~*
            '^[0-9]{4}(-[0-9]{2}){2}T([0-9]{2}:){2}[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$' THEN
          RAISE EXCEPTION 'holdfast: at: use a time with an offset, like 2026-11-02T08:30:00Z'
            USING ERRCODE = '22023';
        END IF;
        BEGIN
          the_at := ceil(extract(epoch FROM (request ->> 'at')::timestamptz) * 1000)::bigint;
        EXCEPTION WHEN datetime_field_overflow OR invalid_datetime_format THEN
          RAISE EXCEPTION 'holdfast: at: is no time of the calendar' USING ERRCODE = '22023';
        END;
        IF the_at NOT BETWEEN 0 AND 253370764799999 THEN
          RAISE EXCEPTION 'holdfast: at: lies outside the years 1970 to 9998' USING ERRCODE = '22023';
        END IF;
        the_due := greatest(the_now, the_at);
        IF request ->> 'delay' IS NOT NULL THEN
          RAISE EXCEPTION 'holdfast: at: stands beside delay; use one of them'
            USING ERRCODE = '22023';
        END IF;
      WHEN 'idempotency_key' THEN
        the_key := request ->> 'idempotency_key';
        IF octet_length(the_key) NOT BETWEEN 1 AND 256 OR the_key ~ '[\u0001-\u001f\u007f]' THEN
          RAISE EXCEPTION 'holdfast: idempotency_key: a text of 1 to 256 bytes is needed'
            USING ERRCODE = '22023';
        END IF;
        the_key := replace(the_key, '\', '\\');
      WHEN 'labels' THEN
        IF kind <> 'object' OR (SELECT count(*) FROM json_object_keys(request -> 'labels')) > 32 THEN
          RAISE EXCEPTION 'holdfast: labels: an object with at most 32 strings is needed'
            USING ERRCODE = '22023';
        END IF;
        FOR label IN SELECT l.key, l.value FROM json_each(request -> 'labels') l LOOP
          IF json_typeof(label.value) <> 'string' OR label.key !~ '^[A-Za-z0-9_./:-]{1,64}$' OR
              octet_length(label.value #>> '{}') > 256 OR (label.value #>> '{}') ~ '[\u0001-\u001f\u007f]' THEN
            RAISE EXCEPTION 'holdfast: labels: % is not a plain name with a string of at most 256 bytes',
              left(label.key, 64) USING ERRCODE = '22023';
          END IF;
        END LOOP;
      ELSE
        RAISE EXCEPTION 'holdfast: %: there is no such field', left(field, 64) USING ERRCODE = '22023',
          HINT = 'input, id, queue, priority, delay, at, idempotency_key, max_requeues, labels';
    END CASE;
  END LOOP;
  the_id := coalesce(the_id, substr(lpad(to_hex(the_now), 12, '0') || '7' ||
    substr(the_random, 14, 19), 1, 32)::uuid::text);
  -- As runtime/requests.cpp does: agent, input, priority, labels, queue, max_requeues, delay, at.
  the_content := 'a8:' || @.canonical(to_json(agent), 1) || the_content ||
    @.canonical(to_json(the_priority), 1) ||
    @.canonical(CASE json_typeof(request -> 'labels') WHEN 'object' THEN request -> 'labels'
      ELSE '{}' END, 1) ||
    @.canonical(to_json(request ->> 'queue'), 1) ||
    @.canonical(to_json(nullif(the_requeues, -1)), 1) || @.canonical(to_json(the_delay), 1) ||
    @.canonical(to_json(the_at), 1);
  the_digest := encode(sha256(convert_to(the_content, 'UTF8')), 'hex');
  INSERT INTO @.run_data (run, input, idempotency_key, content_digest)
    VALUES (the_id::uuid, (request -> 'input')::text, the_key, the_digest) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT d.run, d.content_digest INTO found_run, found_digest FROM @.run_data d
      WHERE d.idempotency_key = the_key OR d.run = the_id::uuid
      ORDER BY d.idempotency_key IS NULL LIMIT 1;
    IF found_digest = the_digest THEN
      RETURN found_run;
    END IF;
    RAISE EXCEPTION 'holdfast: %: belongs to run %, which was stored with other content',
      CASE WHEN the_key IS NULL THEN 'id' ELSE 'idempotency_key' END, found_run
      USING ERRCODE = '23505';
  END IF;
  INSERT INTO @.runs (id, agent, queue, status, origin, rank, created_at, available_at, claim,
    lease_lost_by_presence, requeue_count, max_requeues, reclaim_count, redrive_count, iterations,
    prompt_tokens, completion_tokens, total_tokens, cost_usd, last_sequence)
    VALUES (the_id::uuid, replace(agent, '\', '\\'), replace(the_queue, '\', '\\'), 'queued',
    'queued', -the_priority, the_now, the_due, 0, 0, 0, the_requeues, 0, 0, 0, 0, 0, 0, 0, 1);
  IF request ->> 'labels' IS NOT NULL THEN
    INSERT INTO @.labels (run, key, value)
      SELECT the_id::uuid, l.key, replace(l.value, '\', '\\')
      FROM jsonb_each_text((request -> 'labels')::jsonb) l;
  END IF;
  SELECT m.value::bigint + (pg_current_xact_id()::text::bigint << 20) INTO the_first
    FROM @.meta m WHERE m.key = 'position_base';
  SELECT coalesce(max(e.position), the_first) + 1 INTO the_position FROM @.events e
    WHERE e.position >= the_first AND e.position < the_first + 1048576;
  -- The next one is another transaction's.
  IF the_position >= the_first + 1048576 THEN
    RAISE EXCEPTION 'holdfast: a single transaction may enqueue 1048575 runs at most; split it'
      USING ERRCODE = '54000';
  END IF;
  INSERT INTO @.events (run, sequence, position, kind, at, claim, payload)
    SELECT the_id::uuid, 1, the_position, 'queued', the_now, 0, json_build_object('agent', agent,
      'queue', the_queue, 'priority', the_priority, 'available_at', to_char(to_timestamp(the_due / 1000.0) AT TIME ZONE 'UTC',
      'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text;
  PERFORM pg_notify('@.work', 'sql ' || CASE WHEN agent ~ '[ \\]' THEN '*' ELSE agent END);
  RETURN the_id::uuid;
END
$body$;
)sql";

}  // namespace holdfast::postgres
