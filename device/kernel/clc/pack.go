package clc

import "github.com/asyncgen/asyncgen/device"

// packItems are the items of a group that copies a piece.
const packItems = 64

// What one launch of Pack takes.
const (
	PackMost   = 64   // pieces
	PieceMost  = 4096 // bytes of a piece
	PieceAlign = 64   // where a piece may begin in what they are packed into
)

// A Piece is some bytes that are copied to be read together with others.
type Piece struct {
	From  int64 // where they begin, in the memory that the kernel is given
	To    int64 // where they are copied to; a multiple of PieceAlign, less than 4 MiB
	Bytes int   // how many: at most PieceMost
}

var (
	packing  = device.NewKernel("pack", device.Copy, nil, device.Bool, device.Bool)
	packArgs = []Operand{{Buf, 0}, {Buf, 1}}
)

// PackSource is the source of the launches of Pack.
func PackSource() *Source {
	s, err := sourceOf(packing, form{}, printPack)
	if err != nil {
		panic(err) // printPack returns none
	}
	return s
}

// Pack appends a launch that copies pieces, PackMost at most, of memory that is its operand 1 to operand 0.
func (l *Lowering) Pack(pieces []Piece) {
	l.first = len(l.words)
	for i := range PackMost {
		from := uint64(0)
		if i < len(pieces) {
			from = uint64(pieces[i].From)
		}
		l.push(from)
	}
	for i := 0; i < PackMost; i += 2 {
		l.push(placeOf(pieces, i) | placeOf(pieces, i+1)<<32)
	}
	l.launch(PackSource(), packArgs, len(pieces), packItems)
}

// placeOf is where a piece goes, and its size, as the text has it.
func placeOf(pieces []Piece, i int) uint64 {
	if i >= len(pieces) {
		return 0
	}
	return uint64(pieces[i].To/PieceAlign<<16) | uint64(pieces[i].Bytes)
}

func printPack(p *program, _ *device.Kernel, _ form) error {
	p.define("PIECES", PackMost)
	p.words = PackMost + PackMost/2
	p.kernel("pack")
	return nil
}
