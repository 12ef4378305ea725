module github.com/cardwire/cardwire-go/examples/apps

go 1.26.0

require (
	github.com/cardwire/cardwire-go v0.0.0
	github.com/google/uuid v1.6.0 // indirect
	github.com/shopspring/decimal v1.6.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/cardwire/cardwire-go => ../..
	github.com/cardwire/cardwire-go/cardwireotel => ../../cardwireotel
	github.com/cardwire/cardwire-go/sqljournal => ../../sqljournal
)
