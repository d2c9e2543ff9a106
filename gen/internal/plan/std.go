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
	stdChanges         // also changes what its receiver leads to
	stdFills           // also changes what any of its arguments leads to
	stdDrives          // calls the methods of its first argument that its parameter has, and changes what that leads to
	stdErrors          // looks into a chain of errors; errors.As changes what its second argument leads to
	stdPrints          // formats its arguments for the outside
	stdStamps          // the same, with the time of the call
	stdFormats         // formats its arguments
	stdEncodes         // formats its arguments, those that are not variadic too
	stdEmits           // the same for the outside
	stdStream          // reads or writes a stream, its receiver, or a file
	stdEnv             // asks the process: environment, working directory
	stdSetenv          // changes the process
	stdClock           // reads the clock
	stdRandom          // draws from a random generator of the host that nobody seeded
	stdSource          // draws from its receiver, a random generator
	stdGlobal          // draws from a random generator that the program may have seeded
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
	"regexp":        stdPure,
	"strconv":       stdPure,
	"unicode":       stdPure,
	"unicode/utf8":  stdPure,
	"unicode/utf16": stdPure,
	"path":          stdPure,
	"html":          stdPure,
	"math/big":      stdChanges,
	"database/sql":  stdBlocks,
	"net":           stdBlocks,
	"net/http":      stdBlocks,
	"net/rpc":       stdBlocks,
	"os/exec":       stdBlocks,
	"os/signal":     stdBlocks,
	"sync":          stdSync,
	"sync/atomic":   stdSync,
}

