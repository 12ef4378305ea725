// Api lists the exported names of this repository's packages, one line for each name,
// field and method, in api/PACKAGE.txt.
//
//	go run ./scripts/api [-check]
//
// So a review shows every change of a public name. With -check it writes nothing, and
// the exit status is 1 if a list differs from the code. Packages of nested modules are
// listed too; programs, examples, scripts and internal packages are not.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cardwire/cardwire-go/scripts/internal/repo"
)

func main() {
	check := flag.Bool("check", false, "compare the lists with the code and write nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	same, err := run(ctx, *check)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(2)
	case !same:
		fmt.Println("The public API differs from its list. If that is intended, run\n\n\tgo run ./scripts/api\n\nand add it to the change, with a line in CHANGELOG.md.")
		os.Exit(1)
	}
}

// run writes the lists, or reports whether they are up to date.
func run(ctx context.Context, check bool) (same bool, err error) {
	const dir = "api"
	root, err := repo.Root(ctx)
	if err != nil {
		return false, err
	}
	if err := os.Chdir(root); err != nil {
		return false, err
	}
	lists, err := listAll(ctx)
	if err != nil {
		return false, err
	}
	if check {
		return compareAll(dir, lists)
	}
	for name, lines := range lists {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o644); err != nil {
			return false, err
		}
	}
	return true, nil
}

// listAll returns the lists by the names of their files.
func listAll(ctx context.Context) (map[string]string, error) {
	lists := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && path != "."
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || slices.Contains(offersNothing, entry.Name())):
			return fs.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		packages, err := load(ctx, filepath.Dir(path))
		for _, p := range packages {
			name := p.Name() + ".txt"
			if lists[name] != "" {
				return fmt.Errorf("two packages are called %s", p.Name())
			}
			lists[name] = "package " + p.Path() + "\n\n" + strings.Join(list(p), "\n") + "\n"
		}
		return err
	})
	return lists, err
}

// built is what go list reports of a package.
type built struct {
	// ImportPath is its path.
	ImportPath string
	// Name is its name.
	Name string
	// Export is the file with its names for the compiler.
	Export string
	// DepOnly reports that it is listed only as a dependency.
	DepOnly bool
}

// load returns the public packages of the module in dir.
func load(ctx context.Context, dir string) ([]*types.Package, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Name,Export,DepOnly", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	exports := map[string]string{}
	var public []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var b built
		if err := decoder.Decode(&b); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[b.ImportPath] = b.Export
		if !b.DepOnly && isPublic(b) {
			public = append(public, b.ImportPath)
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var packages []*types.Package
	for _, path := range public {
		p, err := from.Import(path)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// offersNothing are directories whose packages are not for other modules.
var offersNothing = []string{"examples", "internal", "scripts", "testdata"}

func isPublic(b built) bool {
	for segment := range strings.SplitSeq(b.ImportPath, "/") {
		if slices.Contains(offersNothing, segment) {
			return false
		}
	}
	return b.Name != "main"
}

// list returns a line for each exported name of p, with fields and methods.
func list(p *types.Package) (lines []string) {
	q := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case *types.TypeName:
			if o.Exported() {
				lines = append(lines, listType(o, q)...)
			}
		case *types.Const:
			if o.Exported() {
				lines = append(lines, types.ObjectString(o, q)+" = "+o.Val().ExactString())
			}
		case types.Object:
			if o.Exported() {
				lines = append(lines, types.ObjectString(o, q))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func listType(o *types.TypeName, q types.Qualifier) (lines []string) {
	if o.IsAlias() {
		return []string{types.ObjectString(o, q)}
	}
	head := "type " + o.Name()
	switch t := o.Type().Underlying().(type) {
	case *types.Struct:
		text := "type " + types.TypeString(o.Type(), q) + " struct"
		if types.Comparable(t) {
			text += ", comparable"
		}
		hidden := false
		for field := range t.Fields() {
			if !field.Exported() {
				hidden = true
				continue
			}
			embedded := ""
			if field.Embedded() {
				embedded = ", embedded"
			}
			lines = append(lines, head+", field "+field.Name()+" "+types.TypeString(field.Type(), q)+embedded)
		}
		if hidden {
			text += ", with unexported fields"
		}
		lines = append(lines, text)
	case *types.Interface:
		lines = append(lines, "type "+types.TypeString(o.Type(), q)+" interface")
	default:
		lines = append(lines, "type "+types.TypeString(o.Type(), q)+" "+types.TypeString(t, q))
	}
	return append(lines, listMethods(o, q)...)
}

// listMethods also lists those of embedded fields, and marks methods of a pointer.
func listMethods(o *types.TypeName, q types.Qualifier) (lines []string) {
	ofValue := types.NewMethodSet(o.Type())
	all := ofValue
	if !types.IsInterface(o.Type()) {
		all = types.NewMethodSet(types.NewPointer(o.Type()))
	}
	for selection := range all.Methods() {
		method := selection.Obj()
		if !method.Exported() {
			continue
		}
		head := "type " + o.Name() + ", method "
		if ofValue.Lookup(method.Pkg(), method.Name()) == nil {
			head = "type " + o.Name() + ", method of a pointer "
		}
		signature := strings.TrimPrefix(types.TypeString(method.Type(), q), "func")
		lines = append(lines, head+method.Name()+signature)
	}
	return lines
}

// compareAll prints the differences.
func compareAll(dir string, lists map[string]string) (same bool, err error) {
	same = true
	listed, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return false, err
	}
	for _, file := range listed {
		if name := filepath.Base(file); lists[name] == "" {
			lists[name] = "\n" // the package has gone
		}
	}
	for name, now := range lists {
		before, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		for _, line := range difference(string(before), now) {
			same = false
			fmt.Printf("api/%s: %s\n", name, line)
		}
	}
	return same, nil
}

// difference returns the lines that are in only one of the texts, after - or +.
func difference(before, now string) (lines []string) {
	was, is := strings.Split(before, "\n"), strings.Split(now, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}
