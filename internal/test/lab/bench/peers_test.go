package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-github/v84/github"
	"github.com/stripe/stripe-go/v85"

	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// Other clients are called as their documentation shows it, with their defaults. Each has
// responses of its own service, made after its public reference, and a baseline of its
// own: what is compared is how much each adds to that.

var goGithub = comparison{
	name: "go-github", base: "https://api.github.com", path: "/users?per_page=100",
	response: func() string { return "[" + elements(100, user) + "]" },
	decode:   into(func(list *[]plainUser) bool { return len(*list) == 100 && (*list)[99].Login == "octo-99" }),
	peer: func(_ testing.TB, hc *http.Client) func(context.Context) error {
		c := github.NewClient(hc).WithAuthToken(wiretest.Key)
		return func(ctx context.Context) error {
			list, _, err := c.Users.ListAll(ctx, &github.UserListOptions{PerPage: 100})
			return cmp.Or(err, sent(len(list) == 100))
		}
	},
}

var stripeGo = comparison{
	name: "stripe-go", base: "https://api.stripe.com/v1", path: "/issuing/cards?limit=100",
	response: func() string {
		return `{"object":"list","url":"/v1/issuing/cards","has_more":false,"data":[` + elements(100, issued) + `]}`
	},
	decode: into(func(list *plainIssuedList) bool { return len(list.Data) == 100 && list.Data[99].ID != "" }),
	peer: func(_ testing.TB, hc *http.Client) func(context.Context) error {
		c := stripe.NewClient(wiretest.Key, stripe.WithBackends(stripe.NewBackends(hc)))
		return func(ctx context.Context) error {
			params := &stripe.IssuingCardListParams{}
			params.Limit = stripe.Int64(100)
			count := 0
			for _, err := range c.V1IssuingCards.List(ctx, params).All(ctx) {
				if err != nil {
					return err
				}
				count++
			}
			return sent(count == 100)
		}
	},
}

func user(i int) string { return other(sampleUser, i, "gravatar_id", "type") }

const sampleUser = `{"login":"octo-","id":1,"node_id":"MDQ6VXNlcj0","gravatar_id":"","type":"User",` +
	`"site_admin":false,"avatar_url":"https://avatars.example.com/u/v4","url":"https://api.example.com/users/octo",` +
	`"html_url":"https://www.example.com/octo","followers_url":"https://api.example.com/users/octo/followers",` +
	`"following_url":"https://api.example.com/users/octo/following{/other_user}",` +
	`"gists_url":"https://api.example.com/users/octo/gists{/gist_id}",` +
	`"starred_url":"https://api.example.com/users/octo/starred{/owner}{/repo}",` +
	`"subscriptions_url":"https://api.example.com/users/octo/subscriptions",` +
	`"organizations_url":"https://api.example.com/users/octo/orgs",` +
	`"repos_url":"https://api.example.com/users/octo/repos",` +
	`"events_url":"https://api.example.com/users/octo/events{/privacy}",` +
	`"received_events_url":"https://api.example.com/users/octo/received_events"}`

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

func issued(i int) string {
	return other(sampleIssued, i, "object", "brand", "country", "currency", "interval", "spending_limits_currency",
		"status", "type")
}

const sampleIssued = `{"id":"ic_1Nc000000000000000","object":"issuing.card","brand":"Visa",` +
	`"cancellation_reason":null,"cardholder":{"id":"ich_1Nb000000000000000","object":"issuing.cardholder",` +
	`"billing":{"address":{"city":"Lisbon",` +
	`"country":"PT","line1":"Rua Augusta 5","line2":null,"postal_code":"1100-0","state":"Lisboa"}},"company":null,` +
	`"created":1690000000,"email":"maria@example.com","individual":null,"livemode":false,"metadata":{},` +
	`"name":"Maria Silva","phone_number":"+351912345","preferred_locales":[],"requirements":{"disabled_reason":null,` +
	`"past_due":[]},"spending_controls":{"allowed_categories":[],"blocked_categories":[],"spending_limits":[],` +
	`"spending_limits_currency":null},"status":"active","type":"individual"},"created":1690000500,"currency":"usd",` +
	`"exp_month":8,"exp_year":2027,"last4":"12","livemode":false,"metadata":{"order":"0000"},"replaced_by":null,` +
	`"replacement_for":null,"replacement_reason":null,"shipping":null,"spending_controls":{"allowed_categories":null,` +
	`"blocked_categories":null,"spending_limits":[{"amount":50000,"categories":[],"interval":"daily"}],` +
	`"spending_limits_currency":"usd"},"status":"active","type":"virtual","wallets":{"apple_pay":{"eligible":true,` +
	`"ineligible_reason":null},"google_pay":{"eligible":true,"ineligible_reason":null},` +
	`"primary_account_identifier":null}}`

// plainIssuedList is what one would write by hand for the same response.
type plainIssuedList struct {
	Object  string        `json:"object"`
	URL     string        `json:"url"`
	HasMore bool          `json:"has_more"`
	Data    []plainIssued `json:"data"`
}

type plainIssued struct {
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
