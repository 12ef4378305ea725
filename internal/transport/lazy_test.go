package transport

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLazyContextIsAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, waited := range []bool{false, true} {
			begin := func(parent context.Context) *lazyContext {
				l := &lazyContext{Context: parent, end: time.Now().Add(time.Second)}
				if waited {
					l.Done()
				}
				require.NoError(t, l.Err())
				return l
			}
			expired := begin(t.Context())
			pause(time.Second)
			synctest.Wait()
			require.ErrorIs(t, expired.Err(), context.DeadlineExceeded)
			<-expired.Done()

			parent, cancel := context.WithCancel(t.Context())
			orphan := begin(parent)
			cancel()
			require.ErrorIs(t, orphan.Err(), context.Canceled)
			<-orphan.Done()

			stopped := begin(t.Context())
			stopped.stop()
			stopped.stop()
			require.ErrorIs(t, stopped.Err(), context.Canceled)
			<-stopped.Done()
			require.ErrorIs(t, stopped.Err(), context.Canceled)
		}
	})
}

func TestLazyContextHasChildrenWithoutGoroutines(t *testing.T) {
	l := &lazyContext{Context: t.Context(), end: time.Now().Add(time.Hour)}
	before := runtime.NumGoroutine()
	child, cancel := context.WithCancel(l)
	defer cancel()
	assert.Equal(t, before, runtime.NumGoroutine())
	l.stop()
	<-child.Done()
	assert.ErrorIs(t, child.Err(), context.Canceled)
}
