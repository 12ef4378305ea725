package cardwireotel_test

import (
	"context"
	"fmt"
	"net/http"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwireotel"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// A service has its spans exported; here they are kept, to show one.
func ExampleNewObserver() {
	exported := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported))
	observer, err := cardwireotel.NewObserver(cardwireotel.WithTracerProvider(provider))
	if err != nil {
		fmt.Println(err)
		return
	}
	service := cardwiretest.New(cardwiretest.WithKey("sk-test"))
	client, err := cardwire.New("https://cards.example/api/v1", "sk-test",
		cardwire.WithHTTPClient(&http.Client{Transport: service}), cardwire.WithObserver(observer))
	if err != nil {
		fmt.Println(err)
		return
	}

	if _, err := client.CardCapacity(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, span := range exported.GetSpans() {
		fmt.Println(span.Name, len(span.Events), "request")
	}
	// Output:
	// cardwire.CardCapacity 1 request
}
