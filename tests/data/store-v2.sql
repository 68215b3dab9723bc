PRAGMA application_id = 1213156420;
PRAGMA user_version = 2;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE policies (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE runs (
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  agent TEXT NOT NULL,
  queue TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  origin TEXT NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  available_at INTEGER,
  started_at INTEGER,
  finished_at INTEGER,
  claimed_by TEXT,
  claim INTEGER NOT NULL,
  lease_until INTEGER,
  lease_key INTEGER,
  lease_lost_by_presence INTEGER NOT NULL,
  failing_since INTEGER,
  requeue_count INTEGER NOT NULL,
  max_requeues INTEGER NOT NULL,
  reclaim_count INTEGER NOT NULL,
  redrive_count INTEGER NOT NULL,
  iterations INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL,
  policy INTEGER REFERENCES policies (id),
  error TEXT,
  fence TEXT,
  waiting TEXT,
  wait_deadline INTEGER,
  last_sequence INTEGER NOT NULL,
  last_position INTEGER NOT NULL
) STRICT;
CREATE TABLE run_data (
  run INTEGER PRIMARY KEY,
  input TEXT NOT NULL,
  answer TEXT,
  definition TEXT,
  idempotency_key TEXT,
  content_digest TEXT NOT NULL
) STRICT;
CREATE TABLE labels (
  run INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  claim INTEGER NOT NULL,
  previous INTEGER NOT NULL,
  payload TEXT NOT NULL
) STRICT;
CREATE TABLE counts (
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (status, reason)
) STRICT, WITHOUT ROWID;
CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL,
  json TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE circuits (target TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX runs_by_id ON runs (id);
CREATE INDEX runs_queued ON runs (agent, queue, priority DESC, available_at, id)
  WHERE status = 'queued';
CREATE INDEX runs_leased ON runs (lease_key) WHERE lease_key IS NOT NULL;
CREATE INDEX runs_held ON runs (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX runs_waiting ON runs (wait_deadline) WHERE waiting IS NOT NULL;
CREATE INDEX runs_finished ON runs (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_failed ON runs (status) WHERE status = 'failed';
CREATE UNIQUE INDEX run_data_by_key ON run_data (idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX labels_by_value ON labels (key, value, run);
CREATE UNIQUE INDEX events_by_run ON events (run, sequence) WHERE sequence % 64 = 0;
INSERT INTO meta VALUES ('boot_id','b4802746-9ea7-469e-8310-e54316adc140');
INSERT INTO meta VALUES ('log_mark','2');
INSERT INTO meta VALUES ('store_id','80e67ca9e4785b99a72db3d282574717');
INSERT INTO policies VALUES (1,'{"backoff_base":30000,"backoff_cap":600000,"backoff_factor":2.0,"gap_timeout":300000,"hint_cap":3600000,"jitter":0.1,"lease":60000,"margin":-1,"max_requeues":3,"max_wait":86400000,"retry_unknown":true,"strict_expiry":false}');
INSERT INTO policies VALUES (2,'{"backoff_base":30000,"backoff_cap":600000,"backoff_factor":2.0,"gap_timeout":300000,"hint_cap":3600000,"jitter":0.1,"lease":1,"margin":-1,"max_requeues":3,"max_wait":86400000,"retry_unknown":true,"strict_expiry":false}');
INSERT INTO runs VALUES (1,'01a23870-4e3d-71a4-9020-061f4e674c6c','steps','default','completed','completed','queued',0,1796243213904,NULL,1796243213970,1796243214038,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,4,22);
INSERT INTO runs VALUES (2,'01a23870-4e64-7707-88c2-31a04bccc4eb','steps','default','failed','not_retryable','queued',0,1796243213924,NULL,1796243213970,1796243214012,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"client_error","code":"broken","delay_source":"","message":"it broke","model":"","not_started":false,"outcome_unknown":false,"provider":"","retry_after":null,"should_retry":null}',NULL,NULL,NULL,4,17);
INSERT INTO runs VALUES (3,'01a23870-4e6a-7c83-ae11-91b412416491','steps','default','queued',NULL,'queued',0,1796243213930,1796243244275,1796243213970,NULL,NULL,1,NULL,NULL,0,1796243214051,1,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"overloaded","code":"broken","delay_source":"backoff","message":"it broke","model":"","not_started":false,"outcome_unknown":false,"provider":"","retry_after":null,"should_retry":null}',NULL,NULL,NULL,4,24);
INSERT INTO runs VALUES (4,'01a23870-4e6d-71f8-b0a5-514f5143dc4b','pay','default','failed','not_retryable','queued',0,1796243213934,NULL,1796243213970,1796243214051,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"timeout","code":"","delay_source":"","message":"the outcome of pay is not known (step pay#1): no answer; look whether it took effect, then `holdfast resolve 01a23870-4e6d-71f8-b0a5-514f5143dc4b --landed` or `--not-landed`","model":"","not_started":false,"outcome_unknown":true,"provider":"","retry_after":null,"should_retry":null}','{"arguments":{"amount":5},"claim":1,"deadline":67133305,"effect":"non_idempotent_write","has_probe":false,"idempotency_key":"01a23870-4e6d-71f8-b0a5-514f5143dc4b:pay#1","name":"pay","since":1796243214012,"step":"pay#1","timeout":303000}',NULL,NULL,3,23);
INSERT INTO runs VALUES (5,'01a23870-4e73-7259-9ad7-89a4d810ef1d','ask','default','waiting_for_approval',NULL,'queued',0,1796243213939,NULL,1796243213970,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,'{"calls":[{"arguments":{"amount":5},"decision":"undecided","ends_on_denial":false,"id":"1","name":"act"}],"deadline":null,"kind":"approval","prompt":"","schema":null,"timeout":null,"turn":"b94947de7a18a8c1bddeaa96d2b9ebe8"}',NULL,3,18);
INSERT INTO runs VALUES (6,'01a23870-4e77-72e6-8584-dfdff0e13c79','fill','default','waiting_for_input',NULL,'queued',0,1796243213943,NULL,1796243213970,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,'{"calls":[],"deadline":null,"kind":"input","prompt":"Who is it?","schema":{"properties":{"name":{"type":"string"}},"type":"object"},"timeout":null,"turn":"8c281a0620f8a3697c0575b7387a512b"}',NULL,3,19);
INSERT INTO runs VALUES (7,'01a23870-4e7f-775f-a286-7e89724dc364','nap','default','queued',NULL,'queued',0,1796243213951,1796329614012,1796243213970,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,3,20);
INSERT INTO runs VALUES (8,'01a23870-4ef1-7ed3-b4f1-37c1bc4c3a7f','steps','default','cancelled','cancelled','queued',0,1796243214065,NULL,NULL,1796243214074,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,2,26);
INSERT INTO runs VALUES (9,'01a23870-4efc-7a61-9d64-930517808ebf','steps','nightly','queued',NULL,'queued',7,1796243214076,4949843214076,NULL,NULL,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,27);
INSERT INTO runs VALUES (10,'01a23870-4f03-717f-9ef6-4f97eff0e528','steps','default','queued',NULL,'queued',0,1796243214085,1796243214085,NULL,NULL,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,28);
INSERT INTO runs VALUES (11,'01a23870-4f0f-7653-bb1d-5b22a684bf75','steps','default','running',NULL,'queued',0,1796243214097,NULL,1796243214104,NULL,'worker of live',1,67193358,67193358,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,2,30);
INSERT INTO runs VALUES (12,'01a23870-4f35-7180-889f-379c93991bda','steps','default','running',NULL,'queued',0,1796243214134,NULL,1796243214138,NULL,'worker of expired',1,67133393,67133393,0,NULL,0,3,0,0,0,0,0,0,0.0,2,NULL,NULL,NULL,NULL,2,32);
INSERT INTO runs VALUES (13,'01a23870-4f42-7160-a33b-459e285aa7f2','steps','default','running',NULL,'interactive',0,1796243214146,NULL,1796243214146,NULL,'somebody',1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,33);
INSERT INTO run_data VALUES (1,'null','"done"',NULL,NULL,'ce8d704fd783782ccba27f38a03269e4d93bbcc58018fd8eced24d160e42bd91');
INSERT INTO run_data VALUES (2,'"client_error"',NULL,NULL,NULL,'88f4a35c991a606b9c62fbca238532e1e3b8b3775fa032d61c7c839a5177e47f');
INSERT INTO run_data VALUES (3,'"overloaded"',NULL,NULL,NULL,'995f59804ac3cb92582b318ce9d37548416ae177ee474085814767b4cde275cd');
INSERT INTO run_data VALUES (4,'null',NULL,NULL,NULL,'c90366a388eca873f77e9888ada444151d4fab1193ad45fb013bb78dcea6dd32');
INSERT INTO run_data VALUES (5,'null',NULL,NULL,NULL,'5d7ce230bf6e1df08b096cb098820174ecfc683543448a37c1cbec57babe9b23');
INSERT INTO run_data VALUES (6,'null',NULL,NULL,NULL,'cfce5d4146ca4ca3e8ec9dcf2ea648e53818bc6a6ed647f98e55542526a56cc6');
INSERT INTO run_data VALUES (7,'null',NULL,NULL,NULL,'11a403cd0acde02537f1e60df27c37760b556d40ba3e711efcd80884f602427f');
INSERT INTO run_data VALUES (8,'null',NULL,NULL,NULL,'45cd58ae3835249be318c093c088b6926c71c9c581978630734e94557dcf576f');
INSERT INTO run_data VALUES (9,'null',NULL,NULL,'key-1','5a66611052fa7bd7aac40ad19afcf1032c3588d490dc694eb2ac0724a45bd888');
INSERT INTO run_data VALUES (10,'null',NULL,NULL,NULL,'30875361da995fe673e06034015114d6bb4835a3757eebed0c3c2b3d5c240945');
INSERT INTO run_data VALUES (11,'null',NULL,NULL,NULL,'01a23870-4f0f-7653-bb1d-5b22a684bf75');
INSERT INTO run_data VALUES (12,'null',NULL,NULL,NULL,'01a23870-4f35-7180-889f-379c93991bda');
INSERT INTO run_data VALUES (13,'null',NULL,NULL,NULL,'01a23870-4f42-7160-a33b-459e285aa7f2');
INSERT INTO labels VALUES (5,'story','approval');
INSERT INTO labels VALUES (7,'story','asleep');
INSERT INTO labels VALUES (3,'story','backoff');
INSERT INTO labels VALUES (8,'story','cancelled');
INSERT INTO labels VALUES (1,'story','completed');
INSERT INTO labels VALUES (2,'story','dead');
INSERT INTO labels VALUES (9,'story','delayed');
INSERT INTO labels VALUES (12,'story','expired');
INSERT INTO labels VALUES (6,'story','input');
INSERT INTO labels VALUES (13,'story','interactive');
INSERT INTO labels VALUES (11,'story','live');
INSERT INTO labels VALUES (10,'story','queued');
INSERT INTO labels VALUES (4,'story','unknown write');
INSERT INTO events VALUES (1,1,1,'queued',1796243213904,0,0,'{"agent":"steps","available_at":"2026-12-02T20:26:53.904Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (2,2,1,'queued',1796243213924,0,0,'{"agent":"steps","available_at":"2026-12-02T20:26:53.924Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (3,3,1,'queued',1796243213930,0,0,'{"agent":"steps","available_at":"2026-12-02T20:26:53.930Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (4,4,1,'queued',1796243213934,0,0,'{"agent":"pay","available_at":"2026-12-02T20:26:53.934Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (5,5,1,'queued',1796243213939,0,0,'{"agent":"ask","available_at":"2026-12-02T20:26:53.939Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (6,6,1,'queued',1796243213943,0,0,'{"agent":"fill","available_at":"2026-12-02T20:26:53.943Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (7,7,1,'queued',1796243213951,0,0,'{"agent":"nap","available_at":"2026-12-02T20:26:53.951Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (8,1,2,'claimed',1796243213970,1,1,'{"worker":"host-25231-6713283-a3a9844b986c336d"}');
INSERT INTO events VALUES (9,2,2,'claimed',1796243213970,1,2,'{"worker":"host-25231-6713283-a3a9844b986c336d"}');
INSERT INTO events VALUES (10,3,2,'claimed',1796243213970,1,3,'{"worker":"host-25231-6713283-a3a9844b986c336d"}');
INSERT INTO events VALUES (11,4,2,'claimed',1796243213970,1,4,'{"worker":"host-25231-6713283-a3a9844b986c336d"}');
INSERT INTO events VALUES (12,5,2,'claimed',1796243213970,1,5,'{"worker":"host-25231-6713283-a3a9844b986c336d"}');
INSERT INTO events VALUES (13,6,2,'claimed',1796243213970,1,6,'{"worker":"host-25231-6713283-a3a9844b986c336d"}');
INSERT INTO events VALUES (14,7,2,'claimed',1796243213970,1,7,'{"worker":"host-25231-6713283-a3a9844b986c336d"}');
INSERT INTO events VALUES (15,2,3,'step',1796243213992,1,9,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (16,1,3,'step',1796243214012,1,8,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (17,2,4,'failed',1796243214012,1,15,'{"available_at":null,"charged":false,"class":"client_error","code":"broken","delay_source":null,"message":"it broke","model":null,"provider":null,"reason":"not_retryable"}');
INSERT INTO events VALUES (18,5,3,'approval_requested',1796243214012,1,12,'{"calls":[{"arguments":{"amount":5},"id":"1","name":"act"}],"deadline":null,"prompt":null,"schema":null,"turn":"b94947de7a18a8c1bddeaa96d2b9ebe8"}');
INSERT INTO events VALUES (19,6,3,'input_requested',1796243214012,1,13,'{"calls":[],"deadline":null,"prompt":"Who is it?","schema":{"properties":{"name":{"type":"string"}},"type":"object"},"turn":"8c281a0620f8a3697c0575b7387a512b"}');
INSERT INTO events VALUES (20,7,3,'slept',1796243214012,1,14,'{"available_at":"2026-12-03T20:26:54.012Z","key":"nap#1","name":"nap","until":"2026-12-03T20:26:54.012Z"}');
INSERT INTO events VALUES (21,3,3,'step',1796243214038,1,10,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (22,1,4,'completed',1796243214038,1,16,'{"answer":"done","reason":"completed"}');
INSERT INTO events VALUES (23,4,3,'failed',1796243214051,1,11,'{"available_at":null,"charged":false,"class":"timeout","code":null,"delay_source":null,"message":"the outcome of pay is not known (step pay#1): no answer; look whether it took effect, then `holdfast resolve 01a23870-4e6d-71f8-b0a5-514f5143dc4b --landed` or `--not-landed`","model":null,"provider":null,"reason":"not_retryable"}');
INSERT INTO events VALUES (24,3,4,'requeued',1796243214051,1,21,'{"available_at":"2026-12-02T20:27:24.275Z","charged":true,"class":"overloaded","code":"broken","delay_source":"backoff","message":"it broke","model":null,"provider":null}');
INSERT INTO events VALUES (25,8,1,'queued',1796243214065,0,0,'{"agent":"steps","available_at":"2026-12-02T20:26:54.065Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (26,8,2,'cancelled',1796243214074,0,25,'{"actor":"ada","note":"enough","operation":"01a23870-4efa-7f57-a82a-a6330b238dd8"}');
INSERT INTO events VALUES (27,9,1,'queued',1796243214076,0,0,'{"agent":"steps","available_at":"2126-11-08T20:26:54.076Z","priority":7,"queue":"nightly"}');
INSERT INTO events VALUES (28,10,1,'queued',1796243214085,0,0,'{"agent":"steps","available_at":"2026-12-02T20:26:54.085Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (29,11,1,'queued',1796243214097,0,0,'{"agent":"steps","available_at":"2026-12-02T20:26:54.097Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (30,11,2,'claimed',1796243214104,1,29,'{"worker":"worker of live"}');
INSERT INTO events VALUES (31,12,1,'queued',1796243214134,0,0,'{"agent":"steps","available_at":"2026-12-02T20:26:54.134Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (32,12,2,'claimed',1796243214138,1,31,'{"worker":"worker of expired"}');
INSERT INTO events VALUES (33,13,1,'started',1796243214146,1,0,'{"agent":"steps","priority":0,"queue":"default","worker":"somebody"}');
INSERT INTO counts VALUES ('cancelled','cancelled',1);
INSERT INTO counts VALUES ('completed','completed',1);
INSERT INTO counts VALUES ('failed','not_retryable',2);
INSERT INTO counts VALUES ('queued','',4);
INSERT INTO counts VALUES ('running','',3);
INSERT INTO counts VALUES ('waiting_for_approval','',1);
INSERT INTO counts VALUES ('waiting_for_input','',1);
INSERT INTO circuits VALUES ('main/spent','{"cause":"quota_exhausted","code":"","failures":1,"open_until":68033408,"probe_until":null}');
