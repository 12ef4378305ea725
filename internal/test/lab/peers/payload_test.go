package peers

import (
	"encoding/json"
	"fmt"
	"strings"
)

// listed is how many elements a list has.
const listed = 100

// The smallest responses, of three fields.
const (
	tinyIssuingCard = `{"id":"ic_1","object":"issuing.card","status":"active"}`
	tinyUser        = `{"login":"octo","id":1,"type":"User"}`
	tinyCustomer    = `{"data":{"id":"octo","external_id":"octo","name":"Octo"}}`
)

type tinyCard struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	Status string `json:"status"`
}

type tinyLogin struct {
	Login string `json:"login"`
	ID    int64  `json:"id"`
	Type  string `json:"type"`
}

type tinyData struct {
	Data struct {
		ID         string `json:"id"`
		ExternalID string `json:"external_id"`
		Name       string `json:"name"`
	} `json:"data"`
}

func elements(one func(i int) string) string {
	all := make([]string, listed)
	for i := range all {
		all[i] = one(i)
	}
	return strings.Join(all, ",")
}

func issuingCards() string {
	return `{"object":"list","url":"/v1/issuing/cards","has_more":false,"data":[` + elements(issuingCard) + `]}`
}

func issuingCard(i int) string {
	return fmt.Sprintf(`{"id":"ic_1Nc%018d","object":"issuing.card","brand":"Visa","cancellation_reason":null,`+
		`"cardholder":{"id":"ich_1Nb%018d","object":"issuing.cardholder","billing":{"address":{"city":"Lisbon",`+
		`"country":"PT","line1":"Rua Augusta %d","line2":null,"postal_code":"1100-%03d","state":"Lisboa"}},"company":null,`+
		`"created":%d,"email":"maria.%d@example.com","individual":null,"livemode":false,"metadata":{},`+
		`"name":"Maria %d Silva","phone_number":"+3519%08d","preferred_locales":[],"requirements":{"disabled_reason":null,`+
		`"past_due":[]},"spending_controls":{"allowed_categories":[],"blocked_categories":[],"spending_limits":[],`+
		`"spending_limits_currency":null},"status":"active","type":"individual"},"created":%d,"currency":"usd",`+
		`"exp_month":%d,"exp_year":%d,"last4":"%04d","livemode":false,"metadata":{"order":"%06d"},"replaced_by":null,`+
		`"replacement_for":null,"replacement_reason":null,"shipping":null,"spending_controls":{"allowed_categories":null,`+
		`"blocked_categories":null,"spending_limits":[{"amount":%d,"categories":[],"interval":"daily"}],`+
		`"spending_limits_currency":"usd"},"status":"active","type":"virtual","wallets":{"apple_pay":{"eligible":true,`+
		`"ineligible_reason":null},"google_pay":{"eligible":true,"ineligible_reason":null},"primary_account_identifier":null}}`,
		i, i*7, i, i%1000, 1690000000+i, i, i, i*31, 1690000500+i, i%12+1, 2027+i%10, i*7919%10000, i, 50000+i)
}

// plainCards is what one would write by hand for the same response.
type plainCards struct {
	Object  string      `json:"object"`
	URL     string      `json:"url"`
	HasMore bool        `json:"has_more"`
	Data    []plainCard `json:"data"`
}

