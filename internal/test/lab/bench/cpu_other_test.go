//go:build !unix

package bench

import "time"

func cpu() time.Duration { return 0 }
