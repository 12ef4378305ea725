package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheVersionIsThatOfTheBuild(t *testing.T) {
	t.Parallel()
	const module = "github.com/cardwire/cardwire-go"
	another := &debug.Module{Path: "example.com/shop", Version: "v9.9.9"}
	dependency := func(version string, replace *debug.Module) *debug.BuildInfo {
		nested := &debug.Module{Path: module + "/sqljournal", Version: "v0.7.0"}
		return &debug.BuildInfo{Main: *another,
			Deps: []*debug.Module{nested, {Path: module, Version: version, Replace: replace}}}
	}
	for name, tc := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a dependency": {dependency("v1.2.3", nil), "v1.2.3"},
		"a commit": {dependency("v0.0.0-20261121153000-0123456789ab", nil),
			"v0.0.0-20261121153000-0123456789ab"},
		"replaced by a fork": {dependency("v1.2.3", &debug.Module{Path: "example.com/fork", Version: "v1.9.0"}),
			"v1.9.0"},
		"replaced by a directory": {dependency("v1.2.3", &debug.Module{Path: "../cardwire-go"}), "devel"},
		"a program of this module": {&debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.4+dirty"}},
			"v1.2.4+dirty"},
		"its working tree":          {&debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, "devel"},
		"a workspace":               {dependency("", nil), "devel"},
		"a build without this":      {&debug.BuildInfo{Main: *another}, "devel"},
		"a build that does not say": {nil, "devel"},
	} {
		assert.Equal(t, tc.want, versionIn(tc.info), name)
	}
}