type plainCard struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Brand              string            `json:"brand"`
	CancellationReason string            `json:"cancellation_reason"`
	Cardholder         plainHolder       `json:"cardholder"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	ExpMonth           int64             `json:"exp_month"`
	ExpYear            int64             `json:"exp_year"`
	Last4              string            `json:"last4"`
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	ReplacedBy         json.RawMessage   `json:"replaced_by"`
	ReplacementFor     json.RawMessage   `json:"replacement_for"`
	ReplacementReason  string            `json:"replacement_reason"`
	Shipping           json.RawMessage   `json:"shipping"`
	SpendingControls   plainLimits       `json:"spending_controls"`
	Status             string            `json:"status"`
	Type               string            `json:"type"`
	Wallets            struct {
		ApplePay                 plainWallet `json:"apple_pay"`
		GooglePay                plainWallet `json:"google_pay"`
		PrimaryAccountIdentifier string      `json:"primary_account_identifier"`
	} `json:"wallets"`
}

type plainWallet struct {
	Eligible         bool   `json:"eligible"`
	IneligibleReason string `json:"ineligible_reason"`
}

type plainHolder struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Billing struct {
		Address struct {
			City       string `json:"city"`
			Country    string `json:"country"`
			Line1      string `json:"line1"`
			Line2      string `json:"line2"`
			PostalCode string `json:"postal_code"`
			State      string `json:"state"`
		} `json:"address"`
	} `json:"billing"`
	Company          json.RawMessage   `json:"company"`
	Created          int64             `json:"created"`
	Email            string            `json:"email"`
	Individual       json.RawMessage   `json:"individual"`
	Livemode         bool              `json:"livemode"`
	Metadata         map[string]string `json:"metadata"`
	Name             string            `json:"name"`
	PhoneNumber      string            `json:"phone_number"`
	PreferredLocales []string          `json:"preferred_locales"`
	Requirements     struct {
		DisabledReason string   `json:"disabled_reason"`
		PastDue        []string `json:"past_due"`
	} `json:"requirements"`
	SpendingControls plainLimits `json:"spending_controls"`
	Status           string      `json:"status"`
	Type             string      `json:"type"`
}

type plainLimits struct {
	AllowedCategories []string `json:"allowed_categories"`
	BlockedCategories []string `json:"blocked_categories"`
	SpendingLimits    []struct {
		Amount     int64    `json:"amount"`
		Categories []string `json:"categories"`
		Interval   string   `json:"interval"`
	} `json:"spending_limits"`
	SpendingLimitsCurrency string `json:"spending_limits_currency"`
}

func users() string { return `[` + elements(user) + `]` }

func user(i int) string {
	login := fmt.Sprintf("octo-%04d", i)
	at := "https://api.example.com/users/" + login
	return fmt.Sprintf(`{"login":"%[1]s","id":%[2]d,"node_id":"MDQ6VXNlcj%08[2]d","avatar_url":"https://avatars.example.com/u/%[2]d?v=4",`+
		`"gravatar_id":"","url":"%[3]s","html_url":"https://www.example.com/%[1]s","followers_url":"%[3]s/followers",`+
		`"following_url":"%[3]s/following{/other_user}","gists_url":"%[3]s/gists{/gist_id}","starred_url":"%[3]s/starred{/owner}{/repo}",`+
		`"subscriptions_url":"%[3]s/subscriptions","organizations_url":"%[3]s/orgs","repos_url":"%[3]s/repos",`+
		`"events_url":"%[3]s/events{/privacy}","received_events_url":"%[3]s/received_events","type":"User","site_admin":false}`,
		login, i+1, at)
}

type plainUser struct {
	Login             string `json:"login"`
	ID                int64  `json:"id"`
	NodeID            string `json:"node_id"`
	AvatarURL         string `json:"avatar_url"`
	GravatarID        string `json:"gravatar_id"`
	URL               string `json:"url"`
	HTMLURL           string `json:"html_url"`
	FollowersURL      string `json:"followers_url"`
	FollowingURL      string `json:"following_url"`
	GistsURL          string `json:"gists_url"`
	StarredURL        string `json:"starred_url"`
	SubscriptionsURL  string `json:"subscriptions_url"`
	OrganizationsURL  string `json:"organizations_url"`
	ReposURL          string `json:"repos_url"`
	EventsURL         string `json:"events_url"`
	ReceivedEventsURL string `json:"received_events_url"`
	Type              string `json:"type"`
	SiteAdmin         bool   `json:"site_admin"`
}

func customers() string { return `{"data":[` + elements(customer) + `],"next_page":null}` }

func customer(i int) string {
	return fmt.Sprintf(`{"id":"00000000-0000-4000-8000-%012[1]d","created_at":"2026-01-02T03:04:%02[2]d.000Z",`+
		`"updated_at":"2026-02-03T04:05:%02[2]d.000Z","archived_at":null,"external_id":"customer-%04[1]d",`+
		`"ingest_aliases":["customer-%04[1]d","team-%04[1]d@example.com"],"name":"Example Company %[1]d",`+
		`"custom_fields":{"region":"eu","plan":"standard"},"customer_config":{"salesforce_account_id":"0015%012[1]d"},`+
		`"current_billable_status":{"value":"billable","effective_at":"2026-01-02T03:00:00.000Z"}}`, i, i%60)
}

type plainCustomers struct {
	Data     []plainCustomer `json:"data"`
	NextPage string          `json:"next_page"`
}

type plainCustomer struct {
	ID             string            `json:"id"`
	CreatedAt      string            `json:"created_at"`
	UpdatedAt      string            `json:"updated_at"`
	ArchivedAt     string            `json:"archived_at"`
	ExternalID     string            `json:"external_id"`
	IngestAliases  []string          `json:"ingest_aliases"`
	Name           string            `json:"name"`
	CustomFields   map[string]string `json:"custom_fields"`
	CustomerConfig struct {
		SalesforceAccountID string `json:"salesforce_account_id"`
	} `json:"customer_config"`
	CurrentBillableStatus struct {
		Value       string `json:"value"`
		EffectiveAt string `json:"effective_at"`
	} `json:"current_billable_status"`
}
