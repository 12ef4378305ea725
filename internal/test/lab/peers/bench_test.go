package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/Metronome-Industries/metronome-go"
	"github.com/Metronome-Industries/metronome-go/option"
	"github.com/google/go-github/v84/github"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/measure"
	"github.com/cardwire/cardwire-go/internal/test/lab/peers/generated"
)

// subject is one call of one client. The client's returns how many elements
// arrived and the identifier of the last.
type subject struct {
	name     string
	url      string // of the bare call
	response string
	plain    func(body []byte) error
	client   func(tb testing.TB, hc *http.Client) func(context.Context) (int, string, error)

	// What arrives.
	count int
	last  string
}

var lists = []subject{
	{
		name: "cardwire", url: "https://api.example.com/api/v1/cards?limit=100",
		response: string(measure.CardPage(measure.UTF8, 1, 1, listed)),
		plain:    measure.PlainPage,
		client: func(tb testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := cardwireOn(tb, hc)
			return func(ctx context.Context) (int, string, error) {
				page, err := c.ListCards(ctx, cardwire.ListCardsParams{Limit: listed})
				if err != nil {
					return 0, "", err
				}
				return len(page.Cards), page.Cards[len(page.Cards)-1].ID, nil
			}
		},
		count: listed, last: "c000000000000099",
	},
	{
		name: "generated", url: "https://api.example.com/api/v1/cards?limit=100",
		response: string(measure.CardPage(measure.UTF8, 1, 1, listed)),
		plain:    measure.PlainPage,
		client: func(tb testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := generatedOn(tb, hc)
			limit := strconv.Itoa(listed)
			return func(ctx context.Context) (int, string, error) {
				r, err := c.ListCardsWithResponse(ctx, &generated.ListCardsParams{Limit: &limit})
				if err != nil || r.JSON200 == nil || r.JSON200.Code != 200 {
					return 0, "", cmp.Or(err, errFailed)
				}
				cards := r.JSON200.Data.Data
				return len(cards), cards[len(cards)-1].Id, nil
			}
		},
		count: listed, last: "c000000000000099",
	},
	{
		name: "stripe", url: "https://api.stripe.com/v1/issuing/cards?limit=100", response: issuingCards(),
		plain: into(func(v *plainCards) bool {
			return len(v.Data) == listed && v.Data[listed-1].ID == "ic_1Nc000000000000000099"
		}),
		client: func(_ testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := stripeOn(hc)
			return func(ctx context.Context) (count int, last string, err error) {
				params := &stripe.IssuingCardListParams{}
				params.Limit = stripe.Int64(listed)
				for card, err := range c.V1IssuingCards.List(ctx, params).All(ctx) {
					if err != nil {
						return 0, "", err
					}
					count, last = count+1, card.ID
				}
				return count, last, nil
			}
		},
		count: listed, last: "ic_1Nc000000000000000099",
	},
	{
		name: "github", url: "https://api.github.com/users?per_page=100", response: users(),
		plain: into(func(v *[]plainUser) bool { return len(*v) == listed && (*v)[listed-1].Login == "octo-0099" }),
		client: func(_ testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := githubOn(hc)
			return func(ctx context.Context) (int, string, error) {
				list, _, err := c.Users.ListAll(ctx, &github.UserListOptions{PerPage: listed})
				if err != nil {
					return 0, "", err
				}
				return len(list), list[len(list)-1].GetLogin(), nil
			}
		},
		count: listed, last: "octo-0099",
	},
	{
		name: "metronome", url: "https://api.metronome.com/v1/customers?limit=100", response: customers(),
		plain: into(func(v *plainCustomers) bool {
			return len(v.Data) == listed && v.Data[listed-1].ID == "00000000-0000-4000-8000-000000000099"
		}),
		client: func(_ testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := metronomeOn(hc)
			return func(ctx context.Context) (int, string, error) {
				page, err := c.V1.Customers.List(ctx, metronome.V1CustomerListParams{Limit: metronome.Int(listed)})
				if err != nil {
					return 0, "", err
				}
				return len(page.Data), page.Data[len(page.Data)-1].ID, nil
			}
		},
		count: listed, last: "00000000-0000-4000-8000-000000000099",
	},
}

