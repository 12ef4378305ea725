package main

import (
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On SQLite the worker's query and River's are prepared, each once, except those of lists, which are
// others for each length.
func TestWhatIsOftenUsedIsPrepared(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	prepared := func() (names string) {
		c, err := s.db.Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Raw(func(c any) error {
			for query := range c.(*preparingConn).prepared {
				name, _, _ := strings.Cut(strings.TrimPrefix(query, oftenUsed), " ")
				names += name + "\n"
			}
			return nil
		}))
		require.NoError(t, c.Close())
		return names
	}
	s.order("A-1")
	s.work("A-1")
	once := prepared()
	assert.Contains(t, once, "BodyOfQueued\n")
	assert.Contains(t, once, "JobInsertFastMany\n")
	s.order("A-2")
	s.work("A-2")
	assert.Len(t, prepared(), len(once))
	s.orders("A-3", "A-4")
	s.exec(`UPDATE river_job SET state = 'scheduled', finalized_at = NULL`)
	now := time.Now().Add(time.Hour)
	scheduled, err := s.driver.GetExecutor().JobSchedule(t.Context(), &riverdriver.JobScheduleParams{Max: 2, Now: &now})
	require.NoError(t, err)
	assert.Len(t, scheduled, 2)
	assert.Contains(t, prepared(), "JobScheduleGetEligible\n")
	assert.NotContains(t, prepared(), "JobScheduleSetAvailable\n")
}
