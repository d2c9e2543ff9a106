package opencl

import (
	"errors"
	"fmt"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

const (
	packBytes = maxCommands * clc.PieceMost
	packsMost = 4 // packs of a device, used in turn
	// Fewer reads than this are not packed. So many are no slower packed than one by one
	// (BenchmarkReads on PoCL: 64 take 16 µs instead of 32, 8 take the same).
	packLeast = 4
	readsWait = 2 * crossing // work that the first read of a group waits for, so that others may join it
)

// Reads are the small Downloads of a group, its pieces. Bringing one piece to the host takes as
// long as bringing all, so pieces are packed: a kernel copies them side by side into a pack, a
// block of device memory, and one read brings the pack to the host. Their places in the staging are
// one contiguous range with the same layout as the pack:
//
//	pieces    0 ... open ... pending ... len
//	          read  packed   waiting
//
// Waiting pieces are packed when a command is about to overwrite one of them, or when the group is
// sealed.
type reads struct {
	pieces  []piece
	open    int    // the first piece without a read
	pending int    // the first piece that is not packed
	into    *block // the pack of the pieces open to pending; nil: none is packed
	joint   []joint
	behind  uint64      // the work of commands after the first piece
	next    []clc.Piece // reused by tryPack
	blocks  []*block    // reused by tryPack
}

// A piece is a small Download.
type piece struct {
	owner   int
	block   *block
	at      int64 // where it begins in the memory object
	bytes   int64
	staged  []byte // its place in the staging, up to where the next piece may begin
	landing int    // its index in the landings of the group
	isAside bool   // it was read by itself, see readInstead
}

// A joint is a range of pieces that share calls: the launches that pack them, or the read of their
// pack.
type joint struct {
	from, to int     // pieces from to to-1
	pack     *block  // nil: the calls are launches
	first    uintptr // the place in the staging of the first byte of the pack
}

// jointly is the owner of the calls of joint 0; that of joint i is jointly - i.
const jointly = ownerless - 1

func (r *reads) clear() {
	clear(r.pieces)
	clear(r.joint)
	*r = reads{pieces: r.pieces[:0], joint: r.joint[:0], next: r.next, blocks: r.blocks}
}

// download adds a Download.
func (g *group) download(c *device.Command) error {
	m, at, bytes, err := g.b.deviceSide(c, 1)
	if err != nil {
		return err
	}
	to, err := hostBytes(c, 0, c.Kernel.Out)
	if err != nil || bytes == 0 {
		return err
	}
	if bytes <= clc.PieceMost && len(g.reads.pieces) >= packLeast-1 && !g.b.packFails && !g.b.isCompiled(g.b.packing) {
		return &newSource{g.b.packing, down}
	}
	staged, err := g.host(down, len(to))
	if err != nil {
		return err
	}
	g.landings = append(g.landings, landing{g.size(), to, staged[:len(to)]})
	if bytes > clc.PieceMost {
		g.read(m, at, bytes, staged)
		return nil
	}
	r := &g.reads
	if n := len(r.pieces); n > r.open && addressOf(r.pieces[n-1].staged)+uintptr(len(r.pieces[n-1].staged)) != addressOf(staged) {
		g.finishReads()
	}
	r.pieces = append(r.pieces, piece{owner: g.owner, block: m, at: at, bytes: bytes, staged: staged, landing: len(g.landings) - 1})
	return nil
}

// read adds a read of a part of a block.
func (g *group) read(m *block, at, bytes int64, staged []byte) {
	before := g.b.needsOf(false, m)
	g.order(down, 1, uint64(bytes/8+launchWork), &before, false, m)
	g.add(cl.EnqueueReadBuffer, g.enter(down), uintptr(m.slab.mem), 0, uintptr(at), uintptr(bytes), addressOf(staged), 0, 0, 0)
}

// isSmall reports whether c, a Download, is small enough to be a piece.
func isSmall(c *device.Command) bool {
	return int64(c.N) <= clc.PieceMost/int64(c.Kernel.Out.Size())
}

// goesOn reports whether the next commands should join g, whose last command is a Download. It is
// so if they include another small Download with little work before it: both are then read
// together.
func (g *group) goesOn(next []device.Command) bool {
	r := &g.reads
	if len(r.pieces) == 0 || len(g.landings) != len(r.pieces) || g.b.packFails {
		return false
	}
	work := r.behind
	for i := range min(len(next), maxCommands-g.size()) {
		c := &next[i]
		if isDownload(c) {
			r.behind = work
			return isSmall(c)
		}
		if work += workOf(c, 1); work > readsWait {
			return false
		}
	}
	return false
}

// save packs the waiting pieces if m, which is about to be overwritten, has one of them.
func (g *group) save(m *block) {
	r := &g.reads
	for i := range r.pieces[r.pending:] {
		if r.pieces[r.pending+i].block == m {
			g.pack(compute)
			return
		}
	}
}

// finishReads adds the calls that bring all pieces without a read to the host.
func (g *group) finishReads() {
	r := &g.reads
	if r.into == nil && (len(r.pieces)-r.open < packLeast || g.b.packFails) {
		g.readSingly()
		return
	}
	g.pack(down)
	g.readPack()
}

// readSingly adds a read for each waiting piece.
func (g *group) readSingly() {
	r := &g.reads
	defer g.restoreOwner(g.owner)
	for _, p := range r.pieces[r.pending:] {
		g.owner = p.owner
		g.read(p.block, p.at, p.bytes, p.staged)
	}
	r.pending, r.open = len(r.pieces), len(r.pieces)
}

func (g *group) restoreOwner(owner int) { g.owner = owner }

// pack packs the waiting pieces, in queue down or, if where is compute, in a compute queue. If that
// is not possible, it adds a read for each.
func (g *group) pack(where queueIndex) {
	r := &g.reads
	if r.pending == len(r.pieces) {
		return
	}
	if !g.b.isCompiled(g.b.packing) {
		g.readSingly()
	} else if err := g.tryPack(where); err != nil {
		g.b.packFails = !errors.Is(err, device.ErrOutOfMemory) // if out of memory, try again next time
		g.readPack()
		g.readSingly()
	}
}

// tryPack is pack without the fallback. If it returns an error, no call was added.
func (g *group) tryPack(q queueIndex) (err error) {
	b, r := g.b, &g.reads
	into := r.into
	if into == nil {
		if into, err = b.nextPack(); err != nil {
			return err
		}
	}
	start := r.open
	used := append(r.blocks[:0], into)
	for _, p := range r.pieces[r.pending:] {
		used = append(used, p.block)
	}
	r.blocks = used[:0]
	before := b.needsOf(true, used...)
	if q != down {
		q = b.choose(&before)
	}
	from, first := len(g.lowering.Launches), addressOf(r.pieces[start].staged)
	var sources [maxCommands]*block // for each launch, a block of the memory object that it reads
	for i := r.pending; i < len(r.pieces); i++ {
		m := r.pieces[i].block
		n := len(g.lowering.Launches) - from
		if isOf(sources[:n], m.slab) {
			continue
		}
		next := r.next[:0]
		for _, p := range r.pieces[i:] {
			if p.block.slab == m.slab {
				next = append(next, clc.Piece{From: p.at, To: int64(addressOf(p.staged) - first), Bytes: int(p.bytes)})
			}
		}
		r.next, sources[n] = next, m
		g.lowering.Pack(next)
	}
	launches := g.lowering.Launches[from:]
	if _, err := b.kernel(launches[0].Source, q); err != nil {
		return err
	}
	defer g.restoreOwner(g.owner)
	g.owner = jointly - len(r.joint)
	r.joint = append(r.joint, joint{from: r.pending, to: len(r.pieces)})
	g.order(q, len(launches), uint64(len(launches)*launchWork), &before, true, used...)
	for i := range launches {
		g.launch(q, &launches[i], &[device.MaxOperands]*block{into, sources[i]})
	}
	r.into, r.pending = into, len(r.pieces)
	return nil
}

// isOf reports whether one of the blocks is in s.
func isOf(blocks []*block, s *slab) bool {
	for _, m := range blocks {
		if m.slab == s {
			return true
		}
	}
	return false
}

// readPack adds the read of the packed pieces, if there are any.
func (g *group) readPack() {
	r := &g.reads
	if r.into == nil {
		return
	}
	defer g.restoreOwner(g.owner)
	g.owner = jointly - len(r.joint)
	first, last := &r.pieces[r.open], &r.pieces[r.pending-1]
	start := addressOf(first.staged)
	r.joint = append(r.joint, joint{from: r.open, to: r.pending, pack: r.into, first: start})
	g.read(r.into, 0, int64(addressOf(last.staged)-start)+last.bytes, first.staged)
	r.open, r.into = r.pending, nil
}

// nextPack returns the next pack in turn.
func (b *Backend) nextPack() (*block, error) {
	i := b.packed % packsMost
	if b.packs[i] == nil {
		s := new(slab)
		if err := s.createOrTrim(b, packBytes); err != nil {
			return nil, err
		}
		b.packs[i] = &block{owner: b, slab: s}
	}
	b.packed++
	return b.packs[i], nil
}

// readInstead reads each piece of j by itself, because a call of j has failed. Calls before those
// of j have been made, later ones have not. readInstead waits until all queues are empty, so later
// calls may overwrite the pieces. An error says that the device is lost.
func (g *group) readInstead(j *joint) error {
	b := g.b
	if err := b.finish(); err != nil {
		return err
	}
	for i := j.from; i < j.to; i++ {
		p := &g.reads.pieces[i]
		mem, at := p.block.slab.mem, p.at
		if j.pack != nil {
			mem, at = j.pack.slab.mem, int64(addressOf(p.staged)-j.first)
		}
		if p.isAside {
			continue
		}
		data, address := g.arena.Bytes(int(p.bytes))
		err := b.driver.Read(b.queues[down].handle, mem, at, p.bytes, address)
		if errors.Is(err, device.ErrLost) {
			return err
		}
		if err != nil {
			g.fail(p.owner, fmt.Errorf("opencl: %w", err))
		}
		g.landings[p.landing].from, p.isAside = data, true // a later read of the pack does not contain this piece
	}
	return nil
}
