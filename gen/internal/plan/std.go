package plan

import (
	"go/types"
	"strings"
)

// A stdKind is what the generator knows about a function of the standard
// library.
type stdKind uint8

const (
	stdUnknown stdKind = iota
	stdPure            // reads its arguments and what they lead to
	stdMutates         // also changes what its first argument leads to
	stdPrints          // formats its arguments for the outside
	stdStamps          // the same, with the time of the call
	stdFormats         // formats its arguments
	stdStream          // reads or writes a stream kept in memory, its receiver
	stdClock           // reads the clock
	stdRandom          // draws from a random generator of the host that nobody seeded
	stdSource          // draws from its receiver, a random generator
	stdBlocks          // may wait for the outside
	stdSync            // takes part in the synchronisation of goroutines
	stdPolls           // asks a context
	stdExits           // ends the process
)

// stdPackages says what every function and method of a package is, unless
// stdFuncs knows better.
var stdPackages = map[string]stdKind{
	"cmp":           stdPure,
	"math":          stdPure,
	"math/bits":     stdPure,
	"math/cmplx":    stdPure,
	"strconv":       stdPure,
	"unicode":       stdPure,
	"unicode/utf8":  stdPure,
	"unicode/utf16": stdPure,
	"path":          stdPure,
	"sync":          stdSync,
	"sync/atomic":   stdSync,
}

// stdFuncs lists functions by their full names; in a name that ends in ".*"
// the star stands for every function or method.
var stdFuncs = table(map[stdKind]string{
	stdPure: `
		bytes.Equal bytes.Compare bytes.Contains bytes.HasPrefix bytes.HasSuffix bytes.Index bytes.TrimSpace bytes.Repeat bytes.ToUpper bytes.ToLower bytes.Clone
		errors.New errors.Join errors.Unwrap
		maps.Clone maps.Equal maps.Keys maps.Values maps.All
		path/filepath.Base path/filepath.Dir path/filepath.Ext path/filepath.Join path/filepath.Clean
		slices.All slices.Values slices.Backward slices.Clone slices.Compare slices.Concat slices.Contains slices.Equal slices.Index slices.Max slices.Min
		slices.Repeat slices.IsSorted slices.BinarySearch slices.Chunk
		sort.SearchInts sort.SearchFloat64s sort.SearchStrings sort.Float64sAreSorted sort.IntsAreSorted
		strings.Compare strings.Contains strings.ContainsAny strings.ContainsRune strings.Count strings.Cut strings.CutPrefix strings.CutSuffix strings.EqualFold
		strings.Fields strings.HasPrefix strings.HasSuffix strings.Index strings.IndexByte strings.Join strings.LastIndex strings.Repeat strings.Replace
		strings.ReplaceAll strings.Split strings.SplitN strings.Title strings.ToLower strings.ToUpper strings.Trim strings.TrimLeft strings.TrimRight
		strings.TrimPrefix strings.TrimSpace strings.TrimSuffix strings.Lines strings.SplitSeq strings.FieldsSeq
		(time.Duration).* (time.Time).* (time.Month).* (time.Weekday).* time.Date time.Unix time.UnixMilli time.ParseDuration
		(*testing.common).Helper (*testing.common).Name (*testing.common).Failed math/rand.NewSource math/rand.New math/rand/v2.New math/rand/v2.NewPCG math/rand/v2.NewChaCha8
		context.Background context.TODO`,
	stdMutates: `
		maps.Copy maps.Insert slices.Reverse slices.Sort slices.Insert slices.Delete slices.Replace slices.Grow slices.Compact
		sort.Float64s sort.Ints sort.Strings
		strconv.AppendBool strconv.AppendFloat strconv.AppendInt strconv.AppendUint strconv.AppendQuote strconv.AppendQuoteRune
		strconv.AppendQuoteRuneToASCII strconv.AppendQuoteRuneToGraphic strconv.AppendQuoteToASCII strconv.AppendQuoteToGraphic
		(time.Time).AppendFormat (time.Time).AppendText (time.Time).AppendBinary
		unicode/utf8.AppendRune unicode/utf8.EncodeRune unicode/utf16.AppendRune`,
	stdPrints: `
		fmt.Print fmt.Printf fmt.Println fmt.Fprint fmt.Fprintf fmt.Fprintln
		(*testing.common).Log (*testing.common).Logf (*testing.common).Error (*testing.common).Errorf (*testing.common).Fatal (*testing.common).Fatalf
		(*testing.common).Fail (*testing.common).FailNow (*testing.B).ReportMetric io.WriteString
		(*os.File).WriteString (*os.File).Write`,
	stdStamps: `
		log.Print log.Printf log.Println log.Fatal log.Fatalf log.Fatalln log.Panic log.Panicf log.Panicln
		(*log.Logger).Print (*log.Logger).Printf (*log.Logger).Println (*log.Logger).Fatal (*log.Logger).Fatalf (*log.Logger).Fatalln
		(*log.Logger).Panic (*log.Logger).Panicf (*log.Logger).Panicln
		log/slog.Debug log/slog.Info log/slog.Warn log/slog.Error (*log/slog.Logger).Debug (*log/slog.Logger).Info (*log/slog.Logger).Warn (*log/slog.Logger).Error`,
	stdFormats: `fmt.Sprint fmt.Sprintf fmt.Sprintln fmt.Errorf fmt.Append fmt.Appendf fmt.Appendln`,
	stdStream: `
		(*strings.Builder).WriteString (*strings.Builder).WriteByte (*strings.Builder).WriteRune (*strings.Builder).Write (*strings.Builder).String (*strings.Builder).Len
		(*strings.Builder).Reset (*strings.Builder).Grow
		(*bytes.Buffer).WriteString (*bytes.Buffer).WriteByte (*bytes.Buffer).WriteRune (*bytes.Buffer).Write (*bytes.Buffer).String (*bytes.Buffer).Len
		(*bytes.Buffer).Reset (*bytes.Buffer).Truncate (*bytes.Buffer).Grow
		(*bufio.Writer).WriteString (*bufio.Writer).WriteByte (*bufio.Writer).WriteRune (*bufio.Writer).Write (*bufio.Writer).Flush (*bufio.Writer).Buffered
		(*text/tabwriter.Writer).Flush (*text/tabwriter.Writer).Write`,
	stdClock:  `time.Now time.Since time.Until`,
	stdRandom: `math/rand/v2.*`,
	stdSource: `math/rand.* (*math/rand.Rand).* (*math/rand/v2.Rand).*`,
	stdBlocks: `
		time.Sleep time.After time.Tick time.NewTimer time.NewTicker fmt.Scan fmt.Scanf fmt.Scanln fmt.Fscan fmt.Fscanf fmt.Fscanln
		(*bufio.Scanner).* (*bufio.Reader).* (*os.File).Read (*os.File).ReadAt io.ReadAll io.Copy io.ReadFull net.* net/http.*`,
	stdPolls: `(context.Context).Err`,
	stdExits: `os.Exit runtime.Goexit`,
})

