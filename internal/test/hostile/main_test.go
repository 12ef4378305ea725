package hostile_test

import (
	"testing"

	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }
