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
	// reads that are no slower packed than one by one (BenchmarkReads, PoCL: 64 take 16 µs instead of
	// 32, 8 the same)
	packLeast = 4
	readsWait = 2 * crossing // the work that the first read of a group waits for, that others may join it
)

// Reads are the small Downloads of a group, its pieces. To bring one to the host takes as long as
// to bring all of them, so they are packed: a kernel copies them side by side into a pack, memory
// of the device, and that comes to the host in one read. Where they go in the staging is one range,
// which looks like the pack:
//
//	pieces    0 ... open ... pending ... len
//	          read  packed   waiting
//
// They wait for each other until the group ends, or the piece of one is to be overwritten.
type reads struct {
	pieces  []piece
	open    int    // the first that no read brings yet
	pending int    // the first that is not packed yet
	into    *block // the pack of those that are open; nil: none is packed
	joint   []joint
	behind  uint64 // the work of commands behind the first piece
	next    []clc.Piece
	blocks  []*block
}

// A piece is a small Download.
type piece struct {
	owner   int
	block   *block
	at      int64  // where it begins in the memory object
	bytes   int64  // how many it has
	staged  []byte // where it goes, up to where the next piece may begin
	landing int    // that it belongs to
	isAside bool   // it was read by itself, see readInstead
}

// A joint is some pieces that calls belong to: the launches that pack them, or the read of the pack.
type joint struct {
	from, to int
	pack     *block // of the read
	first    uintptr
}

// jointly is the owner of calls for the first joint; for those behind it, the numbers go down.
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

// read adds the read of a block.
func (g *group) read(m *block, at, bytes int64, staged []byte) {
	before := g.b.needsOf(false, m)
	g.order(down, 1, uint64(bytes/8+launchWork), &before, false, m)
	g.add(cl.EnqueueReadBuffer, g.enter(down), uintptr(m.slab.mem), 0, uintptr(at), uintptr(bytes), addressOf(staged), 0, 0, 0)
}

// isSmall reports whether c, a Download, is one of a piece.
func isSmall(c *device.Command) bool {
	return int64(c.N) <= clc.PieceMost/int64(c.Kernel.Out.Size())
}

// goesOn reports whether the Downloads of g, the last command of which is one, should wait for what
// comes next, as there is another one not far behind, to be read together with them.
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

// save sees to it that pieces of m, which is about to be changed, are not.
func (g *group) save(m *block) {
	r := &g.reads
	for i := range r.pieces[r.pending:] {
		if r.pieces[r.pending+i].block == m {
			g.pack(compute)
			return
		}
	}
}

// finishReads adds what brings the pieces that are open.
func (g *group) finishReads() {
	r := &g.reads
	if r.into == nil && (len(r.pieces)-r.open < packLeast || g.b.packFails) {
		g.readSingly()
		return
	}
	g.pack(down)
	g.readPack()
}

// readSingly adds a read for each piece that is waiting.
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

// pack adds the launches that pack the pieces that are waiting, to queue down or to one that
// computes. If that is not possible, it has them read by themselves.
func (g *group) pack(where queueIndex) {
	r := &g.reads
	if r.pending == len(r.pieces) {
		return
	}
	if !g.b.isCompiled(g.b.packing) {
		g.readSingly()
	} else if err := g.tryPack(where); err != nil {
		g.b.packFails = !errors.Is(err, device.ErrOutOfMemory) // or else again and again
		g.readPack()
		g.readSingly()
	}
}

// tryPack is pack. If it returns an error, nothing was added.
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
	var sources [maxCommands]*block // of each launch, one in the memory object
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

// readPack adds the read that brings the pieces that are packed, if there are some.
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

// nextPack is the pack whose turn it is.
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

// readInstead reads each piece of j by itself, as the calls of j can't be made: those before them
// are, and those behind them are not yet. It waits for all that is enqueued, so that who overwrites
// a piece later need not. An error says that the device is lost.
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
		g.landings[p.landing].from, p.isAside = data, true // a pack that is read later has something else in its place
	}
	return nil
}
