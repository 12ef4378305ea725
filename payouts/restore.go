package payouts

import "context"

// Hold stops all payments of the journal, by any program, until a person releases it: for the first start after a restore
// of the whole database, before Run, where the journal cannot notice that by itself, as in SQLite. What is queued then is
// unresolved from here on. Orders are still accepted. Nothing can be recorded as not executed before the last call from
// before is settled.
func (s *Service) Hold(ctx context.Context, by, why string) error {
	return s.journal.Hold(ctx, by, why, s.jobTimeout()+s.config.LateExecution)
}
