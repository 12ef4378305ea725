-- What payouts keeps of its own. @time, @key and @id are of the dialect: see database.go.
CREATE TABLE IF NOT EXISTS payouts (
	order_no    @key PRIMARY KEY,
	op          @key NOT NULL DEFAULT 'CreateTransfer' CHECK (op = 'CreateTransfer'),
	body        TEXT NOT NULL, -- what is sent: personal data; '': purged
	body_sha256 TEXT NOT NULL, -- of what is sent, as the journal has it
	amount      TEXT NOT NULL,
	currency    TEXT NOT NULL,
	job_id      BIGINT NOT NULL,
	created_at  @time NOT NULL,
	tried_at    @time, -- when it was last tried in vain
	waited      BIGINT NOT NULL DEFAULT 0, -- seconds since it was first tried in vain, in which it could have been sent
	words       TEXT NOT NULL DEFAULT '', -- the service's, of the last call that failed: for people
	said        TEXT NOT NULL DEFAULT '', -- by a person: canceled, or of what was executed: submitted, paid, returned
	said_at     @time,
	said_of_other BOOLEAN NOT NULL DEFAULT FALSE, -- while the number was another request's in the journal
	told        TEXT NOT NULL DEFAULT '', -- the last state that was told; '': none, or it is queued or sending again
	told_id     TEXT NOT NULL DEFAULT '', -- the service's number with it
	has_ended   BOOLEAN NOT NULL DEFAULT FALSE, -- it was told as ended once: a new number may have replaced it
	alarmed     BOOLEAN NOT NULL DEFAULT FALSE, -- a person is asked before it is sent: see Alarmed in orders.go
	FOREIGN KEY (op, order_no) REFERENCES cardwire_intents (op, reference)
);
CREATE INDEX IF NOT EXISTS payouts_told ON payouts (told, created_at, order_no);
CREATE INDEX IF NOT EXISTS payouts_created ON payouts (created_at, order_no);
CREATE INDEX IF NOT EXISTS payouts_kept ON payouts (created_at) WHERE body <> '';

-- The orders that have changed since they were told.
CREATE TABLE IF NOT EXISTS payouts_marks (
	number   @id,
	order_no @key NOT NULL,
	due      @time NOT NULL DEFAULT (NOW()),
	high     BIGINT NOT NULL DEFAULT 0, -- the last event of the journal's history then
	tries    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS payouts_marks_due ON payouts_marks (due);
CREATE INDEX IF NOT EXISTS payouts_marks_order ON payouts_marks (order_no);

-- What people did to an order, or to the queue (''); what was sent, and what they said of that, the journal has.
CREATE TABLE IF NOT EXISTS payouts_history (
	order_no @key NOT NULL,
	at       @time NOT NULL,
	what     TEXT NOT NULL,
	who      TEXT NOT NULL,
	note     TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS payouts_history_order ON payouts_history (order_no);

-- Why nothing is sent, and the last event that the journal's history had.
CREATE TABLE IF NOT EXISTS payouts_control (
	one     BIGINT PRIMARY KEY CHECK (one = 1),
	release BIGINT NOT NULL DEFAULT 1, -- of these tables
	version BIGINT NOT NULL DEFAULT 0, -- of the pause
	kind    TEXT NOT NULL DEFAULT '', -- brake, trouble or by hand; '': orders are sent
	why     TEXT NOT NULL DEFAULT '',
	since   @time,
	until   @time, -- when one order is tried; null: when the brake or a person resumes
	tests   BIGINT NOT NULL DEFAULT 0, -- probes that failed
	tested  @key NOT NULL DEFAULT '', -- the last order that was a probe
	high    BIGINT NOT NULL DEFAULT 0, -- the number of that event; 0: none
	high_at @time
);
INSERT INTO payouts_control (one) VALUES (1) ON CONFLICT DO NOTHING;

-- The last comparison with the service's statement.
CREATE TABLE IF NOT EXISTS payouts_reports (
	one         BIGINT PRIMARY KEY CHECK (one = 1),
	at          @time NOT NULL,
	file        TEXT NOT NULL,
	since       @time NOT NULL, -- from which the statement is, with others that it continues
	until       @time NOT NULL, -- to which it goes
	unexplained TEXT NOT NULL
);

-- The last request that the rate allowed; used in PostgreSQL only.
CREATE TABLE IF NOT EXISTS payouts_turns (
	one   BIGINT PRIMARY KEY CHECK (one = 1),
	taken @time NOT NULL
);
