-- The tables of the orders: put the columns of your own here. In PostgreSQL TIMESTAMP
-- becomes TIMESTAMPTZ; SQLite's driver reads a time from TIMESTAMP only.
CREATE TABLE IF NOT EXISTS payouts (
	order_no       TEXT PRIMARY KEY,
	body           TEXT NOT NULL, -- what is sent, from RevealJSON: personal data
	amount         TEXT NOT NULL,
	currency       TEXT NOT NULL,
	state          TEXT NOT NULL,
	claim          BIGINT NOT NULL DEFAULT 0, -- how often a worker took it
	job_id         BIGINT NOT NULL,
	service_id     TEXT NOT NULL DEFAULT '',
	service_status TEXT NOT NULL DEFAULT '',
	try            TEXT NOT NULL DEFAULT '', -- in the journal, when it last became unresolved
	other_body     BOOLEAN NOT NULL DEFAULT FALSE, -- in the journal the number is another request's
	note           TEXT NOT NULL DEFAULT '', -- of the last change
	created_at     TIMESTAMP NOT NULL,
	queued_at      TIMESTAMP NOT NULL, -- by the merchant, or again by a person
	changed_at     TIMESTAMP NOT NULL
);

-- It serves the page, the gauges and the repair.
CREATE INDEX IF NOT EXISTS payouts_state ON payouts (state, order_no);

CREATE TABLE IF NOT EXISTS payouts_history (
	order_no TEXT NOT NULL,
	claim    BIGINT NOT NULL,
	at       TIMESTAMP NOT NULL,
	state    TEXT NOT NULL,
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