func table(byKind map[stdKind]string) map[string]stdKind {
	m := make(map[string]stdKind)
	for kind, names := range byKind {
		for name := range strings.FieldsSeq(names) {
			m[name] = kind
		}
	}
	return m
}

// stdlib returns what is known of fn.
func stdlib(fn *types.Func) stdKind {
	fn = fn.Origin()
	full := fn.FullName()
	if k, ok := stdFuncs[full]; ok {
		return k
	}
	if i := strings.LastIndexByte(full, '.'); i >= 0 {
		if k, ok := stdFuncs[full[:i]+".*"]; ok {
			return k
		}
	}
	if fn.Pkg() == nil {
		return stdUnknown
	}
	return stdPackages[fn.Pkg().Path()]
}

// higherOrder are functions that call the functions they are given only
// before they return; what they do besides is the value.
var higherOrder = map[string]stdKind{
	"slices.SortFunc":         stdMutates,
	"slices.SortStableFunc":   stdMutates,
	"slices.IndexFunc":        stdPure,
	"slices.ContainsFunc":     stdPure,
	"slices.MaxFunc":          stdPure,
	"slices.MinFunc":          stdPure,
	"slices.BinarySearchFunc": stdPure,
	"sort.Slice":              stdMutates,
	"sort.SliceStable":        stdMutates,
	"sort.Search":             stdPure,
	"strings.Map":             stdPure,
	"strings.FieldsFunc":      stdPure,
	"strings.TrimFunc":        stdPure,
	"strings.IndexFunc":       stdPure,
}

// iterators are functions whose result can be ranged over without effects of
// its own.
var iterators = map[string]bool{
	"slices.All": true, "slices.Values": true, "slices.Backward": true, "slices.Chunk": true,
	"maps.All": true, "maps.Keys": true, "maps.Values": true,
	"strings.Lines": true, "strings.SplitSeq": true, "strings.FieldsSeq": true,
}
