package data_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/asyncgen/asyncgen/runtime/data"
)

// TestResize: planes are resized as PyTorch does it. See testdata/resize.py.
func TestResize(t *testing.T) {
	text, err := os.ReadFile("testdata/resize.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		From, To [2]int
		Plane    []int
		Want     []float64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		plane := make([]uint8, len(c.Plane))
		for i, v := range c.Plane {
			plane[i] = uint8(v)
		}
		got := data.Resized(plane, c.From[0], c.From[1], c.To[0], c.To[1])
		for i, v := range got {
			if len(got) != len(c.Want) || math.Abs(float64(v)-c.Want[i]) > 0.502 {
				t.Errorf("%v to %v: pixel %d is %d, want about %v", c.From, c.To, i, v, c.Want[i])
			}
		}
	}
}

// picture is an image of h×w pixels, each with another colour.
func picture(h, w int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(3, 5, 3+w, 5+h)) // which need not begin at 0
	for y := range h {
		for x := range w {
			m.SetNRGBA(3+x, 5+y, color.NRGBA{uint8(10 * x), uint8(10 * y), uint8(10 * (x + y)), uint8(255 - x)})
		}
	}
	return m
}

func encoded(t *testing.T, m image.Image, encode func(*bytes.Buffer, image.Image) error) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func asPNG(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) }
func asGIF(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) }
func asJPEG(b *bytes.Buffer, m image.Image) error {
	return jpeg.Encode(b, m, &jpeg.Options{Quality: 100})
}

// Images of all kinds become planes of the colours that package image says they have.
func TestImages(t *testing.T) {
	const h, w = 4, 6
	m := picture(h, w)
	b := m.Bounds()
	gray, paletted := image.NewGray(b), image.NewPaletted(b, color.Palette{color.Black, color.White, color.NRGBA{9, 8, 7, 255}})
	deep, premultiplied := image.NewNRGBA64(b), image.NewRGBA(b)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := m.NRGBAAt(x, y)
			c.A = 255
			gray.Set(x, y, c)
			paletted.SetColorIndex(x, y, uint8(x+y)%3)
			deep.SetNRGBA64(x, y, color.NRGBA64{uint16(c.R)<<8 | 7, uint16(c.G) << 8, 0x1234, 0xffff})
			premultiplied.Set(x, y, c)
		}
	}
	files := fstest.MapFS{
		"b/NRGBA.png":       encoded(t, m, asPNG),
		"a/gray.png":        encoded(t, gray, asPNG),
		"a/more/deep.PNG":   encoded(t, deep, asPNG),
		"a/rgba.png":        encoded(t, premultiplied, asPNG),
		"c/palette.gif":     encoded(t, paletted, asGIF),
		"c/photo.jpeg":      encoded(t, premultiplied, asJPEG),
		"c/graphoto.jpg":    encoded(t, gray, asJPEG),
		"c/notes.txt":       {Data: []byte("no image")},
		"top.png":           {Data: []byte("of no class")},
		"empty/nothing.txt": {},
	}
	for _, isGray := range []bool{false, true} {
		bytes8, err := data.ImageFolder[uint8](files, data.ImageOptions{Gray: isGray})
		if err != nil {
			t.Fatal(err)
		}
		floats, err := data.ImageFolder[float32](files, data.ImageOptions{Gray: isGray})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"a", "b", "c", "empty"}; !slices.Equal(bytes8.Classes, want) || bytes8.Len() != 7 {
			t.Fatalf("%d images of the classes %q, want 7 of %q", bytes8.Len(), bytes8.Classes, want)
		}
		shape, target := bytes8.Shapes()
		channels := 3
		if isGray {
			channels = 1
		}
		if !slices.Equal(shape, []int{channels, h, w}) || len(target) != 0 {
			t.Fatalf("shapes %v and %v", shape, target)
		}
		for i := range bytes8.Len() {
			name := bytes8.Name(i)
			x, f, y := make([]uint8, channels*h*w), make([]float32, channels*h*w), make([]int64, 1)
			if err := bytes8.At(i, x, y); err != nil {
				t.Fatal(err)
			}
			if err := floats.At(i, f, y); err != nil {
				t.Fatal(err)
			}
			if class := bytes8.Classes[bytes8.Class(i)]; int(y[0]) != bytes8.Class(i) || !strings.HasPrefix(name, class+"/") {
				t.Errorf("%s is of class %s, %d", name, class, y[0])
			}
			m, _, err := image.Decode(bytes.NewReader(files[name].Data))
			if err != nil {
				t.Fatal(err)
			}
			for p := range h * w {
				at := m.At(m.Bounds().Min.X+p%w, m.Bounds().Min.Y+p/w)
				c := color.NRGBAModel.Convert(at).(color.NRGBA)
				want := []uint8{c.R, c.G, c.B}
				if isGray {
					c.A = 255
					want = []uint8{color.GrayModel.Convert(c).(color.Gray).Y}
				}
				for k, v := range want {
					got := x[k*h*w+p]
					if d := int(got) - int(v); d < -1 || d > 1 || d != 0 && !(isGray && strings.HasSuffix(name, "jpeg")) {
						t.Errorf("%s, gray %v: channel %d of pixel %d is %d, want %d", name, isGray, k, p, got, v)
					}
					if f[k*h*w+p] != float32(got)/255 {
						t.Errorf("%s: channel %d of pixel %d is %v of %d", name, k, p, f[k*h*w+p], got)
					}
				}
			}
		}
	}

	small, err := data.ImageFolder[uint8](files, data.ImageOptions{Height: 2, Width: 3})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for b, err := range data.NewLoader(small, 7).All() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; !slices.Equal(b.X.Shape(), []int{7, 3, 2, 3}) {
			t.Errorf("shape %v", b.X.Shape())
		}
	}
	if n != 1 {
		t.Errorf("%d batches", n)
	}
}

