(
-- The orders, each with its state. An order was born with a reserved row of its own body in the
-- journal: none, or another's, is for a person to look at. NOW() is the clock by which the
-- journal says until when a call may send.
SELECT x.*, CASE
	WHEN x.is_anothers AND x.said_of_other AND (x.said = 'canceled' OR x.said <> '' AND x.journal = 'executed') THEN x.said
	WHEN NOT x.is_ours THEN 'unresolved'
	WHEN x.journal = 'executed' AND x.said IN ('paid', 'returned') THEN x.said
	WHEN x.journal = 'executed' THEN 'submitted'
	WHEN x.journal = 'unknown' OR x.journal = 'open' AND x.call_until <= NOW() THEN 'unresolved'
	WHEN x.journal = 'open' THEN 'sending'
	WHEN x.closed AND x.said = 'canceled' THEN 'canceled'
	WHEN x.closed THEN 'failed'
	WHEN x.has_ended OR x.said <> '' OR x.body = '' OR x.alarmed OR x.is_earlier THEN 'unresolved'
	ELSE 'queued' END AS state
FROM (SELECT p.*, coalesce(j.reserved AND j.body_sha256 = p.body_sha256, FALSE) AS is_ours,
	coalesce(j.state, '') AS journal, coalesce(j.closed, FALSE) AS closed, coalesce(j.proved, FALSE) AS proved,
	coalesce(j.body_sha256 <> p.body_sha256, FALSE) AS is_anothers,
	coalesce(j.era < (SELECT oldest FROM cardwire_intents_journal), FALSE) AS is_earlier, -- of a free one: before a hold
	coalesce(j.body_sha256 = '', FALSE) AS is_bodiless, coalesce(j.amount, '') AS found_amount, coalesce(j.currency, '') AS found_currency,
	coalesce(j.call, '') AS call, j.time AS call_from, j.send_by AS call_until,
	j.settled_by, coalesce(j.service_id, '') AS service_id, coalesce(j.status, '') AS service_status,
	CASE WHEN j.state = 'open' AND j.send_by <= NOW() THEN 'no result is on record: the process ended during the call, or will still record it' ELSE coalesce(j.note, '') END AS note,
	CASE WHEN p.said_at >= coalesce(j.ended_at, j.time) THEN p.said_at
		ELSE coalesce(j.ended_at, j.time, p.created_at) END AS changed_at
	FROM payouts p LEFT JOIN cardwire_intents j ON j.op = 'CreateTransfer' AND j.reference = p.order_no) x
) o
