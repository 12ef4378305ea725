package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testUser     = "amelia"
	testPassword = "correct horse battery"
)

// testOffice is everything but the program around it, over a service of its own.
type testOffice struct {
	handler http.Handler
	fake    *cardwiretest.Service
	journal *sqljournal.Journal
	closeDB func()
	log     *bytes.Buffer
	door    *door
}

func newTestOffice(t *testing.T, fake *cardwiretest.Service) *testOffice {
	t.Helper()
	journal, closeDB, err := openJournal(t.Context(), settings{journal: filepath.Join(t.TempDir(), "journal.db")})
	require.NoError(t, err)
	t.Cleanup(closeDB)
	fake.AddFailedOperation(failedTopUp, "transfer_in")
	fake.AddFailedOperation(failedFreeze, "freeze")
	hash, err := bcrypt.GenerateFromPassword([]byte(testPassword), bcrypt.MinCost)
	require.NoError(t, err)
	o := &testOffice{fake: fake, journal: journal, closeDB: closeDB, log: &bytes.Buffer{}, door: newDoor(account{testUser, hash}, false)}
	logger := slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client, err := connect(journal, logger, fake)
	require.NoError(t, err)
	o.handler = newOffice(client, journal, logger, o.door, true).handler()
	return o
}
