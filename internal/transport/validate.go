package transport

import (
	"errors"
	"strings"
)

// validate refuses what net/http would refuse too late for the engine to know that
// nothing was sent. Its errors contain no value.
func (c *Request) validate() error {
	u := c.URL
	switch {
	case u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("transport: the URL is not an absolute http or https URL")
	case !token(c.Method):
		return errors.New("transport: the method is not a token")
	case c.BodySize < 0 || c.BodySize > 0 && c.Body == nil:
		return errors.New("transport: the size does not match the body")
	}
	return nil
}

func token(s string) bool {
	for i := range len(s) {
		b := s[i]
		if letter := b | 0x20; letter >= 'a' && letter <= 'z' || b >= '0' && b <= '9' {
			continue
		}
		if strings.IndexByte("-_!#$%&'*+.^`|~", b) < 0 {
			return false
		}
	}
	return s != ""
}
