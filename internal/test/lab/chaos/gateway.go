package chaos

import "net/http"

// GatewayKinds are what something in front of the service makes of a request or of
// its response, and code 200 without evidence. Kinds does not have them: whether the
// first two are read rightly depends on the client's profile.
func GatewayKinds() []Kind {
	unknown, refused := []Verdict{Unknown}, []Verdict{Refused}
	after := func(fault func(*exchange)) func(*exchange) { return func(x *exchange) { x.execute(); fault(x) } }
	return []Kind{
		// The gateway delivers a POST twice, and returns the second response.
		{Name: "done-replayed", effect: always, verdicts: unknown, serve: after(orderExists)},
		{Name: "unless-exists", effect: either, verdicts: []Verdict{Success, Unknown}, serve: executeUnlessExists},

		// A firewall blocks the response.
		{Name: "done-403-html", effect: always, verdicts: unknown, serve: after(respond(403, page))},
		{Name: "done-403-object", effect: always, verdicts: unknown, serve: after(respond(403, `{"code":1020}`))},
		{Name: "done-404-bom", effect: always, verdicts: unknown, serve: after(func(x *exchange) { x.say(404, "\ufeff"+x.success()) })},
		{Name: "done-422-named", effect: always, verdicts: unknown, serve: after(func(x *exchange) {
			x.say(http.StatusUnprocessableEntity, `{"code":4221,"msg":"no","data":{"order":"`+x.order.Reference+`"}}`)
		})},

		// It blocks the request.
		{Name: "401", verdicts: refused, serve: respond(401, "")},
		{Name: "403", verdicts: refused, serve: respond(403, `{"code":403,"msg":"no","data":null}`)},
		{Name: "404-html", verdicts: refused, serve: respond(404, page)},

		{Name: "200-null", verdicts: unknown, serve: respond(200, `{"code":200,"msg":"success","data":null}`)},
		{Name: "done-200-null", effect: always, verdicts: unknown, serve: data(`null`)},
	}
}

// executeUnlessExists is a service that deduplicates.
func executeUnlessExists(x *exchange) {
	if x.service.ledger.exists(x.order) {
		orderExists(x)
		return
	}
	succeed(x)
}

func orderExists(x *exchange) {
	x.say(http.StatusUnprocessableEntity, `{"code":422,"msg":"order exists","data":null}`)
}
