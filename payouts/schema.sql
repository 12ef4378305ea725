-- What payouts keeps of its own. @payouts and @intents are names of tables, and @time, @text and @id are of the
-- dialect: see database.go.
CREATE TABLE IF NOT EXISTS @payouts (
	order_no    @text PRIMARY KEY,
	op          @text NOT NULL DEFAULT 'CreateTransfer' CHECK (op = 'CreateTransfer'),
	body        TEXT NOT NULL, -- what is sent: personal data; '': purged
	body_sha256 TEXT NOT NULL, -- of what is sent, as the journal has it
	amount      TEXT NOT NULL,
	currency    TEXT NOT NULL,
	job_id      BIGINT NOT NULL,
	created_at  @time NOT NULL,
	tried_at    @time, -- when it was last tried in vain, or refused
	waited      BIGINT NOT NULL DEFAULT 0, -- seconds since it was first tried in vain, in which it could have been sent
	words       TEXT NOT NULL DEFAULT '', -- the service's, of the last call that failed: for people
	said        TEXT NOT NULL DEFAULT '', -- by a person: canceled, or of what was executed: paid, returned
	said_at     @time,
	told        TEXT NOT NULL DEFAULT '', -- the last state that was told; '': none, or it is queued or sending again
	told_id     TEXT NOT NULL DEFAULT '', -- the service's number with it
	CONSTRAINT payouts_journal FOREIGN KEY (op, order_no) REFERENCES @intents (op, reference)
);
CREATE INDEX IF NOT EXISTS cardwire_payouts_told ON @payouts (told, created_at, order_no);
CREATE INDEX IF NOT EXISTS cardwire_payouts_created ON @payouts (created_at, order_no);
CREATE INDEX IF NOT EXISTS cardwire_payouts_tried ON @payouts (tried_at) WHERE tried_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS cardwire_payouts_accepted ON @intents (ended_at) WHERE state = 'executed'; -- since when refusals count
CREATE INDEX IF NOT EXISTS cardwire_payouts_kept ON @payouts (created_at) WHERE body <> '';

-- The orders that have changed since they were told.
CREATE TABLE IF NOT EXISTS @payouts_marks (
	number   @id,
	order_no @text NOT NULL,
	due      @time NOT NULL DEFAULT (NOW()),
	tries    BIGINT NOT NULL DEFAULT 0,
	since    @time NOT NULL DEFAULT (NOW())
);
CREATE INDEX IF NOT EXISTS cardwire_payouts_marks_due ON @payouts_marks (due);
CREATE INDEX IF NOT EXISTS cardwire_payouts_marks_order ON @payouts_marks (order_no);

-- What people did to an order, or to the queue (''); what was sent, and what they said of that, the journal has.
CREATE TABLE IF NOT EXISTS @payouts_history (
	order_no @text NOT NULL,
	at       @time NOT NULL,
	what     TEXT NOT NULL,
	who      TEXT NOT NULL,
	note     TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS cardwire_payouts_history_order ON @payouts_history (order_no);

-- Why nothing is sent.
CREATE TABLE IF NOT EXISTS @payouts_control (
	one       BIGINT PRIMARY KEY CHECK (one = 1),
	release   BIGINT NOT NULL, -- of these tables
	version   BIGINT NOT NULL DEFAULT 0, -- of the pause
	kind      TEXT NOT NULL DEFAULT '', -- brake, trouble, refused or by hand; '': orders are sent
	why       TEXT NOT NULL DEFAULT '',
	since     @time,
	until     @time, -- when one order is tried; null: when the brake or a person resumes
	tests     BIGINT NOT NULL DEFAULT 0, -- different orders that met the same trouble as probes
	tested    @text NOT NULL DEFAULT '', -- the last order that was a probe; '' of no pause: a person resumed
	tells     BOOLEAN NOT NULL DEFAULT FALSE, -- a replica with Changed has run: others tell nothing
	worked_at @time NOT NULL DEFAULT (NOW()), -- when a replica last worked
	able_at   @time, -- when one last did whose key is accepted
	resumed   @time -- when a person last resumed: refusals count from then on
);
INSERT INTO @payouts_control (one, release) VALUES (1, @release) ON CONFLICT DO NOTHING;

-- The last request that the rate allowed; used in PostgreSQL only.
CREATE TABLE IF NOT EXISTS @payouts_turns (
	one   BIGINT PRIMARY KEY CHECK (one = 1),
	taken @time NOT NULL
);

-- The orders, each with its state, which is derived here and nowhere else: from its row in the journal, which is of the
-- order's body as long as the foreign key is there. NOW() is the clock by which the journal says until when a call may
-- send. Nothing is personal. Columns are only ever added, at the end: other programs read them.
@view @payouts_orders AS SELECT p.order_no, CASE
	WHEN j.state = 'executed' THEN CASE WHEN p.said IN ('paid', 'returned') THEN p.said ELSE 'submitted' END
	WHEN @sending THEN 'sending'
	WHEN j.state IS NULL OR j.state IN ('open', 'unknown') THEN 'unresolved'
	WHEN j.closed THEN CASE WHEN p.said = 'canceled' THEN 'canceled' ELSE 'failed' END
	WHEN j.era < (SELECT oldest FROM @intents_journal) THEN 'unresolved' -- it was free before a hold
	WHEN p.told NOT IN ('', 'unresolved') THEN 'unresolved' -- somebody has replaced the journal's row by hand
	ELSE 'queued' END AS state,
	p.amount, p.currency, p.created_at,
	CASE WHEN p.said_at >= coalesce(j.ended_at, j.time) THEN p.said_at
		ELSE coalesce(j.ended_at, j.time, p.created_at) END AS changed_at,
	coalesce(j.service_id, '') AS service_id, coalesce(j.status, '') AS service_status,
	CASE WHEN j.state = 'open' AND NOT @sending THEN 'the result of the call is not on record'
		WHEN j.by IN ('', 'worker') THEN j.note ELSE '' END AS note, -- without a person's words
	coalesce(j.state, '') AS journal, coalesce(j.closed, FALSE) AS closed, coalesce(j.proved, FALSE) AS proved,
	coalesce(j.call, '') AS call, j.time AS call_from, j.send_by AS call_until, j.settled_by,
	p.said, p.told, p.told_id, p.job_id, p.waited
FROM @payouts p LEFT JOIN @intents j ON j.op = 'CreateTransfer' AND j.reference = p.order_no;
