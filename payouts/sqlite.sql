-- The journal's changes leave a mark in their own transactions, whichever program makes them. It is
-- an insert: no End waits for it. The trigger skips open calls: the sweep looks at them.
DROP TRIGGER IF EXISTS @payouts_begun;
CREATE TRIGGER @payouts_begun AFTER INSERT ON @intents WHEN NEW.op = 'CreateTransfer' AND NEW.state <> 'open' BEGIN
	INSERT INTO @payouts_marks (order_no) VALUES (NEW.reference);
END;
DROP TRIGGER IF EXISTS @payouts_changed;
CREATE TRIGGER @payouts_changed AFTER UPDATE ON @intents WHEN NEW.op = 'CreateTransfer' AND NEW.state <> 'open' BEGIN
	INSERT INTO @payouts_marks (order_no) VALUES (NEW.reference);
END;
