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
	calls       BIGINT NOT NULL DEFAULT 0, -- that began: the journal must know of as many
	last_call   TEXT NOT NULL DEFAULT '', -- the last of them, by the journal's name
	missed_at   TIMESTAMP, -- when it was found that the journal does not
	retried_at  TIMESTAMP, -- when it first had to be sent again, by a clock that stops while the queue is paused
	note        TEXT NOT NULL DEFAULT '', -- the service's words of the last call that failed: for people, nothing depends on it
	said        TEXT NOT NULL DEFAULT '', -- of the end, whatever the journal forgets: submitted, paid, returned, canceled or failed; held: not yet to be sent
	said_at     TIMESTAMP,
	has_failed  BOOLEAN NOT NULL DEFAULT FALSE -- it was said once that it failed or was canceled: a new number may have replaced it
);

-- Each serves what is live, or what is rare: nothing reads all orders.
CREATE INDEX IF NOT EXISTS payouts_unsent ON payouts (order_no) WHERE calls = 0 AND said = '';
CREATE INDEX IF NOT EXISTS payouts_forgotten ON payouts (order_no)
	WHERE missed_at IS NOT NULL AND said NOT IN ('submitted', 'paid', 'returned');
CREATE INDEX IF NOT EXISTS payouts_created ON payouts (created_at, order_no);
CREATE INDEX IF NOT EXISTS payouts_kept ON payouts (created_at) WHERE body <> '';
CREATE INDEX IF NOT EXISTS payouts_said ON payouts (said, created_at, order_no) WHERE said <> '';
CREATE INDEX IF NOT EXISTS payouts_free ON cardwire_intents (op, reference)
	WHERE op = 'CreateTransfer' AND state IN ('refused', 'not_sent') AND NOT closed;
CREATE INDEX IF NOT EXISTS payouts_closed ON cardwire_intents (op, reference) WHERE op = 'CreateTransfer' AND closed
	AND state IN ('refused', 'not_sent');

-- What people did to an order; what was sent, and what they said of that, the journal has.
CREATE TABLE IF NOT EXISTS payouts_history (
	order_no TEXT NOT NULL,
	at       TIMESTAMP NOT NULL,
	what     TEXT NOT NULL,
	who      TEXT NOT NULL,
	note     TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS payouts_history_order ON payouts_history (order_no);

-- The last request that -rate allowed; used in PostgreSQL only.
CREATE TABLE IF NOT EXISTS turns (
	name  TEXT PRIMARY KEY,
	taken TIMESTAMP NOT NULL
);

-- What each order is: the journal says it, and where it cannot, what was said of the end. A
-- row of another body is another request's (is_other). Of an order of which the journal knows
-- fewer calls than began, it lost what came later (forgot), and what it says is only
-- believed where that is an end. NOW() is the clock by which it says until when a call may send.
DROP VIEW IF EXISTS payouts_states;
CREATE VIEW payouts_states AS
SELECT p.*, CASE
	WHEN p.said NOT IN ('', 'held') AND p.is_other THEN p.said
	WHEN p.is_other AND p.forgot THEN 'forgotten'
	WHEN p.said IN ('submitted', 'paid', 'returned') AND p.journal NOT IN ('open', 'unknown') THEN p.said
	WHEN p.said = 'canceled' AND p.closed THEN 'canceled'
	WHEN p.closed THEN 'failed'
	WHEN p.is_other THEN 'conflict'
	WHEN p.journal = 'executed' THEN 'submitted'
	WHEN p.forgot THEN 'forgotten'
	WHEN p.journal = 'unknown' OR p.journal = 'open' AND p.call_until <= NOW() THEN 'unresolved'
	WHEN p.journal = 'open' THEN 'sending'
	WHEN p.said <> '' THEN p.said
	ELSE 'queued' END AS state
FROM (SELECT p.*, coalesce(j.state, '') AS journal, coalesce(j.closed AND j.state IN ('refused', 'not_sent'), FALSE) AS closed,
	 coalesce(j.proved, FALSE) AS proved,
	coalesce(j.body_sha256, '') NOT IN ('', p.body_sha256) AS is_other,
	p.calls > CASE WHEN j.body_sha256 IN ('', p.body_sha256) THEN j.calls ELSE 0 END AS forgot,
	CASE WHEN j.body_sha256 IN ('', p.body_sha256) THEN j.call ELSE '' END AS call,
	CASE WHEN j.body_sha256 IN ('', p.body_sha256) THEN j.service_id ELSE '' END AS service_id,
	CASE WHEN j.body_sha256 IN ('', p.body_sha256) THEN j.status ELSE '' END AS service_status,
	CASE WHEN j.body_sha256 NOT IN ('', p.body_sha256) THEN ''
		WHEN j.state = 'open' AND j.send_by <= NOW() THEN 'the process ended during the call' ELSE coalesce(j.note, '') END AS reason,
	CASE WHEN j.state = 'executed' THEN '' ELSE p.note END AS words,
	j.time AS call_from, j.send_by AS call_until, j.settled_by AS settled_by,
	coalesce(p.said_at, CASE WHEN j.body_sha256 IN ('', p.body_sha256) THEN coalesce(j.ended_at, j.time) END,
		p.created_at) AS changed_at
	FROM payouts p LEFT JOIN cardwire_intents j ON j.op = 'CreateTransfer' AND j.reference = p.order_no) p;
