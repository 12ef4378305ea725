package sqljournal

import (
	"bufio"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"maps"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cardwire/cardwire-go"
)

// Reconcile compares the journal with the provider's statement, and changes nothing. It
// yields warnings about the statement, then one finding for each reference that is listed,
// unresolved, or missing; what is not listed and is closed, free, or outside the period of
// the statement has none. [Journal.Apply] records what is certain, in the loop or later.
//
// An invalid statement or line is a cardwire.ErrInvalidParams, which names the line; a
// statement that is probably another account's is [ErrStrays]. Both come before the first
// finding. After an error it yields nothing more.
//
// It reads the journal in short queries, while others use it, and keeps the lines in temporary
// files, without names of persons or accounts, which are removed at the end. A million lines
// take about 30 MB of memory.
func (j *Journal) Reconcile(ctx context.Context, s Statement) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		err := j.reconcile(ctx, &s, func(f Finding) error {
			if !yield(f, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(Finding{}, err)
		}
	}
}

// errStopped ends the loop when the caller breaks out of it.
var errStopped = errors.New("sqljournal: stopped")

func (j *Journal) reconcile(ctx context.Context, s *Statement, report func(Finding) error) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	r := &reconciliation{on: j.waiting(), statement: s}
	if err := r.on.verify(ctx); err != nil {
		return err
	}
	if r.spool, err = newSpool(); err != nil {
		return err
	}
	defer r.spool.remove()
	have, err := r.readLines()
	if err != nil {
		return err
	}
	if err := r.readJournal(ctx); err != nil {
		return err
	}
	if err := r.survey(ctx, &have); err != nil {
		return err
	}
	for _, warning := range s.warnings(have) {
		if err := report(Finding{Kind: FindingWarning, Op: s.Op, Note: warning, AsOf: s.Until}); err != nil {
			return err
		}
	}
	return r.report(ctx, report)
}

// reconciliation is a statement on its way through the files of a spool.
type reconciliation struct {
	on        *Tx
	statement *Statement
	spool     *spool
}

// readLines puts the lines into the spool.
func (r *reconciliation) readLines() (have contents, err error) {
	for line, err := range r.statement.Lines {
		if err != nil {
			return have, fmt.Errorf("sqljournal: reading the statement: %w", err)
		}
		status, err := r.statement.status(line)
		if err != nil {
			return have, err
		}
		have.add(line, status)
		if err := r.spool.add(record{Line: line, Status: status}); err != nil {
			return have, err
		}
	}
	return have, nil
}

// readJournal adds the references of the journal that may have a finding. Each page is a
// query of its own: SQLite lets nobody write during one.
func (r *reconciliation) readJournal(ctx context.Context) error {
	for last := ""; ; {
		page, err := r.on.entries(ctx, `
i.op = ?1 AND i.reference > ?2 ORDER BY i.reference LIMIT `+strconv.Itoa(pageSize), r.statement.Op, last)
		if err != nil {
			return err
		}
		for _, k := range page {
			if r.statement.compare(&listed{}, k.Entry) == "" && !r.spool.mayHave(k.Reference) {
				continue
			}
			if err := r.spool.add(record{Line: StatementLine{Reference: k.Reference}}); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return r.readWaiting()
		}
		last = page[len(page)-1].Reference
	}
}

// readWaiting adds the waiting orders that a line may resemble.
func (r *reconciliation) readWaiting() error {
	for reference := range r.statement.Waiting {
		if !r.spool.mayHave(reference) {
			continue
		}
		if err := r.spool.add(record{Line: StatementLine{Reference: reference}}); err != nil {
			return err
		}
	}
	return nil
}

