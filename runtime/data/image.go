package data

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // the formats that are read
	_ "image/jpeg"
	_ "image/png"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
)

// maxPixels bounds the images that are decoded.
const maxPixels = 1 << 26

// maxPacked bounds the pixels that a byte of a file stands for: in a PNG, 1032 bytes of deflate with pixels of a bit;
// in a GIF, a run of all codes there are, of 12 bits; in a JPEG, a bit for each block of 64.
var maxPacked = map[string]int{"png": 8 * 1032, "gif": 4096, "jpeg": 512}

// ImageOptions say what images become. Each field may be zero.
type ImageOptions struct {
	// Height and Width are the size that images are resized to, bilinearly, with smoothing where they become smaller.
	// If both are 0, all images have to be of the size of the first one.
	Height, Width int
	// Gray makes one channel of brightness. Otherwise there are three: red, green, blue.
	Gray bool
}

// An Images is the [Dataset] of a folder of images; see [ImageFolder].
type Images[T uint8 | float32] struct {
	// Classes are the names of the folders, in order. Targets are indices of it.
	Classes []string

	files   fs.FS
	names   []string
	classes []int64
	options ImageOptions
	resize  bool
}

// ImageFolder returns the [Dataset] of the images in the folders at the root of files, one for each class, at whatever
// depth: the files whose names end in .png, .jpg, .jpeg or .gif. Symbolic links to files, and to the folders of
// classes, are followed, those to folders below are not. An input is channels × height × width of a uint8, or of a
// float32 from 0 to 1; a target is the number of a class. Transparency is left out, tags that turn a photo are not
// looked at, and of a GIF with several frames the first one is taken.
//
//	set, err := data.ImageFolder[uint8](os.DirFS("flowers"), data.ImageOptions{Height: 64, Width: 64})
//
// ImageFolder looks at the names and at the first image. The others are read and decoded when they are needed. An image
// that can't be decoded, of the wrong size, or of more than 67 million pixels, gives an error then, and so does one
// that is no regular file, or says that it has more pixels than its length can hold. ImageFolder panics with a
// [tensor.Mistake] if one of height and width is 0 and the other is not, or if one is negative.
//
//asyncgen:api control
func ImageFolder[T uint8 | float32](files fs.FS, options ...ImageOptions) (*Images[T], error) {
	o := only("ImageFolder", options)
	if o.Height < 0 || o.Width < 0 || (o.Height == 0) != (o.Width == 0) || size([]int{4, o.Height, o.Width}) < 0 {
		wrong("ImageFolder", "images of %d×%d pixels", o.Height, o.Width)
	}
	set := &Images[T]{files: files, options: o, resize: o.Height > 0}
	if err := set.find(); err != nil {
		return nil, fmt.Errorf("data: folder of images%s: %w", folder(files), err)
	}
	if !set.resize {
		config, file, err := set.open(0)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		file.Close()
		set.options.Height, set.options.Width = config.Height, config.Width
	}
	return set, nil
}

// folder is " " and the name of a folder that [os.DirFS] has made files of, which its errors don't have.
func folder(files fs.FS) string {
	if v := reflect.ValueOf(files); v.Kind() == reflect.String {
		return " " + v.String()
	}
	return ""
}

// find lists the files.
func (s *Images[T]) find() error {
	entries, err := fs.ReadDir(s.files, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := fs.Stat(s.files, e.Name()); err != nil || !info.IsDir() { // it may be a link, also to nothing
			continue
		}
		err := fs.WalkDir(s.files, e.Name(), func(name string, d fs.DirEntry, err error) error {
			ext := strings.ToLower(path.Ext(name))
			if err == nil && !d.IsDir() && slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif"}, ext) {
				s.names = append(s.names, name)
				s.classes = append(s.classes, int64(len(s.Classes)))
			}
			return err
		})
		if err != nil {
			return err
		}
		s.Classes = append(s.Classes, e.Name())
	}
	if len(s.names) == 0 {
		return errors.New("it has no folders with images")
	}
	return nil
}

// Len returns the number of images.
//
//asyncgen:api pure
func (s *Images[T]) Len() int { return len(s.names) }

// Shapes returns the shape of an image, and [].
//
//asyncgen:api pure
func (s *Images[T]) Shapes() (x, y []int) {
	if s.options.Gray {
		return []int{1, s.options.Height, s.options.Width}, nil
	}
	return []int{3, s.options.Height, s.options.Width}, nil
}

