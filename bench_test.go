package cardwire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// The payloads are made here, one member after the other, and every one is
// there. They are the same in each run.

func cardText(i int, php bool) string {
	address := fmt.Sprintf(`{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-%03d","addressLine1":"Rua Augusta %d","addressLine2":"%d Esq"}`, i%1000, i, i%9)
	if i%4 == 3 {
		address = "[]"
	}
	label := fmt.Sprintf(`"team %d"`, i%17)
	if i%3 == 0 {
		label = "null"
	}
	text := fmt.Sprintf(`{"id":"c%015d","trade_id":"t%015d","label":%s,"bin_id":%d,"card_bin":"493193",`+
		`"card_no":"493193%010d","cvv":"%03d","currency":"USD","available":"%d.%03d","pending":%d.%02d,"frozen":%d,`+
		`"expire_date":"%02d/20%02d","holder_username":"Maria %d Silva","holder_address":%s,`+
		`"create_time":"2026-%02d-%02d %02d:11:12","update_time":"2026-%02d-%02d %02d:21:22","status":%d,"remark":null,`+
		`"holder_phone":"9%08d","holder_phone_code":"+351","holder_email":"maria.%d@example.com","fee":"%d.%02d",`+
		`"destory_reason":null,"nickname":"card %d","physical":%d,"physical_status":%d,"deliver_status":%d,`+
		`"platform_waybill_number":null,"platform_waybill_company":null}`,
		i, i*7, label, i%40+1, i*7919, i%1000, i*13%5000, i%1000, i%50, i%100, i%3,
		i%12+1, i%10+27, i, address, i%12+1, i%28+1, i%24, i%12+1, i%28+1, i%24, i%6-1,
		i*31, i, i%5, i%100, i, i%2, i%3, i%4)
	if php {
		text = strings.ReplaceAll(text, "/", `\/`)
		text = strings.ReplaceAll(text, "Silva", `Andr\u00e9`)
	}
	return text
}

func cardPageText(n int, php bool) []byte {
	cards := make([]string, n)
	for i := range cards {
		cards[i] = cardText(i, php)
	}
	return fmt.Appendf(nil, `{"code":200,"msg":"success","data":{"total":%d,"per_page":%d,"current_page":1,"last_page":1,"data":[%s]}}`,
		n, n, strings.Join(cards, ","))
}

// The plain baseline: what one would write by hand, without any quirk handled.
type plainCard struct {
	ID                     string          `json:"id"`
	TradeID                string          `json:"trade_id"`
	Label                  string          `json:"label"`
	BINID                  int64           `json:"bin_id"`
	CardBIN                string          `json:"card_bin"`
	Number                 string          `json:"card_no"`
	CVV                    string          `json:"cvv"`
	Currency               string          `json:"currency"`
	Available              string          `json:"available"`
	Pending                float64         `json:"pending"`
	Frozen                 float64         `json:"frozen"`
	Expiry                 string          `json:"expire_date"`
	HolderUsername         string          `json:"holder_username"`
	HolderAddress          json.RawMessage `json:"holder_address"`
	CreateTime             string          `json:"create_time"`
	UpdateTime             string          `json:"update_time"`
	Status                 int             `json:"status"`
	Remark                 string          `json:"remark"`
	HolderPhone            string          `json:"holder_phone"`
	HolderPhoneCode        string          `json:"holder_phone_code"`
	HolderEmail            string          `json:"holder_email"`
	Fee                    string          `json:"fee"`
	DestroyReason          string          `json:"destory_reason"`
	Nickname               string          `json:"nickname"`
	Physical               int             `json:"physical"`
	PhysicalStatus         int             `json:"physical_status"`
	DeliverStatus          int             `json:"deliver_status"`
	PlatformWaybillNumber  string          `json:"platform_waybill_number"`
	PlatformWaybillCompany string          `json:"platform_waybill_company"`
}

type plainPage struct {
	Code int    `json:"code"`
	Msg  string `json:"msg"`
	Data struct {
		Total       int         `json:"total"`
		PerPage     int         `json:"per_page"`
		CurrentPage int         `json:"current_page"`
		LastPage    int         `json:"last_page"`
		Data        []plainCard `json:"data"`
	} `json:"data"`
}

func decodePage(b *testing.B, body []byte) {
	var page CardPage
	k := call{client: &core{}, op: operation{}}
	k.read = func(d *wire.Codec) { page = CardPage{}; readCardPage(d, &page) }
	c := wire.NewReader(body, false)
	e := envelope{call: &k, success: true}
	e.decode(c)
	if c.Err() != nil || e.mismatch != nil || len(page.Cards) == 0 {
		b.Fatal(c.Err(), e.mismatch)
	}
	c.Release()
}

// BenchmarkDecode compares decoding a page of cards, envelope and quirks
// included, with encoding/json into a plain struct.
func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		for _, php := range []bool{false, true} {
			body := cardPageText(n, php)
			b.Run(fmt.Sprintf("cards=%d/php=%t/std", n, php), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					var p plainPage
					if err := json.Unmarshal(body, &p); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("cards=%d/php=%t/cardwire", n, php), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					decodePage(b, body)
				}
			})
		}
	}
}

// memory answers every request with body, without a network.
type memory struct{ body []byte }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(m.body)), ContentLength: int64(len(m.body)), Request: r,
	}, nil
}

// BenchmarkCall compares whole calls in memory with a bare http.Client.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	for _, size := range []struct {
		name string
		path string
		body []byte
	}{
		{"capacity", "/account/capacity", []byte(`{"code":200,"msg":"success","data":250}`)},
		{"cards=100", "/cards?limit=100", cardPageText(100, false)},
	} {
		hc := &http.Client{Transport: memory{size.body}}
		b.Run(size.name+"/bare", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/api/v1"+size.path, nil)
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer sk-test")
				req.Header.Set("Accept", "application/json")
				req.Header.Set("User-Agent", "bare/1.0")
				resp, err := hc.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
				if size.name == "capacity" {
					var v struct {
						Code int    `json:"code"`
						Msg  string `json:"msg"`
						Data int64  `json:"data"`
					}
					err = json.Unmarshal(body, &v)
				} else {
					var v plainPage
					err = json.Unmarshal(body, &v)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(size.name+"/cardwire", func(b *testing.B) {
			c, err := New("https://api.example.com/api/v1", "sk-test", WithHTTPClient(hc))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if size.name == "capacity" {
					_, err = c.CardCapacity(ctx)
				} else {
					_, err = c.ListCards(ctx, ListCardsParams{Limit: 100})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
