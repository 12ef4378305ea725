-- The tables of the orders: put the columns of your own here. In PostgreSQL TIMESTAMP
-- becomes TIMESTAMPTZ; SQLite's driver reads a time from TIMESTAMP only.
CREATE TABLE IF NOT EXISTS payouts (
	order_no    TEXT PRIMARY KEY,
	body        TEXT NOT NULL, -- what is sent, from RevealJSON: personal data; '': purged
	body_sha256 TEXT NOT NULL, -- of what is sent, as the journal has it
	amount      TEXT NOT NULL,
	currency    TEXT NOT NULL,
	job_id      BIGINT NOT NULL,
	created_at  TIMESTAMP NOT NULL,
	first_sent  TIMESTAMP, -- just before the first call: from then on the journal must know the order
	missed_at   TIMESTAMP, -- when it was found that the journal does not
	retried_at  TIMESTAMP, -- when it first had to be sent again, by a clock that stops while the queue is paused
	note        TEXT NOT NULL DEFAULT '', -- of the last call that failed: for people, nothing depends on it
	said        TEXT NOT NULL DEFAULT '', -- by a person, after the end: paid, returned or canceled
	said_at     TIMESTAMP
);

-- Each serves what is live, or what is rare: nothing reads all orders.
CREATE INDEX IF NOT EXISTS payouts_unsent ON payouts (order_no) WHERE first_sent IS NULL AND said = '';
CREATE INDEX IF NOT EXISTS payouts_missed ON payouts (order_no) WHERE missed_at IS NOT NULL AND said = '';
CREATE INDEX IF NOT EXISTS payouts_said ON payouts (said, order_no) WHERE said <> '';
CREATE INDEX IF NOT EXISTS payouts_free ON cardwire_intents (reference)
	WHERE op = 'CreateTransfer' AND state IN ('refused', 'not_sent') AND NOT closed;
CREATE INDEX IF NOT EXISTS payouts_closed ON cardwire_intents (reference) WHERE op = 'CreateTransfer' AND closed;

-- What people did to an order; what was sent, and what they said of that, the journal has.
CREATE TABLE IF NOT EXISTS payouts_history (
	order_no TEXT NOT NULL,
	at       TIMESTAMP NOT NULL,
	what     TEXT NOT NULL,
	who      TEXT NOT NULL,
	note     TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS payouts_history_order ON payouts_history (order_no);

-- Whose orders these are.
CREATE TABLE IF NOT EXISTS payouts_service (
	one      BIGINT PRIMARY KEY CHECK (one = 1),
	base_url TEXT NOT NULL
);

-- The last request that -rate allowed; used in PostgreSQL only.
CREATE TABLE IF NOT EXISTS turns (
	name  TEXT PRIMARY KEY,
	taken TIMESTAMP NOT NULL
);

-- What each order is: the journal says it, and where it has no row, or its row is at its
-- end, a person. NOW() is the clock by which the journal says until when a call may send.
DROP VIEW IF EXISTS payouts_states;
CREATE VIEW payouts_states AS
SELECT p.*, CASE
	WHEN j.state IS NULL AND p.said = '' AND p.first_sent IS NULL THEN 'queued'
	WHEN j.state IS NULL AND p.said = '' THEN 'forgotten'
	WHEN j.state IS NULL THEN p.said
	WHEN p.said = 'canceled' AND (j.closed OR j.body_sha256 NOT IN ('', p.body_sha256)) THEN 'canceled'
	WHEN j.closed THEN 'failed'
	WHEN j.body_sha256 NOT IN ('', p.body_sha256) THEN 'conflict'
	WHEN j.state = 'executed' AND p.said IN ('paid', 'returned') THEN p.said
	WHEN j.state = 'executed' THEN 'submitted'
	WHEN j.state = 'unknown' OR j.state = 'open' AND j.send_by <= NOW() THEN 'unresolved'
	WHEN j.state = 'open' THEN 'sending'
	WHEN p.said <> '' THEN p.said
	ELSE 'queued' END AS state,
	coalesce(j.service_id, '') AS service_id, coalesce(j.status, '') AS service_status, coalesce(j.call, '') AS call,
	coalesce(j.proved, FALSE) AS proved, j.time AS call_from, j.send_by AS call_until, j.settled_by AS settled_by,
	coalesce(p.said_at, j.ended_at, j.time, p.created_at) AS changed_at
FROM payouts p LEFT JOIN cardwire_intents j ON j.op = 'CreateTransfer' AND j.reference = p.order_no;
