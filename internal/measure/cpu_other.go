//go:build !unix

package measure

import "time"

// CPU returns 0 on systems that do not report it.
func CPU() time.Duration { return 0 }
