-- A foreign key is lost where the journal's table is dropped with CASCADE.
ALTER TABLE @payouts DROP CONSTRAINT IF EXISTS payouts_journal,
	ADD CONSTRAINT payouts_journal FOREIGN KEY (op, order_no) REFERENCES @intents (op, reference);

-- The journal's changes leave a mark in their own transactions, whichever program makes them. It is
-- an insert, with its owner's rights: no End waits for it. The trigger skips open calls: the sweep
-- looks at them.
CREATE OR REPLACE FUNCTION @payouts_mark() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$ BEGIN
	INSERT INTO @payouts_marks (order_no) VALUES (NEW.reference);
	RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS payouts_mark ON @intents;
CREATE TRIGGER payouts_mark AFTER INSERT OR UPDATE ON @intents FOR EACH ROW
WHEN (NEW.op = 'CreateTransfer' AND NEW.state <> 'open') EXECUTE FUNCTION @payouts_mark();
