package cardwiretest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"
)

// provider is the service of a simulation. It executes what it receives, as often as it
// receives it.
type provider struct {
	w        *World
	executed map[string][]string // the service's numbers of each order
}

// ids returns the numbers under which an order was executed.
func (p *provider) ids(number string) []string {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return slices.Clone(p.executed[number])
}

func (p *provider) execute(number string) (id string) {
	p.w.mu.Lock()
	id = fmt.Sprintf("T-%s-%d", number, len(p.executed[number])+1)
	p.executed[number] = append(p.executed[number], id)
	p.w.mu.Unlock()
	p.w.tell(number, "service: executed as %s", id)
	return id
}

// serve responds to what arrives at a connection.
func (p *provider) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for r := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		if request.URL.Path != "/api/v1/remittance/transfer" {
			recorder := httptest.NewRecorder()
			New(WithKey(simulatedKey)).ServeHTTP(recorder, request)
			if recorder.Result().Write(conn) != nil {
				return
			}
			continue
		}
		number := p.orderIn(string(body))
		if p.w.wait("serve "+number) != nil {
			return
		}
		if response := p.transfer(number); response == "" || write(conn, response) != nil {
			return
		}
	}
}

func write(conn net.Conn, response string) error {
	_, err := io.WriteString(conn, response)
	return err
}

// orderIn returns the order that a request is about: the one whose number it has, or
// begins with, as "order-1-again" does.
func (p *provider) orderIn(body string) string {
	_, rest, _ := strings.Cut(body, `"merchantOrderNo":"`)
	for _, o := range p.w.orders {
		if number := o.params.MerchantOrderNo; strings.HasPrefix(rest, number) {
			return number
		}
	}
	return "an order that nobody placed"
}

// transfer executes an order, or not, and returns the response; "": the connection ends.
func (p *provider) transfer(number string) string {
	luck := p.w.luck("service " + number)
	fate := luck.IntN(20)
	if p.w.calm {
		fate = 0
	}
	say := func(status, what, response string) string {
		p.w.tell(number, "service: %s", what)
		return fmt.Sprintf("HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, len(response), response)
	}
	switch fate {
	case 1:
		return say("422 Unprocessable Entity", "refuses it for good", `{"code":422,"msg":"the account is closed","data":null}`)
	case 2:
		return say("429 Too Many Requests", "refuses it for its rate", `{"code":429,"msg":"too many requests","data":null}`)
	case 3:
		p.w.tell(number, "service: the connection is reset before it executes")
		return ""
	case 4:
		p.execute(number)
		p.w.tell(number, "service: the connection is reset")
		return ""
	case 5:
		return say("502 Bad Gateway", "a gateway responds, and nothing was executed", "<h1>Bad gateway</h1>")
	case 6:
		p.execute(number)
		return say("502 Bad Gateway", "a gateway responds", "<h1>Bad gateway</h1>")
	case 7, 8:
		late := time.Duration(luck.Int64N(int64(lateForFake)))
		time.AfterFunc(late, func() { p.execute(number) })
		p.w.tell(number, "service: the connection is reset, and it executes %s later", late.Round(time.Second))
		return ""
	case 9:
		p.execute(number)
		return say("422 Unprocessable Entity", "a gateway delivered it twice, and returns the second response",
			`{"code":422,"msg":"order `+number+` already exists","data":null}`)
	case 10:
		p.execute(number)
		return say("403 Forbidden", "a firewall responds", "<h1>Forbidden</h1>")
	case 11:
		p.execute(number)
		time.Sleep(2 * callTimeout)
		return ""
	case 12:
		return say("200 OK", "reports that it is busy", `{"code":1500,"msg":"busy","data":null}`)
	case 13:
		p.execute(number)
		return say("200 OK", "reports a success without the order", `{"code":200,"msg":"success","data":{}}`)
	}
	id := p.execute(number)
	return say("200 OK", "reports the success", `{"code":200,"msg":"success","data":{"merchant_order_no":"`+number+
		`","api_order_no":"`+id+`","status":"wait_process"}}`)
}
