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
INSERT INTO policies VALUES (1,'{"backoff_base":30000,"backoff_cap":600000,"backoff_factor":2.0,"gap_timeout":300000,"hint_cap":3600000,"jitter":0.1,"lease":60000,"margin":-1,"max_requeues":3,"max_wait":86400000,"retry_unknown":true,"strict_expiry":false}');
INSERT INTO policies VALUES (2,'{"backoff_base":30000,"backoff_cap":600000,"backoff_factor":2.0,"gap_timeout":300000,"hint_cap":3600000,"jitter":0.1,"lease":1,"margin":-1,"max_requeues":3,"max_wait":86400000,"retry_unknown":true,"strict_expiry":false}');
INSERT INTO runs VALUES (1,'01a23856-4fd4-7d07-ac94-f491d0e64ae6','steps','default','completed','completed','queued',0,1796241510358,NULL,1796241510393,1796241510415,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,4,22);
INSERT INTO runs VALUES (2,'01a23856-4fe2-7d44-93c6-7f4b5c95673e','steps','default','failed','not_retryable','queued',0,1796241510370,NULL,1796241510393,1796241510415,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"client_error","code":"broken","delay_source":"","message":"it broke","model":"","not_started":false,"outcome_unknown":false,"provider":"","retry_after":null,"should_retry":null}',NULL,NULL,NULL,4,23);
INSERT INTO runs VALUES (3,'01a23856-4fe6-7086-ae75-26d282835400','steps','default','queued',NULL,'queued',0,1796241510374,1796241543058,1796241510393,NULL,NULL,1,NULL,NULL,0,1796241510415,1,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"overloaded","code":"broken","delay_source":"backoff","message":"it broke","model":"","not_started":false,"outcome_unknown":false,"provider":"","retry_after":null,"should_retry":null}',NULL,NULL,NULL,4,24);
INSERT INTO runs VALUES (4,'01a23856-4fea-76d8-a531-822d5c070b40','pay','default','failed','not_retryable','queued',0,1796241510378,NULL,1796241510393,1796241510413,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"timeout","code":"","delay_source":"","message":"the outcome of pay is not known (step pay#1): no answer; look whether it took effect, then `holdfast resolve 01a23856-4fea-76d8-a531-822d5c070b40 --landed` or `--not-landed`","model":"","not_started":false,"outcome_unknown":true,"provider":"","retry_after":null,"should_retry":null}','{"arguments":{"amount":5},"claim":1,"deadline":65429667,"effect":"non_idempotent_write","has_probe":false,"idempotency_key":"01a23856-4fea-76d8-a531-822d5c070b40:pay#1","name":"pay","since":1796241510408,"step":"pay#1","timeout":303000}',NULL,NULL,3,21);
INSERT INTO runs VALUES (5,'01a23856-4fed-7a03-bf1f-2ddb4704a0c8','ask','default','waiting_for_approval',NULL,'queued',0,1796241510382,NULL,1796241510393,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,'{"calls":[{"arguments":{"amount":5},"decision":"undecided","ends_on_denial":false,"id":"1","name":"act"}],"deadline":null,"kind":"approval","prompt":"","schema":null,"timeout":null,"turn":"f968cd87ea9111917af0d68051093022"}',NULL,3,16);
INSERT INTO runs VALUES (6,'01a23856-4fef-73d0-a594-4e953136ea76','fill','default','waiting_for_input',NULL,'queued',0,1796241510383,NULL,1796241510393,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,'{"calls":[],"deadline":null,"kind":"input","prompt":"Who is it?","schema":{"properties":{"name":{"type":"string"}},"type":"object"},"timeout":null,"turn":"7454be8bafd1a6bf07ffb1e807768b91"}',NULL,3,19);
INSERT INTO runs VALUES (7,'01a23856-4ff1-7172-8522-173f6b1627dd','nap','default','queued',NULL,'queued',0,1796241510386,1796327910402,1796241510393,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,3,17);
INSERT INTO runs VALUES (8,'01a23856-501a-74f5-83a9-e0fab3a97c5a','steps','default','cancelled','cancelled','queued',0,1796241510426,NULL,NULL,1796241510428,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,2,26);
INSERT INTO runs VALUES (9,'01a23856-501d-766b-92d2-902f7b55d973','steps','nightly','queued',NULL,'queued',7,1796241510429,4949841510429,NULL,NULL,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,27);
INSERT INTO runs VALUES (10,'01a23856-5026-7f96-907b-fddc69ed89eb','steps','default','queued',NULL,'queued',0,1796241510438,1796241510438,NULL,NULL,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,28);
INSERT INTO runs VALUES (11,'01a23856-502b-7bc7-bb76-c327e08a2ac9','steps','default','running',NULL,'queued',0,1796241510443,NULL,1796241510455,NULL,'worker of live',1,65489709,65489709,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,2,30);
INSERT INTO runs VALUES (12,'01a23856-503d-7d2e-9f1f-4ec742d6aff9','steps','default','running',NULL,'queued',0,1796241510462,NULL,1796241510466,NULL,'worker of expired',1,65429721,65429721,0,NULL,0,3,0,0,0,0,0,0,0.0,2,NULL,NULL,NULL,NULL,2,32);
INSERT INTO runs VALUES (13,'01a23856-5045-7d7a-b0d9-2558e0f655d9','steps','default','running',NULL,'interactive',0,1796241510469,NULL,1796241510469,NULL,'somebody',1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,33);
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
INSERT INTO run_data VALUES (11,'null',NULL,NULL,NULL,'01a23856-502b-7bc7-bb76-c327e08a2ac9');
INSERT INTO run_data VALUES (12,'null',NULL,NULL,NULL,'01a23856-503d-7d2e-9f1f-4ec742d6aff9');
INSERT INTO run_data VALUES (13,'null',NULL,NULL,NULL,'01a23856-5045-7d7a-b0d9-2558e0f655d9');
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
INSERT INTO events VALUES (1,1,1,'queued',1796241510358,0,0,'{"agent":"steps","available_at":"2026-12-02T19:58:30.358Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (2,2,1,'queued',1796241510370,0,0,'{"agent":"steps","available_at":"2026-12-02T19:58:30.370Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (3,3,1,'queued',1796241510374,0,0,'{"agent":"steps","available_at":"2026-12-02T19:58:30.374Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (4,4,1,'queued',1796241510378,0,0,'{"agent":"pay","available_at":"2026-12-02T19:58:30.378Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (5,5,1,'queued',1796241510382,0,0,'{"agent":"ask","available_at":"2026-12-02T19:58:30.382Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (6,6,1,'queued',1796241510383,0,0,'{"agent":"fill","available_at":"2026-12-02T19:58:30.383Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (7,7,1,'queued',1796241510386,0,0,'{"agent":"nap","available_at":"2026-12-02T19:58:30.386Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (8,1,2,'claimed',1796241510393,1,1,'{"worker":"vm-3060-6542938-cc5303cf034d2030"}');
INSERT INTO events VALUES (9,2,2,'claimed',1796241510393,1,2,'{"worker":"vm-3060-6542938-cc5303cf034d2030"}');
INSERT INTO events VALUES (10,3,2,'claimed',1796241510393,1,3,'{"worker":"vm-3060-6542938-cc5303cf034d2030"}');
INSERT INTO events VALUES (11,4,2,'claimed',1796241510393,1,4,'{"worker":"vm-3060-6542938-cc5303cf034d2030"}');
INSERT INTO events VALUES (12,5,2,'claimed',1796241510393,1,5,'{"worker":"vm-3060-6542938-cc5303cf034d2030"}');
INSERT INTO events VALUES (13,6,2,'claimed',1796241510393,1,6,'{"worker":"vm-3060-6542938-cc5303cf034d2030"}');
INSERT INTO events VALUES (14,7,2,'claimed',1796241510393,1,7,'{"worker":"vm-3060-6542938-cc5303cf034d2030"}');
INSERT INTO events VALUES (15,1,3,'step',1796241510408,1,8,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (16,5,3,'approval_requested',1796241510408,1,12,'{"calls":[{"arguments":{"amount":5},"id":"1","name":"act"}],"deadline":null,"prompt":null,"schema":null,"turn":"f968cd87ea9111917af0d68051093022"}');
INSERT INTO events VALUES (17,7,3,'slept',1796241510408,1,14,'{"available_at":"2026-12-03T19:58:30.402Z","key":"nap#1","name":"nap","until":"2026-12-03T19:58:30.402Z"}');
INSERT INTO events VALUES (18,2,3,'step',1796241510408,1,9,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (19,6,3,'input_requested',1796241510408,1,13,'{"calls":[],"deadline":null,"prompt":"Who is it?","schema":{"properties":{"name":{"type":"string"}},"type":"object"},"turn":"7454be8bafd1a6bf07ffb1e807768b91"}');
INSERT INTO events VALUES (20,3,3,'step',1796241510408,1,10,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (21,4,3,'failed',1796241510413,1,11,'{"available_at":null,"charged":false,"class":"timeout","code":null,"delay_source":null,"message":"the outcome of pay is not known (step pay#1): no answer; look whether it took effect, then `holdfast resolve 01a23856-4fea-76d8-a531-822d5c070b40 --landed` or `--not-landed`","model":null,"provider":null,"reason":"not_retryable"}');
INSERT INTO events VALUES (22,1,4,'completed',1796241510415,1,15,'{"answer":"done","reason":"completed"}');
INSERT INTO events VALUES (23,2,4,'failed',1796241510415,1,18,'{"available_at":null,"charged":false,"class":"client_error","code":"broken","delay_source":null,"message":"it broke","model":null,"provider":null,"reason":"not_retryable"}');
INSERT INTO events VALUES (24,3,4,'requeued',1796241510415,1,20,'{"available_at":"2026-12-02T19:59:03.058Z","charged":true,"class":"overloaded","code":"broken","delay_source":"backoff","message":"it broke","model":null,"provider":null}');
INSERT INTO events VALUES (25,8,1,'queued',1796241510426,0,0,'{"agent":"steps","available_at":"2026-12-02T19:58:30.426Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (26,8,2,'cancelled',1796241510428,0,25,'{"actor":"ada","note":"enough","operation":"01a23856-501c-711a-ab6b-29796803f674"}');
INSERT INTO events VALUES (27,9,1,'queued',1796241510429,0,0,'{"agent":"steps","available_at":"2126-11-08T19:58:30.429Z","priority":7,"queue":"nightly"}');
INSERT INTO events VALUES (28,10,1,'queued',1796241510438,0,0,'{"agent":"steps","available_at":"2026-12-02T19:58:30.438Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (29,11,1,'queued',1796241510443,0,0,'{"agent":"steps","available_at":"2026-12-02T19:58:30.443Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (30,11,2,'claimed',1796241510455,1,29,'{"worker":"worker of live"}');
INSERT INTO events VALUES (31,12,1,'queued',1796241510462,0,0,'{"agent":"steps","available_at":"2026-12-02T19:58:30.462Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (32,12,2,'claimed',1796241510466,1,31,'{"worker":"worker of expired"}');
INSERT INTO events VALUES (33,13,1,'started',1796241510469,1,0,'{"agent":"steps","priority":0,"queue":"default","worker":"somebody"}');
INSERT INTO counts VALUES ('cancelled','cancelled',1);
INSERT INTO counts VALUES ('completed','completed',1);
INSERT INTO counts VALUES ('failed','not_retryable',2);
INSERT INTO counts VALUES ('queued','',4);
INSERT INTO counts VALUES ('running','',3);
INSERT INTO counts VALUES ('waiting_for_approval','',1);
INSERT INTO counts VALUES ('waiting_for_input','',1);
INSERT INTO circuits VALUES ('main/spent','{"cause":"quota_exhausted","code":"","failures":1,"open_until":66329728,"probe_until":null}');
