// Package version reports which version of the client a program was built with.
package version

import (
	"runtime/debug"
	"slices"
)

// UserAgent returns the client's name and version. It takes the version from the build
// information, which cannot go stale.
func UserAgent() string {
	info, _ := debug.ReadBuildInfo()
	return "cardwire-go/" + versionIn(info)
}

// versionIn returns the version of this module in a build, or "devel" if it has none.
// info may be nil.
func versionIn(info *debug.BuildInfo) string {
	const module = "github.com/cardwire/cardwire-go"
	if info == nil {
		return "devel"
	}
	for _, m := range slices.Concat(info.Deps, []*debug.Module{&info.Main}) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace // what was built
		}
		if m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return "devel"
}