// survey marks what is reported first, counts what is shifted, and returns ErrStrays if the
// statement is probably another account's.
func (r *reconciliation) survey(ctx context.Context, have *contents) error {
	lines, strays := 0, 0
	sharing := map[string]int{} // references by service ID, where it may be that of several
	for n := range r.spool.parts {
		part := &r.spool.parts[n]
		err := r.compareAll(ctx, part, func(f Finding, l *listed) error {
			if l.status == "" {
				return nil
			}
			lines++
			id := l.line.ServiceID
			if id != "" && l.status == StatementExecuted && r.spool.idsTwice.has(hash(id)) {
				sharing[id]++
			}
			if isNothing(f.Entry) && l.other == "" {
				strays++
			}
			if isShifted(f, l) {
				have.shifted++
			}
			if _, waits := r.statement.Waiting[f.Reference]; l.other != "" && isNothing(f.Entry) && !waits && l.happened() {
				have.similar++
				have.example = cmp.Or(have.example, fmt.Sprintf("%q and %q", f.Reference, l.other))
			}
			if l.status == StatementExecuted && isDenied(f.Entry) {
				part.hasFirst = true
				return r.spool.add(record{Line: StatementLine{Reference: f.Reference}, IsFirst: true})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sharing)) {
		if sharing[id] > 1 {
			have.shared++
			have.sharing = cmp.Or(have.sharing, fmt.Sprintf("%q in those of %d", id, sharing[id]))
		}
	}
	if 2*strays > lines && !r.statement.AllowStrays {
		return ErrStrays
	}
	return nil
}

// report reports what was marked, then all other findings.
func (r *reconciliation) report(ctx context.Context, report func(Finding) error) error {
	for _, first := range []bool{true, false} {
		for n := range r.spool.parts {
			part := &r.spool.parts[n]
			if first && !part.hasFirst {
				continue
			}
			err := r.compareAll(ctx, part, func(f Finding, l *listed) error {
				if l.isFirst != first {
					return nil
				}
				return report(f)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// compareAll visits the findings of a part in the order of their references.
func (r *reconciliation) compareAll(ctx context.Context, p *part, visit func(Finding, *listed) error) error {
	all, err := p.read()
	if err != nil {
		return err
	}
	references := slices.Sorted(maps.Keys(all))
	entries, err := r.onRecord(ctx, references)
	if err != nil {
		return err
	}
	for _, reference := range references {
		_, isRecorded := entries[reference]
		if summary, waits := r.statement.Waiting[reference]; waits && !isRecorded {
			entries[reference] = Entry{Intent: cardwire.Intent{Summary: summary}}
		}
	}
	groups := map[string][]string{} // by what they have in common
	for _, reference := range references {
		groups[alike(reference)] = append(groups[alike(reference)], reference)
	}
	for _, reference := range references {
		l, entry := all[reference], entries[reference]
		l.other = resembled(reference, groups[alike(reference)], all, entries)
		kind := r.statement.compare(l, entry)
		if l.other != "" && !l.happened() {
			kind = FindingSimilar
		}
		if kind == "" {
			continue
		}
		if err := visit(r.statement.finding(kind, reference, l, entry), l); err != nil {
			return err
		}
	}
	return nil
}

// resembled returns the first of the references in a group that a reference may be confused with;
// "": none. One of the two is on record or waits; the other is not, or was recorded from a
// statement, and may be the first one's order under a changed number.
func resembled(reference string, group []string, all map[string]*listed, entries map[string]Entry) string {
	_, isOurs := entries[reference]
	n := slices.IndexFunc(group, func(other string) bool {
		e, isOther := entries[other]
		return other != reference && (isOurs != isOther || all[other].isTold(e))
	})
	if n < 0 {
		return ""
	}
	return group[n]
}

// lookupSize is how many references are looked up at a time: in some drivers, the time grows
// with the square of the number of parameters.
const lookupSize = 128

// onRecord returns what is on record, by reference.
func (r *reconciliation) onRecord(ctx context.Context, references []string) (map[string]Entry, error) {
	found := map[string]Entry{}
	for some := range slices.Chunk(references, lookupSize) {
		args := []any{r.statement.Op}
		for i := range 1 << bits.Len(uint(len(some)-1)) { // a power of two: there are few different statements
			args = append(args, some[min(i, len(some)-1)])
		}
		page, err := r.on.entries(ctx, `i.op = ?1 AND i.reference IN (`+placeholders(2, len(args)-1)+`)`, args...)
		if err != nil {
			return nil, err
		}
		for _, k := range page {
			found[k.Reference] = k.Entry
		}
	}
	return found, nil
}

// placeholders are n parameters of a template.
func placeholders(from, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(",?" + strconv.Itoa(from+i))
	}
	return b.String()[1:]
}

// record is what a spool has of a reference.
type record struct {
	Line    StatementLine   // only its Reference, unless there is a Status
	Status  StatementStatus // "": it is not a line of the statement
	IsFirst bool            // the reference is reported first
}

// spool keeps the records in files, so that a statement of any length can be compared in
// parts. References that are alike are in the same part.
type spool struct {
	dir   string
	parts [partCount]part
	lines filter // references that are listed
	// Service IDs of executed lines, and those of more than one line.
	ids, idsTwice filter
}

// filter has a bit for each hash that was added, and for others by chance.
type filter [1 << 18]uint64

func (f *filter) bit(sum uint64) (word *uint64, bit uint64) {
	sum /= partCount
	return &f[sum/64%uint64(len(f))], 1 << (sum % 64)
}

func (f *filter) add(sum uint64) {
	word, bit := f.bit(sum)
	*word |= bit
}

func (f *filter) has(sum uint64) bool {
	word, bit := f.bit(sum)
	return *word&bit != 0
}

// partCount keeps each part of a million lines to some megabytes.
const partCount = 128

// part is a file of a spool; its zero value is empty.
type part struct {
	file     *os.File
	buffer   *bufio.Writer
	encoder  *gob.Encoder
	hasFirst bool
}

func newSpool() (*spool, error) {
	dir, err := os.MkdirTemp("", "sqljournal")
	if err != nil {
		return nil, spooling(err)
	}
	return &spool{dir: dir}, nil
}

func spooling(err error) error {
	return fmt.Errorf("sqljournal: the statement could not be kept in a temporary file: %w", err)
}

// remove removes the files. Those that it cannot remove are left to the system.
func (s *spool) remove() {
	for n := range s.parts {
		_ = s.parts[n].file.Close() // nil is an error
	}
	_ = os.RemoveAll(s.dir)
}

func (s *spool) add(r record) error {
	sum := hash(r.Line.Reference)
	if r.Status != "" {
		s.lines.add(sum)
	}
	if id := hash(r.Line.ServiceID); r.Status == StatementExecuted && r.Line.ServiceID != "" {
		if s.ids.has(id) {
			s.idsTwice.add(id)
		}
		s.ids.add(id)
	}
	p := &s.parts[sum%partCount]
	if p.file == nil {
		name := filepath.Join(s.dir, strconv.FormatUint(sum%partCount, 10))
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return spooling(err)
		}
		p.file, p.buffer = file, bufio.NewWriter(file)
		p.encoder = gob.NewEncoder(p.buffer)
	}
	if err := p.encoder.Encode(r); err != nil {
		return spooling(err)
	}
	return nil
}

// mayHave reports whether a line may be alike; it never misses one.
func (s *spool) mayHave(reference string) bool {
	return s.lines.has(hash(reference))
}

func hash(reference string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(alike(reference))) // it never fails
	return h.Sum64()
}

// read returns what the part has, by reference.
func (p *part) read() (map[string]*listed, error) {
	all := map[string]*listed{}
	if p.file == nil {
		return all, nil
	}
	if err := p.buffer.Flush(); err != nil {
		return nil, spooling(err)
	}
	decoder := gob.NewDecoder(bufio.NewReader(io.NewSectionReader(p.file, 0, math.MaxInt64)))
	for {
		var r record
		err := decoder.Decode(&r)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, spooling(err)
		case all[r.Line.Reference] == nil:
			all[r.Line.Reference] = &listed{}
		}
		all[r.Line.Reference].add(r)
	}
}