// stdFuncs lists functions by their full names; in a name that ends in ".*"
// the star stands for every function, or every method of a type, that no other name
// lists and that takes no function. The names are those of the standard library, context.TODO too.
var stdFuncs = table(map[stdKind]string{
	stdPure: `
		bytes.* errors.New errors.Join errors.Unwrap strings.*
		bufio.NewReader bufio.NewScanner bufio.NewWriter bufio.NewWriterSize encoding/csv.NewReader encoding/csv.NewWriter
		encoding/json.NewDecoder encoding/json.NewEncoder encoding/json.Valid text/tabwriter.NewWriter
		encoding/hex.EncodeToString encoding/hex.DecodeString (*encoding/base64.Encoding).EncodeToString (*encoding/base64.Encoding).DecodeString
		crypto/md5.Sum crypto/sha1.Sum crypto/sha256.Sum256 crypto/sha512.Sum512 hash/crc32.ChecksumIEEE hash/adler32.Checksum
		maps.Clone maps.Equal maps.Keys maps.Values maps.All
		path/filepath.Base path/filepath.Dir path/filepath.Ext path/filepath.Join path/filepath.Clean path/filepath.Split path/filepath.IsAbs
		path/filepath.Rel path/filepath.Match path/filepath.ToSlash path/filepath.FromSlash path/filepath.VolumeName
		slices.All slices.Values slices.Backward slices.Clone slices.Compare slices.Concat slices.Contains slices.Equal slices.Index slices.Max slices.Min
		slices.Repeat slices.IsSorted slices.BinarySearch slices.Chunk
		sort.SearchInts sort.SearchFloat64s sort.SearchStrings sort.Float64sAreSorted sort.IntsAreSorted sort.StringsAreSorted sort.Reverse
		(*strings.Replacer).Replace (*strings.Reader).Len (*strings.Reader).Size (*bytes.Reader).Len (*bytes.Reader).Size
		(*bufio.Scanner).Text (*bufio.Scanner).Bytes (*bufio.Scanner).Err
		(time.Duration).* (time.Time).* (time.Month).* (time.Weekday).* (*time.Location).String
		time.Date time.Unix time.UnixMilli time.UnixMicro time.ParseDuration time.Parse time.ParseInLocation time.FixedZone
		(*testing.common).Helper (*testing.common).Name (*testing.common).Failed math/rand.NewSource math/rand.New math/rand/v2.New math/rand/v2.NewPCG math/rand/v2.NewChaCha8
		log/slog.Int log/slog.Int64 log/slog.Uint64 log/slog.Float64 log/slog.String log/slog.Bool log/slog.Time log/slog.Duration
		(log/slog.Level).String log/slog.Default log.Default log.New log/slog.New
		image.Pt image.Rect (image.Point).* (image.Rectangle).*
		image.NewAlpha image.NewCMYK image.NewGray image.NewGray16 image.NewNRGBA image.NewNRGBA64 image.NewPaletted image.NewRGBA image.NewRGBA64
		net/url.PathEscape net/url.QueryEscape os.Getpid os.Getpagesize os.IsExist os.IsNotExist os.IsPermission os.IsTimeout runtime.NumCPU runtime.Version
		context.Background context.TODO context.Cause`,
	stdMutates: `
		maps.Copy slices.Reverse slices.Sort slices.Insert slices.Delete slices.Replace slices.Grow slices.Compact slices.Clip
		sort.Float64s sort.Ints sort.Strings
		strconv.AppendBool strconv.AppendFloat strconv.AppendInt strconv.AppendUint strconv.AppendQuote strconv.AppendQuoteRune
		strconv.AppendQuoteRuneToASCII strconv.AppendQuoteRuneToGraphic strconv.AppendQuoteToASCII strconv.AppendQuoteToGraphic
		(time.Time).AppendFormat (time.Time).AppendText (time.Time).AppendBinary
		(encoding/binary.littleEndian).* (encoding/binary.bigEndian).* encoding/binary.PutUvarint encoding/binary.PutVarint
		encoding/binary.AppendUvarint encoding/binary.AppendVarint encoding/hex.Encode encoding/hex.AppendEncode
		unicode/utf8.AppendRune unicode/utf8.EncodeRune unicode/utf16.AppendRune`,
	stdChanges: `
		(*container/list.List).* (*container/list.Element).* (*container/ring.Ring).* (net/http.Header).* (net/url.Values).*
		(*image.Alpha).* (*image.CMYK).* (*image.Gray).* (*image.Gray16).* (*image.NRGBA).* (*image.NRGBA64).* (*image.Paletted).* (*image.RGBA).* (*image.RGBA64).*
		(*regexp.Regexp).Longest (*bufio.Scanner).Buffer (*bufio.Scanner).Split`,
	stdFills:  `fmt.Sscan fmt.Sscanf fmt.Sscanln encoding/json.Unmarshal encoding/json.Indent encoding/json.Compact encoding/hex.Decode`,
	stdDrives: `container/heap.* sort.Sort sort.Stable sort.IsSorted`,
	stdErrors: `errors.Is errors.As`,
	stdPrints: `
		fmt.Print fmt.Printf fmt.Println fmt.Fprint fmt.Fprintf fmt.Fprintln
		(*testing.common).Log (*testing.common).Logf (*testing.common).Error (*testing.common).Errorf (*testing.common).Fatal (*testing.common).Fatalf
		(*testing.common).Fail (*testing.common).FailNow (*testing.common).Skip (*testing.common).Skipf (*testing.common).SkipNow
		(*testing.B).ReportMetric io.WriteString (io.Writer).Write (io.StringWriter).WriteString (io.ByteWriter).WriteByte
		(*os.File).WriteString (*os.File).Write`,
	stdStamps: `
		log.Print log.Printf log.Println log.Fatal log.Fatalf log.Fatalln log.Panic log.Panicf log.Panicln log.Output
		(*log.Logger).Print (*log.Logger).Printf (*log.Logger).Println (*log.Logger).Fatal (*log.Logger).Fatalf (*log.Logger).Fatalln
		(*log.Logger).Panic (*log.Logger).Panicf (*log.Logger).Panicln (*log.Logger).Output
		log/slog.Debug log/slog.Info log/slog.Warn log/slog.Error log/slog.Log log/slog.LogAttrs
		log/slog.DebugContext log/slog.InfoContext log/slog.WarnContext log/slog.ErrorContext
		(*log/slog.Logger).Debug (*log/slog.Logger).Info (*log/slog.Logger).Warn (*log/slog.Logger).Error (*log/slog.Logger).Log (*log/slog.Logger).LogAttrs
		(*log/slog.Logger).DebugContext (*log/slog.Logger).InfoContext (*log/slog.Logger).WarnContext (*log/slog.Logger).ErrorContext`,
	stdFormats: `fmt.Sprint fmt.Sprintf fmt.Sprintln fmt.Errorf fmt.Append fmt.Appendf fmt.Appendln`,
	stdEncodes: `encoding/json.Marshal encoding/json.MarshalIndent`,
	stdEmits:   `(*encoding/json.Encoder).Encode encoding/binary.Write`,
	stdStream: `
		(*strings.Builder).* (*strings.Reader).* (*bytes.Reader).*
		(*bytes.Buffer).WriteString (*bytes.Buffer).WriteByte (*bytes.Buffer).WriteRune (*bytes.Buffer).Write (*bytes.Buffer).String (*bytes.Buffer).Len
		(*bytes.Buffer).Reset (*bytes.Buffer).Truncate (*bytes.Buffer).Grow (*bytes.Buffer).Cap (*bytes.Buffer).Available
		(*bytes.Buffer).ReadByte (*bytes.Buffer).ReadRune (*bytes.Buffer).ReadString (*bytes.Buffer).Read
		(*bufio.Writer).WriteString (*bufio.Writer).WriteByte (*bufio.Writer).WriteRune (*bufio.Writer).Write (*bufio.Writer).Flush (*bufio.Writer).Buffered
		(*bufio.Writer).Available (*bufio.Writer).Size (*text/tabwriter.Writer).Flush (*text/tabwriter.Writer).Write (*text/tabwriter.Writer).Init
		(*encoding/json.Encoder).SetIndent (*encoding/json.Encoder).SetEscapeHTML
		(*encoding/csv.Writer).Write (*encoding/csv.Writer).WriteAll (*encoding/csv.Writer).Flush (*encoding/csv.Writer).Error
		(*compress/gzip.Writer).Write (*compress/gzip.Writer).Flush (*compress/gzip.Writer).Close
		log.SetPrefix log.SetFlags log.SetOutput log.Prefix log.Flags log.Writer
		(*log.Logger).SetPrefix (*log.Logger).SetFlags (*log.Logger).SetOutput (*log.Logger).Prefix (*log.Logger).Flags (*log.Logger).Writer
		(net/http.Flusher).Flush (net/http.ResponseWriter).Write (net/http.ResponseWriter).WriteHeader (net/http.ResponseWriter).Header
		(*net/http.ResponseController).Flush
		(*os.File).Close (*os.File).Sync (*os.File).WriteAt (*os.File).Truncate (*os.File).Name
		os.WriteFile os.Create os.CreateTemp os.Mkdir os.MkdirAll os.MkdirTemp os.Remove os.RemoveAll os.Rename os.Truncate os.Chmod os.Symlink os.Link`,
	stdEnv:    `os.Getenv os.LookupEnv os.Environ os.ExpandEnv os.Getwd os.Hostname os.Executable os.TempDir os.UserHomeDir`,
	stdSetenv: `os.Setenv os.Unsetenv os.Clearenv os.Chdir`,
	stdClock:  `time.Now time.Since time.Until`,
	stdRandom: `math/rand/v2.*`,
	stdGlobal: `math/rand.*`,
	stdSource: `(*math/rand.Rand).* (*math/rand/v2.Rand).*`,
	stdBlocks: `
		time.Sleep time.After time.AfterFunc time.Tick time.NewTimer time.NewTicker (*time.Timer).* (*time.Ticker).*
		fmt.Scan fmt.Scanf fmt.Scanln fmt.Fscan fmt.Fscanf fmt.Fscanln
		(*bufio.Scanner).* (*bufio.Reader).* (*os.File).Read (*os.File).ReadAt (*os.File).ReadFrom io.ReadAll io.Copy io.CopyN io.ReadFull (io.Reader).Read
		(*encoding/json.Decoder).* (*encoding/csv.Reader).* (*encoding/gob.Decoder).*
		os.Open os.OpenFile os.ReadFile os.ReadDir os.Stat net.* net/http.*
		runtime.Gosched runtime.GC runtime/debug.FreeOSMemory`,
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
	kind := stdUnknown
	if fn.Pkg() != nil {
		kind = stdPackages[fn.Pkg().Path()]
	}
	if i := strings.LastIndexByte(full, '.'); i >= 0 {
		if k, ok := stdFuncs[full[:i]+".*"]; ok {
			kind = k
		}
	}
	if kind < stdBlocks && takesFunc(fn) {
		return stdUnknown // it depends on the function, see higherOrder
	}
	return kind
}

// takesFunc reports whether fn has a parameter of function type.
func takesFunc(fn *types.Func) bool {
	for p := range fn.Signature().Params().Variables() {
		if isFunc(p.Type()) {
			return true
		}
	}
	return false
}

// higherOrder are functions that call the functions they are given only
// before they return; what they do besides is the value.
var higherOrder = table(map[stdKind]string{
	stdPure: `
			slices.IndexFunc slices.ContainsFunc slices.MaxFunc slices.MinFunc slices.BinarySearchFunc slices.EqualFunc slices.CompareFunc slices.IsSortedFunc
			slices.Collect slices.Sorted slices.SortedFunc maps.Collect maps.EqualFunc sort.Search sort.Find sort.SliceIsSorted
			strings.Map strings.FieldsFunc strings.TrimFunc strings.TrimLeftFunc strings.TrimRightFunc strings.IndexFunc strings.LastIndexFunc strings.ContainsFunc
			bytes.Map bytes.FieldsFunc bytes.TrimFunc bytes.TrimLeftFunc bytes.TrimRightFunc bytes.IndexFunc bytes.LastIndexFunc bytes.ContainsFunc`,
	stdMutates: `
			slices.SortFunc slices.SortStableFunc slices.DeleteFunc slices.CompactFunc slices.AppendSeq
			maps.DeleteFunc maps.Insert sort.Slice sort.SliceStable`,
	stdGlobal: `math/rand.Shuffle`,
	stdRandom: `math/rand/v2.Shuffle`,
	stdSource: `(*math/rand.Rand).Shuffle (*math/rand/v2.Rand).Shuffle`,
})

// fresh are functions whose result is new memory.
var fresh = table(map[stdKind]string{stdPure: `
	bytes.Clone maps.Clone maps.Collect slices.Clone slices.Collect slices.Concat slices.Repeat slices.Sorted slices.SortedFunc
	strings.Fields strings.FieldsFunc strings.Split strings.SplitN strings.SplitAfter`})

// iterators are functions whose result can be ranged over without effects of
// its own.
var iterators = map[string]bool{
	"slices.All": true, "slices.Values": true, "slices.Backward": true, "slices.Chunk": true,
	"maps.All": true, "maps.Keys": true, "maps.Values": true,
	"strings.Lines": true, "strings.SplitSeq": true, "strings.FieldsSeq": true,
}
