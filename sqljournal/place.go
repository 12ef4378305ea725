package sqljournal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
)

// A database is named by four parts: the server's data directory, its timeline, which a standby that takes over and a
// recovery to a point in time begin anew, the database, and the journal's own table. The journal's row keeps them, and
// PostgreSQL says what they are now. In SQLite, and where a role may not know a part, it is what the row has.
var parts = [...]struct{ column, name, now string }{
	{"server", "server", "(SELECT system_identifier::text FROM pg_control_system())"},
	{"timeline", "timeline", "CASE WHEN pg_is_in_recovery() THEN j.timeline ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"},
	{"in_database", "database", "(SELECT oid::text FROM pg_database WHERE datname = current_database())"},
	{"in_table", "table", "j.tableoid::text"},
}

const server, timeline = 0, 1

// where is the name of a database; a part that is "" is not known, and not compared.
type where [len(parts)]string

func (w *where) scan() (all []any) {
	for n := range w {
		all = append(all, &w[n])
	}
	return all
}

// moved says what differs between two names; "": nothing.
func (w where) moved(now where) string {
	var all []string
	for n, was := range w {
		if was != "" && was != now[n] {
			all = append(all, fmt.Sprintf("%s %s -> %s", parts[n].name, strings.TrimLeft(was, "0"), strings.TrimLeft(now[n], "0")))
		}
	}
	return strings.Join(all, ", ")
}

// setting is what a Journal has found out about its database.
type setting struct {
	table         table            // with its schema
	reads         [len(parts)]bool // the parts of its name that this program may read
	isSynchronous bool             // the timeline is not compared
	isWhole       bool             // all of that was found out: a standby does not tell
}

// words returns the SQL of the database's name, in statements that read @journal AS j.
func (s *setting) words() *strings.Replacer {
	var was, is, stay, move []string
	here := []string{"TRUE"}
	for n, p := range parts {
		column, now := "j."+p.column, "j."+p.column
		if s.reads[n] {
			now = p.now
		}
		if s.reads[n] && !(s.isSynchronous && n == timeline) {
			here = append(here, column+" IN ('', "+now+")")
		}
		was, is = append(was, column), append(is, now)
		stay = append(stay, fmt.Sprintf("%s = CASE WHEN %s = '' THEN '' ELSE %s END", p.column, column, now))
		move = append(move, p.column+" = "+now)
	}
	isHere := strings.Join(here, " AND ")
	list := func(all []string) string { return strings.Join(all, ", ") }
	return strings.NewReplacer("@was", list(was), "@is", list(is), "@here", isHere,
		"@oldest", "CASE WHEN "+isHere+" OR j.held_by NOT IN ('', '"+byItself+"') THEN j.oldest ELSE j.era + 1 END",
		"@timeline", is[timeline], "@stay", list(stay), "@move", list(move))
}

// locate finds out in which schema the tables are: from then on every statement names it.
func (t *Tx) locate(ctx context.Context) error {
	if t.journal.setting.Load() != nil {
		return nil
	}
	found, err := database.Query(ctx, t.on, database.One[string], `SELECT coalesce(quote_ident(current_schema()), '')`)
	if err != nil {
		return err
	}
	if found[0] == "" || strings.ContainsAny(found[0], "'?@") {
		return problem("the search path names no schema, or none that can be used: name one in WithTable")
	}
	t.journal.setting.CompareAndSwap(nil, &setting{
		table: table{found[0] + ".", t.journal.table.name}, isSynchronous: t.journal.isSynchronous,
	})
	return nil
}

// lookAround finds out which parts of the database's name this program can read, by reading each: a managed server refuses
// some to every role.
func (t *Tx) lookAround(ctx context.Context) error {
	j, s := t.journal, *t.journal.setting.Load()
	if s.isWhole {
		return nil
	}
	var isStandby bool
	if err := t.queryRow(ctx, []any{&isStandby}, `SELECT pg_is_in_recovery()`); err != nil || isStandby {
		return err
	}
	for n, p := range parts {
		_, err := t.exec(ctx, `SAVEPOINT cardwire_place`)
		if err != nil {
			return err
		}
		var now string
		if err = t.queryRow(ctx, []any{&now}, `SELECT `+p.now+` FROM @journal AS j`); err == nil {
			s.reads[n] = true
		}
		if _, err2 := t.exec(ctx, `ROLLBACK TO SAVEPOINT cardwire_place`); err2 != nil {
			return err2
		}
		if state := database.State(err); err != nil && (state == "" || slices.Contains([]string{"08", "40", "53", "57", "58"}, state[:2])) {
			return err
		}
	}
	s.isWhole = true
	j.setting.Store(&s)
	return nil
}