// Images that can't be had give an error with their name, huge ones before they are decoded.
func TestWrongImages(t *testing.T) {
	good := encoded(t, picture(4, 6), asPNG)
	huge := slices.Clone(good.Data)
	binary.BigEndian.PutUint32(huge[16:], 1<<13)
	binary.BigEndian.PutUint32(huge[20:], 1<<14)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	deep := encoded(t, image.NewNRGBA64(image.Rect(0, 0, 1, 1)), asPNG)
	wide := slices.Clone(deep.Data)
	binary.BigEndian.PutUint32(wide[16:], 8000)
	binary.BigEndian.PutUint32(wide[20:], 8000)
	binary.BigEndian.PutUint32(wide[29:], crc32.ChecksumIEEE(wide[12:29]))
	photo := encoded(t, image.NewRGBA(image.Rect(0, 0, 8, 8)), asJPEG).Data
	copy(photo[bytes.Index(photo, []byte{0xff, 0xc0})+5:], []byte{0x1f, 0x40, 0x1f, 0x40})
	frame := encoded(t, image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.Black, color.White}), asGIF).Data
	for _, at := range []int{6, 8, 13 + bytes.IndexByte(frame[13:], 0x2c) + 5, 13 + bytes.IndexByte(frame[13:], 0x2c) + 7} {
		binary.LittleEndian.PutUint16(frame[at:], 8000)
	}
	photo = append(photo, make([]byte, 100_000)...) // 64 million pixels take more
	cannot := "8000×8000 pixels, which a file of "
	for text, file := range map[string]*fstest.MapFile{
		cannot + strconv.Itoa(len(wide)):  {Data: wide},
		cannot + strconv.Itoa(len(photo)): {Data: photo},
		cannot + strconv.Itoa(len(frame)): {Data: frame},
		"no regular file":                 {Data: good.Data, Mode: fs.ModeNamedPipe},
		"unknown format":                  {Data: []byte("no image")},
		"not enough pixel data":           {Data: good.Data[:len(good.Data)/2]},
		"EOF":                             {Data: good.Data[:20]},
		"16384×8192 pixels, want ":        {Data: huge},
		"the first image has 4×6":         encoded(t, picture(6, 4), asPNG),
	} {
		set, err := data.ImageFolder[uint8](fstest.MapFS{"a/1.png": good, "a/2.png": file})
		if err != nil {
			t.Fatal(err)
		}
		x, y := set.Shapes()
		if len(x) != 3 || len(y) != 0 {
			t.Fatal(x, y)
		}
		took := allocated(func() { err = set.At(1, make([]uint8, 72), make([]int64, 1)) })
		if err == nil || !strings.Contains(err.Error(), "a/2.png") || !strings.Contains(err.Error(), text) || took > 1<<20 {
			t.Errorf("%v with %d bytes, want %s", err, took, text)
		}
		if text == "the first image has 4×6" {
			continue
		}
		if _, err := data.ImageFolder[uint8](fstest.MapFS{"a/1.png": file}); text != "not enough pixel data" && (err == nil || !strings.Contains(err.Error(), "a/1.png")) {
			t.Errorf("as the first image: %v", err)
		}
	}
	for _, files := range []fstest.MapFS{{}, {"1.png": good}, {"a/1.txt": good}} {
		if _, err := data.ImageFolder[uint8](files); err == nil {
			t.Errorf("%v is a folder of images", files)
		}
	}
	if _, err := data.ImageFolder[uint8](os.DirFS("testdata/nowhere")); err == nil || !strings.HasPrefix(err.Error(), "data: folder of images testdata/nowhere: ") {
		t.Errorf("no folder: %v", err)
	}
	mistake(t, "ImageFolder", func() { _, _ = data.ImageFolder[uint8](fstest.MapFS{}, data.ImageOptions{Width: 1}) })
	mistake(t, "ImageFolder", func() { _, _ = data.ImageFolder[uint8](fstest.MapFS{}, data.ImageOptions{Width: -1, Height: -1}) })
}

