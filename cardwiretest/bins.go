package cardwiretest

import "strconv"

func listBINs(s *Service, _ *request) result { return success(list(s.state.bins...).json()) }

func listMaintenance(s *Service, _ *request) result {
	digits := list()
	for _, b := range s.state.bins {
		if b.str("maintain") == "true" {
			digits.items = append(digits.items, text(b.str("bin")))
		}
	}
	return success(digits.json())
}

func capacity(s *Service, _ *request) result {
	h := s.state.hash("capacity", 0)
	return success(strconv.AppendInt(nil, 500+int64(h[0]), 10))
}
