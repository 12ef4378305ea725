// Package shared has the facts on which several modules must agree.
package shared

import (
	"errors"
	"time"
)

// How long a call may take, and how late the service may execute it, if nobody says otherwise.
const (
	DefaultTimeout       = 30 * time.Second
	DefaultLateExecution = 10 * time.Minute
)

// ErrNoReason is the cause of a refusal that is not believed: Profile.RefusedMessages lacks its words.
var ErrNoReason = errors.New("cardwire: the refusal gives no reason that proves that nothing was executed")
