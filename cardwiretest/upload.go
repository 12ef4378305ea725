package cardwiretest

import (
	"encoding/binary"
)

var uploadFields = []param{{name: "file", required: true}}

// uploadImage returns a key that depends on what was uploaded, so that a test can
// check that it was the right image.
func uploadImage(s *Service, r *request) result {
	n := int(binary.BigEndian.Uint32(r.file.sum[:])) + s.world.executed
	e := Execution{Op: r.op, Action: "upload", Size: r.file.size}
	e.ID = "att/" + s.world.token("attachment", n, 24)
	var o object
	o.str("attachment_key", e.ID)
	done := s.once(r, e, o.end(), func(string) {})
	done.msg = "Uploaded"
	return done
}