// Name returns the name of the file of image i.
//
//asyncgen:api pure
func (s *Images[T]) Name(i int) string { return s.names[i] }

// Class returns the class of image i.
//
//asyncgen:api pure
func (s *Images[T]) Class(i int) int { return int(s.classes[i]) }

// At writes image i to x, and its class to y.
//
//asyncgen:api control
func (s *Images[T]) At(i int, x []T, y []int64) error {
	_, file, err := s.open(i)
	if err != nil {
		return err
	}
	defer file.Close()
	m, _, err := image.Decode(file)
	if err == nil && m.Bounds().Empty() {
		err = errors.New("an image without pixels")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.names[i], err)
	}
	h, w := s.options.Height, s.options.Width
	b := m.Bounds()
	if !s.resize && (b.Dx() != w || b.Dy() != h) {
		return fmt.Errorf("%s: it has %d×%d pixels (height×width), and the first image has %d×%d", s.names[i], b.Dy(), b.Dx(), h, w)
	}
	channels := planes(m, s.options.Gray)
	for c, plane := range channels {
		plane = resized(plane, b.Dy(), b.Dx(), h, w)
		switch to := any(x[c*h*w : (c+1)*h*w]).(type) {
		case []uint8:
			copy(to, plane)
		case []float32:
			for i, v := range plane {
				to[i] = float32(v) / 255
			}
		}
	}
	y[0] = s.classes[i]
	return nil
}

// open opens the file of image i. It returns what its header says, if that is an image of reasonable size, and the
// whole file, which the caller closes.
func (s *Images[T]) open(i int) (image.Config, io.ReadCloser, error) {
	name := s.names[i]
	info, err := fs.Stat(s.files, name)
	if err != nil {
		return image.Config{}, nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe could wait for ever
		return image.Config{}, nil, fmt.Errorf("%s: it is no regular file", name)
	}
	f, err := s.files.Open(name)
	if err != nil {
		return image.Config{}, nil, err
	}
	var head bytes.Buffer
	config, format, err := image.DecodeConfig(io.TeeReader(f, &head))
	if n := size([]int{config.Height, config.Width}); err == nil && (n <= 0 || n > maxPixels) {
		err = fmt.Errorf("%d×%d pixels, want from 1 to %d", config.Height, config.Width, maxPixels)
	} else if most := maxPacked[format]; err == nil && most > 0 && int64(n/most) > info.Size() {
		err = fmt.Errorf("%d×%d pixels, which a file of %d bytes can't have", config.Height, config.Width, info.Size())
	}
	if err != nil {
		f.Close()
		return image.Config{}, nil, fmt.Errorf("%s: %w", name, err)
	}
	return config, struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&head, f), f}, nil
}

// planes returns the channels of m, one row after the other.
func planes(m image.Image, gray bool) [][]uint8 {
	b := m.Bounds()
	h, w := b.Dy(), b.Dx()
	if gray {
		plane := make([]uint8, h*w)
		for y := range h {
			row := plane[y*w : (y+1)*w]
			switch m := m.(type) {
			case *image.Gray:
				copy(row, m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):])
			case *image.YCbCr:
				copy(row, m.Y[m.YOffset(b.Min.X, b.Min.Y+y):])
			default:
				for x := range row {
					c := opaque(m.At(b.Min.X+x, b.Min.Y+y))
					row[x] = color.GrayModel.Convert(color.NRGBA{c.R, c.G, c.B, 255}).(color.Gray).Y
				}
			}
		}
		return [][]uint8{plane}
	}
	all := make([]uint8, 3*h*w)
	red, green, blue := all[:h*w], all[h*w:2*h*w], all[2*h*w:]
	at := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			switch m := m.(type) {
			case *image.YCbCr:
				c := m.YCbCrAt(x, y)
				red[at], green[at], blue[at] = color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
			case *image.NRGBA:
				i := m.PixOffset(x, y)
				red[at], green[at], blue[at] = m.Pix[i], m.Pix[i+1], m.Pix[i+2]
			case *image.Gray:
				v := m.GrayAt(x, y).Y
				red[at], green[at], blue[at] = v, v, v
			default:
				c := opaque(m.At(x, y))
				red[at], green[at], blue[at] = c.R, c.G, c.B
			}
			at++
		}
	}
	return [][]uint8{red, green, blue}
}

func opaque(c color.Color) color.NRGBA { return color.NRGBAModel.Convert(c).(color.NRGBA) }
