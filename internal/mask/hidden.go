package mask

// Hidden is a value that nothing prints, compares or dumps: fmt, encoders, reflection and
// diffs find a function, and not what it returns.
type Hidden[T any] func() T

// Hide hides v.
func Hide[T any](v T) Hidden[T] { return func() T { return v } }
