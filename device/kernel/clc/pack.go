package clc

import "github.com/asyncgen/asyncgen/device"

// packItems is how many work items copy a piece.
const packItems = 64

// The limits of Pack.
const (
	PackMost   = 64   // most pieces of a launch
	PieceMost  = 4096 // most bytes of a piece
	PieceAlign = 64   // a piece is packed at a multiple of this
)

// A Piece is a range of bytes. Pieces are packed together so that one read brings all of them.
type Piece struct {
	From  int64 // its offset in operand 1
	To    int64 // its offset in operand 0: a multiple of PieceAlign, less than 4 MiB
	Bytes int   // at most PieceMost
}

var (
	packing  = device.NewKernel("pack", device.Copy, nil, device.Bool, device.Bool)
	packArgs = []Operand{{Buf, 0}, {Buf, 1}}
)

// PackSource returns the Source of the launches of Pack.
func PackSource() *Source {
	s, err := sourceOf(packing, form{}, printPack)
	if err != nil {
		panic(err) // printPack returns none
	}
	return s
}

// Pack appends a launch that copies at most PackMost pieces from operand 1 to operand 0.
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

// placeOf returns piece i's To, in units of PieceAlign, in the high 16 of 32 bits, and its length in
// the low 16. It returns 0 if there is no such piece.
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
