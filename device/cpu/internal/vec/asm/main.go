// The command asm writes the assembly of package vec: for each family of loops a
// file z<family>_amd64.s, and z<family>_amd64.go beside it, which declares the
// functions and puts them into the tables of the package.
//
//	go run .                      all families
//	go run . -family elementwise  one of them
//
// A family is a function in a file of its own, and a row of [families].
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/build"
)

// families lists them all. A family writes its functions through avo's global context.
var families = []struct {
	name  string
	write func()
}{
	{"elementwise", elementwise},
	{"fold", fold},
	{"rows", rows},
	{"memory", memory},
	{"philox", philox},
	{"gemm", gemm},
	{"planes", planes},
	{"functions", functions},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("asm: ")
	only := flag.String("family", "", "write this family only")
	tables := flag.String("tables", "", "write one family's calls that fill tables to this `file`, as the command does when it calls itself")
	flag.Parse()
	for _, f := range families {
		switch {
		case *only != "" && *only != f.name:
		case *tables == "":
			if err := generate(f.name); err != nil {
				log.Fatalf("%s: %v", f.name, err)
			}
		default:
			// What follows goes into avo's notice of who has generated the file.
			os.Args = []string{os.Args[0], "-family", f.name}
			build.ConstraintExpr(constraint)
			f.write()
			build.Generate() // to the files that the flags -out and -stubs name
			if err := os.WriteFile(*tables, []byte(strings.Join(entries, "\n")), 0o666); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// constraint keeps assembly out of builds with the race detector, which can't see what assembly reads
// and writes. The twins in Go do the same work.
const constraint = "!noasm,!race"

// entries are the calls that fill tables of package vec; see [enter].
var entries []string

// enter has the generated Go file call table.set(isa, key, name) when the package is initialised.
func enter(table, isa, key, name string) {
	entries = append(entries, fmt.Sprintf("%s.set(%s, %s, %s)", table, isa, key, name))
}

// generate writes the files of one family. It runs this command once more, as
// there is one global context in a process.
func generate(family string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "asm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out, stubs, tables := filepath.Join(dir, "out"), filepath.Join(dir, "stubs"), filepath.Join(dir, "tables")
	cmd := exec.Command(self, "-family", family, "-pkg", "vec", "-out", out, "-stubs", stubs, "-tables", tables)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if err := os.WriteFile("../z"+family+"_amd64.s", withNotice(text), 0o666); err != nil {
		return err
	}
	text, err = goFile(stubs, tables)
	if err != nil {
		return err
	}
	return os.WriteFile("../z"+family+"_amd64.go", text, 0o666)
}

// withNotice puts the real command into the notice.
func withNotice(text []byte) []byte {
	return bytes.Replace(text, []byte("go run main.go"), []byte("go run ."), 1)
}

// goFile is the Go file of a family: avo's declarations and the calls that fill tables.
func goFile(stubs, tables string) ([]byte, error) {
	text, err := os.ReadFile(stubs)
	if err != nil {
		return nil, err
	}
	calls, err := os.ReadFile(tables)
	if err != nil {
		return nil, err
	}
	// Avo knows no unsafe.Pointer.
	text = bytes.ReplaceAll(withNotice(text), []byte("*byte"), []byte("unsafe.Pointer"))
	if len(calls) > 0 {
		text = fmt.Appendf(text, "\nfunc init() {\n%s\n}\n", calls)
	}
	var imports []string
	for name, path := range map[string]string{
		"unsafe": "unsafe",
		"device": "github.com/asyncgen/asyncgen/device",
		"kernel": "github.com/asyncgen/asyncgen/device/kernel",
	} {
		if bytes.Contains(text, []byte(name+".")) {
			imports = append(imports, fmt.Sprintf("import %q\n", path))
		}
	}
	slices.Sort(imports)
	text = bytes.Replace(text, []byte("package vec\n"), []byte("package vec\n\n"+strings.Join(imports, "")), 1)
	return format.Source(text)
}
