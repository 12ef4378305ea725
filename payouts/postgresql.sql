-- The journal's changes leave a mark in their own transactions, whichever program makes them. It is
-- an insert, with its owner's rights and search path: no End waits for it. The trigger skips open
-- calls: the sweep looks at them.
CREATE INDEX IF NOT EXISTS payouts_high ON cardwire_intents_history (number);
SELECT set_config('search_path', current_setting('search_path') || ', pg_temp', TRUE);
CREATE OR REPLACE FUNCTION payouts_mark() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$ BEGIN
	INSERT INTO payouts_marks (order_no, high) VALUES (NEW.reference, (SELECT coalesce(max(number), 0) FROM cardwire_intents_history));
	RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS payouts_mark ON cardwire_intents;
CREATE TRIGGER payouts_mark AFTER INSERT OR UPDATE ON cardwire_intents FOR EACH ROW
WHEN (NEW.op = 'CreateTransfer' AND NEW.state <> 'open') EXECUTE FUNCTION payouts_mark();
