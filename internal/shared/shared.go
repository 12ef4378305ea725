// Package shared has the facts on which several modules must agree.
package shared

import "time"

// How long a call may take, and how late the service may execute it, if nobody says otherwise.
const (
	DefaultTimeout       = 30 * time.Second
	DefaultLateExecution = 10 * time.Minute
)
