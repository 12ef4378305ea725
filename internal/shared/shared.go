// Package shared has the facts on which several modules must agree.
package shared

import "time"

// How long a call may take, and how late the service may execute it, if nobody says otherwise.
const (
	DefaultTimeout       = 30 * time.Second
	DefaultLateExecution = 10 * time.Minute
)

// TextTime is how SQLite keeps times, in UTC and to PostgreSQL's precision: the order of the strings is theirs.
const TextTime = "2006-01-02T15:04:05.000000Z"