// sight is what a Journal remembers of where it was.
type sight struct {
	mu       sync.Mutex
	at       where           // the newest that was read
	isVetted bool            // calls may begin there, in the era
	era      int64           // of the journal, when it settled there
	moved    string          // why the journal is on hold, though its row does not say so
	since    time.Time       // when that was seen first, by the journal's clock
	last     cardwire.Intent // the last call whose Begin succeeded
	lastEra  int64           // the era then
	longest  int64           // the longest life of a call whose Begin succeeded, which the database may have lost
	begun    map[string]bool // the calls whose Begin succeeded, and whose result is not on record
}

// maxBegun bounds the calls that are remembered: those beyond it that vanish are not noticed.
const maxBegun = 64 << 10

// look notes where the database is, and completes what is known of the journal's hold.
func (s *sight) look(k *known, isSynchronous bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.longest = max(k.longest, s.longest)
	k.isBack = k.is[server] == s.at[server] && k.is[timeline] < s.at[timeline]
	if k.is != s.at && !k.isBack {
		s.at, s.isVetted = k.is, false
	}
	was := k.was
	if isSynchronous {
		was[timeline] = k.is[timeline]
	}
	moved := was.moved(k.is)
	if moved != s.moved {
		s.moved, s.since = moved, k.now
	}
	if moved != "" && (k.hold.By == "" || k.hold.By == byItself) {
		k.hold, k.isDerived = k.holdOf(s.since, byItself, movedWhy+moved, 0), true
	}
	k.hold.Moved = moved
}

const movedWhy = "restored, failed over or copied: "

// settled returns the timeline and the era in which calls may begin; "?": none, until settle has succeeded there.
func (s *sight) settled() (string, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isVetted {
		return "?", 0
	}
	return s.at[timeline], s.era
}

// begin notes a call whose Begin succeeded, and end one whose result is on record.
func (s *sight) begin(i cardwire.Intent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = map[string]bool{}
	}
	s.longest = max(s.longest, lifeOf(i))
	if s.last, s.lastEra = i, s.era; len(s.begun) < maxBegun {
		s.begun[i.Call] = true
	}
}

func (s *sight) end(i cardwire.Intent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.begun, i.Call)
}

// hasBegun reports whether this Journal's Begin of the call succeeded, and its result is not on record.
func (s *sight) hasBegun(i cardwire.Intent) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[i.Call]
}

// hasSettled reports whether settle has succeeded where the database is now, in the era that it has.
func (s *sight) hasSettled(k known) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isVetted && s.at == k.is && s.era == k.era && !k.isDerived
}

// errBack is the error of a server that was replaced by a standby, and is back.
var errBack = safe("the database is on an earlier timeline than this program has seen: " +
	"a primary that was replaced is back: fence it off, and check where the connection leads")

// settle finds out whether the database has lost anything, and puts the journal on hold if it has: at each Verify, and
// before the first call that begins in a database or an era that is new to this Journal.
func (j *Journal) settle(ctx context.Context) error {
	var at where
	var era int64
	var isLost bool
	err := j.inTransaction(ctx, "putting the journal on hold", func(t *Tx) error {
		k, err := t.identify(ctx)
		if isLost = false; err == nil {
			isLost, err = t.hasLost(ctx, k)
		}
		if err == nil && (isLost || k.was.moved(k.is) != "") {
			if k, err = t.lockJournal(ctx); err == nil { // compared again: a copy that is behind may have responded
				isLost, err = t.hasLost(ctx, k)
			}
		}
		switch failedOver := k.was.moved(k.is); {
		case err != nil:
		case k.isBack:
			err = errBack
		case isLost, k.isDerived:
			k, err = t.holdItself(ctx, k, isLost)
		case j.isSynchronous && failedOver != "" && k.hold.By == "":
			err = t.recordHold(ctx, k.hold, k.back, "@stay", "failed over", byItself, failedOver)
		}
		at, era = k.is, k.era
		return err
	})
	if err == nil {
		j.sight.mu.Lock()
		defer j.sight.mu.Unlock()
		if isLost {
			j.sight.last = cardwire.Intent{} // a loss is a hold once
		}
		j.sight.isVetted, j.sight.era = j.sight.at == at, era
	}
	return err
}

// hasLost reports whether the database has lost the last call that this Journal began. A call from before the hold that is
// on record, which covers it, is not looked for; after Moved, or where the database has an earlier era than the call, no
// hold covers it.
func (t *Tx) hasLost(ctx context.Context, k known) (bool, error) {
	s := &t.journal.sight
	s.mu.Lock()
	last, era := s.last, s.lastEra
	s.mu.Unlock()
	if last.Call == "" || era < k.hold.Era || k.isDerived {
		return false, nil
	}
	past, err := t.past(ctx, &ending{intent: last})
	return !past.hasBegun, err
}