// A long thin image takes the memory of what it becomes, beside its own.
func TestThinImage(t *testing.T) {
	const long = 1 << 18
	set, err := data.ImageFolder[uint8](fstest.MapFS{"a/1.png": encoded(t, image.NewGray(image.Rect(0, 0, 1, long)), asPNG)},
		data.ImageOptions{Height: 2, Width: 256})
	if err != nil {
		t.Fatal(err)
	}
	took := allocated(func() { err = set.At(0, make([]uint8, 3*2*256), make([]int64, 1)) })
	if err != nil || took > 50*long {
		t.Errorf("%v with %d bytes for %d pixels", err, took, long)
	}
}

// Links to folders of classes and to images are followed, and links to nothing are no classes.
func TestLinkedImages(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, err := range []error{
		os.MkdirAll(at("real"), 0o777), os.MkdirAll(at("set/b"), 0o777),
		os.WriteFile(at("real/1.png"), encoded(t, picture(2, 3), asPNG).Data, 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"set/a": "real", "set/b/2.png": "real/1.png", "set/c": "nowhere"} {
		if err := os.Symlink(at(to), at(from)); err != nil {
			t.Skip(err)
		}
	}
	set, err := data.ImageFolder[uint8](os.DirFS(at("set")))
	if err != nil || !slices.Equal(set.Classes, []string{"a", "b"}) || set.Len() != 2 {
		t.Fatalf("%d images of %q, %v, want 2 of a and b", set.Len(), set.Classes, err)
	}
	for i := range 2 {
		if err := set.At(i, make([]uint8, 18), make([]int64, 1)); err != nil || set.Class(i) != i {
			t.Errorf("image %d of class %d: %v", i, set.Class(i), err)
		}
	}
}

// A counting file system knows how many files are open.
type counting struct {
	fs.FS
	open int
}

func (c *counting) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err == nil {
		c.open++
		f = &countedFile{f, c}
	}
	return f, err
}

func (c *counting) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(c.FS, name) }

type countedFile struct {
	fs.File
	of *counting
}

func (f *countedFile) Close() error {
	f.of.open--
	return f.File.Close()
}

// Files of images are closed, whatever they have.
func TestFilesAreClosed(t *testing.T) {
	good := encoded(t, picture(4, 6), asPNG)
	files := &counting{FS: fstest.MapFS{"a/1.png": good, "a/2.png": {Data: []byte("no image")}, "a/3.png": {Data: good.Data[:len(good.Data)/2]}}}
	set, err := data.ImageFolder[uint8](files)
	if err != nil {
		t.Fatal(err)
	}
	for i := range set.Len() {
		if err := set.At(i, make([]uint8, 72), make([]int64, 1)); (err == nil) != (i == 0) {
			t.Errorf("image %d: %v", i, err)
		}
	}
	if files.open != 0 {
		t.Errorf("%d files are open", files.open)
	}
}
