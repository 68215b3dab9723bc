PRAGMA application_id = 1213156420;
PRAGMA user_version = 1;
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
INSERT INTO runs VALUES (1,'01a2363f-3d27-7de6-83de-1f6fab3f2e15','steps','default','completed','completed','queued',0,1796206443818,NULL,1796206443847,1796206443890,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,4,23);
INSERT INTO runs VALUES (2,'01a2363f-3d2f-75da-9586-34a2a8a16e9d','steps','default','failed','not_retryable','queued',0,1796206443824,NULL,1796206443847,1796206443890,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"client_error","code":"broken","delay_source":"","message":"it broke","model":"","not_started":false,"outcome_unknown":false,"provider":"","retry_after":null,"should_retry":null}',NULL,NULL,NULL,4,22);
INSERT INTO runs VALUES (3,'01a2363f-3d32-7ee5-874f-e34a23b8bcda','steps','default','queued',NULL,'queued',0,1796206443826,1796206474704,1796206443847,NULL,NULL,1,NULL,NULL,0,1796206443890,1,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"overloaded","code":"broken","delay_source":"backoff","message":"it broke","model":"","not_started":false,"outcome_unknown":false,"provider":"","retry_after":null,"should_retry":null}',NULL,NULL,NULL,4,24);
INSERT INTO runs VALUES (4,'01a2363f-3d35-79ad-86cc-ce221e796829','pay','default','failed','not_retryable','queued',0,1796206443830,NULL,1796206443847,1796206443881,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,'{"attempted":true,"class":"timeout","code":"","delay_source":"","message":"the outcome of pay is not known (step pay#1): no answer; look whether it took effect, then `holdfast resolve 01a2363f-3d35-79ad-86cc-ce221e796829 --landed` or `--not-landed`","model":"","not_started":false,"outcome_unknown":true,"provider":"","retry_after":null,"should_retry":null}','{"arguments":{"amount":5},"claim":1,"deadline":30363135,"effect":"non_idempotent_write","has_probe":false,"idempotency_key":"01a2363f-3d35-79ad-86cc-ce221e796829:pay#1","name":"pay","since":1796206443862,"step":"pay#1","timeout":303000}',NULL,NULL,3,21);
INSERT INTO runs VALUES (5,'01a2363f-3d38-70d8-9e00-1cc0d199276d','ask','default','waiting_for_approval',NULL,'queued',0,1796206443833,NULL,1796206443847,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,'{"calls":[{"arguments":{"amount":5},"decision":"undecided","ends_on_denial":false,"id":"1","name":"act"}],"deadline":null,"kind":"approval","prompt":"","schema":null,"timeout":null,"turn":"fb1787a6aa70ee3ac6ee3f7cc1879aa6"}',NULL,3,20);
INSERT INTO runs VALUES (6,'01a2363f-3d3b-73f8-b53c-02f224dd9ff1','fill','default','waiting_for_input',NULL,'queued',0,1796206443835,NULL,1796206443847,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,'{"calls":[],"deadline":null,"kind":"input","prompt":"Who is it?","schema":{"properties":{"name":{"type":"string"}},"type":"object"},"timeout":null,"turn":"87bde1dc595c2accb3afa1781680bd4e"}',NULL,3,18);
INSERT INTO runs VALUES (7,'01a2363f-3d3d-7c5e-8ee2-1b9ac7dd6793','nap','default','queued',NULL,'queued',0,1796206443837,1796292843866,1796206443847,NULL,NULL,1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,3,17);
INSERT INTO runs VALUES (8,'01a2363f-3d7f-741c-b382-19b586e61694','steps','default','cancelled','cancelled','queued',0,1796206443904,NULL,NULL,1796206443907,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,2,26);
INSERT INTO runs VALUES (9,'01a2363f-3d89-7f31-a796-c08af5ce71ed','steps','nightly','queued',NULL,'queued',7,1796206443913,4949806443913,NULL,NULL,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,27);
INSERT INTO runs VALUES (10,'01a2363f-3d8e-7c7c-a9c3-0b57d7a0b9b8','steps','default','queued',NULL,'queued',0,1796206443918,1796206443918,NULL,NULL,NULL,0,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,28);
INSERT INTO runs VALUES (11,'01a2363f-3d94-7ca0-966b-56e4007a2622','steps','default','running',NULL,'queued',0,1796206443924,NULL,1796206443933,NULL,'worker of live',1,30423187,30423187,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,2,30);
INSERT INTO runs VALUES (12,'01a2363f-3da0-7d2d-aac6-08f1cab9cc83','steps','default','running',NULL,'queued',0,1796206443936,NULL,1796206443940,NULL,'worker of expired',1,30363195,30363195,0,NULL,0,3,0,0,0,0,0,0,0.0,2,NULL,NULL,NULL,NULL,2,32);
INSERT INTO runs VALUES (13,'01a2363f-3da5-7ac1-9e4f-242c46afe961','steps','default','running',NULL,'interactive',0,1796206443941,NULL,1796206443941,NULL,'somebody',1,NULL,NULL,0,NULL,0,3,0,0,0,0,0,0,0.0,1,NULL,NULL,NULL,NULL,1,33);
INSERT INTO run_data VALUES (1,'null','"done"',NULL,NULL,'2059e68d98d2bdae4a6a61ae7ba2b2e0c386b8d4927b7fd051fdb5c773fbad3d');
INSERT INTO run_data VALUES (2,'"client_error"',NULL,NULL,NULL,'03a49dcdbc846290274821d79017a84fdc89684625ce03206335bf574e7a8747');
INSERT INTO run_data VALUES (3,'"overloaded"',NULL,NULL,NULL,'3059152b9eda18818f13bae7dfc59c7b9fde5072ffa6347932f796f644a97071');
INSERT INTO run_data VALUES (4,'null',NULL,NULL,NULL,'5a5b805d26f5035d02f27b627925a92af76ccc4e6b458889517fa5629c162b35');
INSERT INTO run_data VALUES (5,'null',NULL,NULL,NULL,'68dd6721ddfca61c9ee838643847e46844d0312a1ba2963bdc8e6fa47d847d73');
INSERT INTO run_data VALUES (6,'null',NULL,NULL,NULL,'ba62027947e013fb8a028b14bf263bbcc168fad0d6cd614d9de5c202ab81d7ae');
INSERT INTO run_data VALUES (7,'null',NULL,NULL,NULL,'46d40e8cd4d555cf1c08a85a9f92ab29d35e92af3e1528b385120a610e53e8f4');
INSERT INTO run_data VALUES (8,'null',NULL,NULL,NULL,'fa5794c0508a78de7e64d6fdec6b72c66a9e1f34d4748fcde001e4761af957b1');
INSERT INTO run_data VALUES (9,'null',NULL,NULL,'key-1','3cf2ceb0247eb9e27a82a6c137f55624f425de4602cdb453a755ec805735f4a7');
INSERT INTO run_data VALUES (10,'null',NULL,NULL,NULL,'a2e15645b272ff93d11228d63be129c030e838611dc4f16ce56dfd84ad50e258');
INSERT INTO run_data VALUES (11,'null',NULL,NULL,NULL,'01a2363f-3d94-7ca0-966b-56e4007a2622');
INSERT INTO run_data VALUES (12,'null',NULL,NULL,NULL,'01a2363f-3da0-7d2d-aac6-08f1cab9cc83');
INSERT INTO run_data VALUES (13,'null',NULL,NULL,NULL,'01a2363f-3da5-7ac1-9e4f-242c46afe961');
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
INSERT INTO events VALUES (1,1,1,'queued',1796206443818,0,0,'{"agent":"steps","available_at":"2026-12-02T10:14:03.818Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (2,2,1,'queued',1796206443824,0,0,'{"agent":"steps","available_at":"2026-12-02T10:14:03.824Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (3,3,1,'queued',1796206443826,0,0,'{"agent":"steps","available_at":"2026-12-02T10:14:03.826Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (4,4,1,'queued',1796206443830,0,0,'{"agent":"pay","available_at":"2026-12-02T10:14:03.830Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (5,5,1,'queued',1796206443833,0,0,'{"agent":"ask","available_at":"2026-12-02T10:14:03.833Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (6,6,1,'queued',1796206443835,0,0,'{"agent":"fill","available_at":"2026-12-02T10:14:03.835Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (7,7,1,'queued',1796206443837,0,0,'{"agent":"nap","available_at":"2026-12-02T10:14:03.837Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (8,1,2,'claimed',1796206443847,1,1,'{"worker":"host-8028-3036295-32cddae5a546b6cc"}');
INSERT INTO events VALUES (9,2,2,'claimed',1796206443847,1,2,'{"worker":"host-8028-3036295-32cddae5a546b6cc"}');
INSERT INTO events VALUES (10,3,2,'claimed',1796206443847,1,3,'{"worker":"host-8028-3036295-32cddae5a546b6cc"}');
INSERT INTO events VALUES (11,4,2,'claimed',1796206443847,1,4,'{"worker":"host-8028-3036295-32cddae5a546b6cc"}');
INSERT INTO events VALUES (12,5,2,'claimed',1796206443847,1,5,'{"worker":"host-8028-3036295-32cddae5a546b6cc"}');
INSERT INTO events VALUES (13,6,2,'claimed',1796206443847,1,6,'{"worker":"host-8028-3036295-32cddae5a546b6cc"}');
INSERT INTO events VALUES (14,7,2,'claimed',1796206443847,1,7,'{"worker":"host-8028-3036295-32cddae5a546b6cc"}');
INSERT INTO events VALUES (15,1,3,'step',1796206443870,1,8,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (16,2,3,'step',1796206443870,1,9,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (17,7,3,'slept',1796206443870,1,14,'{"available_at":"2026-12-03T10:14:03.866Z","key":"nap#1","name":"nap","until":"2026-12-03T10:14:03.866Z"}');
INSERT INTO events VALUES (18,6,3,'input_requested',1796206443870,1,13,'{"calls":[],"deadline":null,"prompt":"Who is it?","schema":{"properties":{"name":{"type":"string"}},"type":"object"},"turn":"87bde1dc595c2accb3afa1781680bd4e"}');
INSERT INTO events VALUES (19,3,3,'step',1796206443870,1,10,'{"arguments":null,"effect":"read","key":"first#1","name":"first","result":"done"}');
INSERT INTO events VALUES (20,5,3,'approval_requested',1796206443870,1,12,'{"calls":[{"arguments":{"amount":5},"id":"1","name":"act"}],"deadline":null,"prompt":null,"schema":null,"turn":"fb1787a6aa70ee3ac6ee3f7cc1879aa6"}');
INSERT INTO events VALUES (21,4,3,'failed',1796206443881,1,11,'{"available_at":null,"charged":false,"class":"timeout","code":null,"delay_source":null,"message":"the outcome of pay is not known (step pay#1): no answer; look whether it took effect, then `holdfast resolve 01a2363f-3d35-79ad-86cc-ce221e796829 --landed` or `--not-landed`","model":null,"provider":null,"reason":"not_retryable"}');
INSERT INTO events VALUES (22,2,4,'failed',1796206443890,1,16,'{"available_at":null,"charged":false,"class":"client_error","code":"broken","delay_source":null,"message":"it broke","model":null,"provider":null,"reason":"not_retryable"}');
INSERT INTO events VALUES (23,1,4,'completed',1796206443890,1,15,'{"answer":"done","reason":"completed"}');
INSERT INTO events VALUES (24,3,4,'requeued',1796206443890,1,19,'{"available_at":"2026-12-02T10:14:34.704Z","charged":true,"class":"overloaded","code":"broken","delay_source":"backoff","message":"it broke","model":null,"provider":null}');
INSERT INTO events VALUES (25,8,1,'queued',1796206443904,0,0,'{"agent":"steps","available_at":"2026-12-02T10:14:03.904Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (26,8,2,'cancelled',1796206443907,0,25,'{"actor":"ada","note":"enough","operation":"01a2363f-3d83-7b8f-8116-9fe724ac8a53"}');
INSERT INTO events VALUES (27,9,1,'queued',1796206443913,0,0,'{"agent":"steps","available_at":"2126-11-08T10:14:03.913Z","priority":7,"queue":"nightly"}');
INSERT INTO events VALUES (28,10,1,'queued',1796206443918,0,0,'{"agent":"steps","available_at":"2026-12-02T10:14:03.918Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (29,11,1,'queued',1796206443924,0,0,'{"agent":"steps","available_at":"2026-12-02T10:14:03.924Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (30,11,2,'claimed',1796206443933,1,29,'{"worker":"worker of live"}');
INSERT INTO events VALUES (31,12,1,'queued',1796206443936,0,0,'{"agent":"steps","available_at":"2026-12-02T10:14:03.936Z","priority":0,"queue":"default"}');
INSERT INTO events VALUES (32,12,2,'claimed',1796206443940,1,31,'{"worker":"worker of expired"}');
INSERT INTO events VALUES (33,13,1,'started',1796206443941,1,0,'{"agent":"steps","priority":0,"queue":"default","worker":"somebody"}');
INSERT INTO counts VALUES ('cancelled','cancelled',1);
INSERT INTO counts VALUES ('completed','completed',1);
INSERT INTO counts VALUES ('failed','not_retryable',2);
INSERT INTO counts VALUES ('queued','',4);
INSERT INTO counts VALUES ('running','',3);
INSERT INTO counts VALUES ('waiting_for_approval','',1);
INSERT INTO counts VALUES ('waiting_for_input','',1);