var smallest = []subject{
	{
		name: "cardwire", url: "https://api.example.com/api/v1/account/capacity", response: string(measure.Capacity()),
		plain: measure.PlainCapacity,
		client: func(tb testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := cardwireOn(tb, hc)
			return func(ctx context.Context) (int, string, error) {
				n, err := c.CardCapacity(ctx)
				if n != 250 {
					return 0, "", err
				}
				return 1, "250", err
			}
		},
		count: 1, last: "250",
	},
	{
		name: "generated", url: "https://api.example.com/api/v1/account/capacity", response: string(measure.Capacity()),
		plain: measure.PlainCapacity,
		client: func(tb testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := generatedOn(tb, hc)
			return func(ctx context.Context) (int, string, error) {
				r, err := c.CardCapacityWithResponse(ctx)
				if err != nil || r.JSON200 == nil || r.JSON200.Code != 200 {
					return 0, "", cmp.Or(err, errFailed)
				}
				return 1, strconv.Itoa(r.JSON200.Data), nil
			}
		},
		count: 1, last: "250",
	},
	{
		name: "stripe", url: "https://api.stripe.com/v1/issuing/cards/ic_1", response: tinyIssuingCard,
		plain: into(func(v *tinyCard) bool { return v.ID == "ic_1" }),
		client: func(_ testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := stripeOn(hc)
			return func(ctx context.Context) (int, string, error) {
				card, err := c.V1IssuingCards.Retrieve(ctx, "ic_1", nil)
				if err != nil {
					return 0, "", err
				}
				return 1, card.ID, nil
			}
		},
		count: 1, last: "ic_1",
	},
	{
		name: "github", url: "https://api.github.com/users/octo", response: tinyUser,
		plain: into(func(v *tinyLogin) bool { return v.Login == "octo" }),
		client: func(_ testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := githubOn(hc)
			return func(ctx context.Context) (int, string, error) {
				user, _, err := c.Users.Get(ctx, "octo")
				if err != nil {
					return 0, "", err
				}
				return 1, user.GetLogin(), nil
			}
		},
		count: 1, last: "octo",
	},
	{
		name: "metronome", url: "https://api.metronome.com/v1/customers/octo", response: tinyCustomer,
		plain: into(func(v *tinyData) bool { return v.Data.ID == "octo" }),
		client: func(_ testing.TB, hc *http.Client) func(context.Context) (int, string, error) {
			c := metronomeOn(hc)
			return func(ctx context.Context) (int, string, error) {
				customer, err := c.V1.Customers.Get(ctx, metronome.V1CustomerGetParams{CustomerID: "octo"})
				if err != nil {
					return 0, "", err
				}
				return 1, customer.Data.ID, nil
			}
		},
		count: 1, last: "octo",
	},
}

// into decodes by encoding/json, and fails unless the response arrived.
func into[T any](arrived func(*T) bool) func(body []byte) error {
	return func(body []byte) error {
		var v T
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		if !arrived(&v) {
			return errors.New("peers: not what was sent")
		}
		return nil
	}
}

func cardwireOn(tb testing.TB, hc *http.Client) *cardwire.Client {
	tb.Helper()
	c, err := cardwire.New("https://api.example.com/api/v1", measure.Key, cardwire.WithHTTPClient(hc))
	require.NoError(tb, err)
	return c
}

// errFailed is for responses that are no success.
var errFailed = errors.New("peers: no success")

func generatedOn(tb testing.TB, hc *http.Client) *generated.ClientWithResponses {
	tb.Helper()
	c, err := generated.NewClientWithResponses("https://api.example.com/api/v1", generated.WithHTTPClient(hc),
		generated.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+measure.Key)
			return nil
		}))
	require.NoError(tb, err)
	return c
}

func stripeOn(hc *http.Client) *stripe.Client {
	return stripe.NewClient(measure.Key, stripe.WithBackends(stripe.NewBackends(hc)))
}

func githubOn(hc *http.Client) *github.Client {
	return github.NewClient(hc).WithAuthToken(measure.Key)
}

func metronomeOn(hc *http.Client) *metronome.Client {
	c := metronome.NewClient(option.WithHTTPClient(hc), option.WithBearerToken(measure.Key))
	return &c
}

// BenchmarkList is a list of a hundred.
func BenchmarkList(b *testing.B) { compare(b, lists) }

// BenchmarkTiny is the smallest call.
func BenchmarkTiny(b *testing.B) { compare(b, smallest) }

func compare(b *testing.B, subjects []subject) {
	for _, s := range subjects {
		b.Run(s.name, func(b *testing.B) {
			hc := &http.Client{Transport: measure.Memory(s.response)}
			b.Run("bare", func(b *testing.B) {
				measure.Loop(b, func() error {
					return measure.Bare(context.Background(), hc, s.url, s.plain)
				})
			})
			b.Run("client", func(b *testing.B) {
				call := s.client(b, hc)
				measure.Loop(b, func() error {
					_, _, err := call(context.Background())
					return err
				})
			})
		})
	}
}

func TestClientAndBaselineReadWhatIsSent(t *testing.T) {
	t.Parallel()
	for kind, subjects := range map[string][]subject{"list": lists, "smallest": smallest} {
		for _, s := range subjects {
			t.Run(fmt.Sprintf("%s/%s", kind, s.name), func(t *testing.T) {
				t.Parallel()
				assert.NoError(t, s.plain([]byte(s.response)))
				count, last, err := s.client(t, &http.Client{Transport: measure.Memory(s.response)})(t.Context())
				require.NoError(t, err)
				assert.Equal(t, s.count, count)
				assert.Equal(t, s.last, last)
			})
		}
	}
}

// A baseline that leaves fields out would make its client look slow.
func TestPlainTypesHaveEveryField(t *testing.T) {
	t.Parallel()
	for response, plain := range map[string]any{
		issuingCards(): new(plainCards), tinyIssuingCard: new(tinyCard), users(): new([]plainUser), tinyUser: new(tinyLogin),
		customers(): new(plainCustomers), tinyCustomer: new(tinyData),
	} {
		d := json.NewDecoder(strings.NewReader(response))
		d.DisallowUnknownFields()
		assert.NoError(t, d.Decode(plain))
	}
}
