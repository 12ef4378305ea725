package payouts

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// role makes a role that may log in, with its own name as password.
func (s *shop) role(name string) string {
	s.t.Helper()
	role := strings.Replace(valuesOf[string](s, `SELECT current_database()::text`)[0], "d_", name+"_", 1)
	s.do(`CREATE ROLE ` + role + ` LOGIN PASSWORD '` + role + `'`)
	s.t.Cleanup(func() {
		_, err := s.db.ExecContext(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		assert.NoError(s.t, err)
	})
	return role
}

// as is the source of the shop's database for a role.
func (s *shop) as(role string) string {
	s.t.Helper()
	source, err := url.Parse(s.source)
	require.NoError(s.t, err)
	source.User = url.UserPassword(role, role)
	return source.String()
}

// A program's role needs what docs/payouts.md grants, and no more: what it lacks Verify says in the same words.
func TestTheRightsOfAProgram(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/payouts.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(guide), "```sql\n")
	grants, _, _ := strings.Cut(rest, "```")
	owner := openShop(t, newDatabase(t), nil)
	role := owner.role("shop")
	s := newShop(t, owner.as(role), func(c *Config) { c.PurgeAfter = 1 })
	for grant := range strings.SplitSeq(strings.TrimSpace(grants), "\n") {
		grant = strings.Replace(grant, " TO shop;", " TO "+role+";", 1)
		require.ErrorContains(t, s.Verify(t.Context()), "\n"+grant)
		owner.do(grant)
	}
	s.loseResponse("A-1", false)
	s.resolves("A-1", "send_again")
	s.orders("A-2", "A-3")
	stop := s.run()
	s.await("A-1", StateSubmitted)
	s.await("A-2", StateSubmitted)
	stop()
	s.resolves("A-2", StatePaid)
	s.orders("A-4")
	assert.Equal(t, 200, s.cancelAs("A-4"))
	s.tells()
	s.sweeps()
	assert.Equal(t, []int64{4}, valuesOf[int64](s, `SELECT count(*) FROM @payouts WHERE body = ''`), "they are purged")
	for path, want := range map[string]string{"": "submitted", "order?number=A-2": "paid"} {
		assert.Contains(t, s.page(path), want)
	}
	for _, path := range []string{"pause", "hold"} {
		status, text := s.post(path, url.Values{})
		assert.Equal(t, 303, status, text)
	}
	s.settled()
	status, text := s.post("release", url.Values{})
	assert.Equal(t, 303, status, text)
	assert.Contains(t, s.log.String(), "A-4")
	assert.NotContains(t, s.log.String(), "permission denied")

	reader := owner.role("reader") // as for a dashboard: nothing there is personal
	owner.do(`GRANT USAGE ON SCHEMA @schema TO ` + reader)
	owner.do(`GRANT SELECT ON @payouts_orders TO ` + reader)
	db, _ := openDB(t, owner.as(reader))
	require.NoError(t, s.exec(t.Context(), db, `SELECT * FROM @payouts_orders`))
	require.ErrorContains(t, s.exec(t.Context(), db, `SELECT body FROM @payouts`), "permission denied")
}
