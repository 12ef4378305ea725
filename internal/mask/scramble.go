package mask

import "hash/maphash"

// seeds are random for each process: sealed values must stay comparable in it. They
// protect from logs, not from a reader of memory.
var seeds = func() (s [3]maphash.Seed) {
	for i := range s {
		s[i] = maphash.MakeSeed()
	}
	return s
}()

// Scramble encodes digits in place, so that a dump of the field that contains them shows
// none. Digits that are known from the mask or from another value must not reveal others:
// in this Feistel network every byte depends on all of them. No byte of the result is
// ASCII.
func Scramble(b []byte) {
	for round := range seeds {
		mix(b, round)
	}
	for i := range b {
		b[i] ^= 0x80
	}
}

// Unscramble reverses [Scramble].
func Unscramble(b []byte) {
	for i := range b {
		b[i] ^= 0x80
	}
	for round := len(seeds) - 1; round >= 0; round-- {
		mix(b, round)
	}
}

// mix is one round of a Feistel network, and its own inverse.
func mix(b []byte, round int) {
	from, to := b[:len(b)/2], b[len(b)/2:]
	if round%2 == 1 {
		from, to = to, from
	}
	for n := 0; n*8 < len(to); n++ {
		sum := maphash.Bytes(seeds[round], from[n:])
		for i := n * 8; i < min(n*8+8, len(to)); i++ {
			to[i] ^= byte(sum) & 0x7f
			sum >>= 8
		}
	}
}
