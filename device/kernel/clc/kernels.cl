// The kernels of all codes but Map. Each begins at its //// line. A group is a work group, an item a work item. The
// printed program defines macros for whatever differs from one use of a kernel to the next:
//
//	T, I          the type of elements, and the type of element counts: uint or ulong
//	P_NAME        a word of the parameters
//	OP, IDENTITY  a reducer
//
// ag_locate_NAME(i, &p, &x, ...) adds to each x the offset of element i of the view NAME from the view's first
// element.

//// reduce
// A row of LEN elements has BLOCKS blocks of 4096 elements, the last may be shorter. Each result is the fold of a
// block. A group of ITEMS items computes TOGETHER results with WIDTH lanes each; ITEMS/TOGETHER items share the
// lanes of a result. With COLUMNS, neighbouring items compute neighbouring results, otherwise neighbouring lanes.
// BEGIN locates the row in the INPUTS, LOCATE the element k in the row. TAKE(acc) combines acc with the expression
// of the inputs there.
AG_KERNEL AG_SIZE(ITEMS) void ag_reduce(AG_GLOBAL T *out, INPUTS, ag_params p)
{
	AG_LOCAL T lanes[MOST];
	const uint t = AG_LOCAL_ID, together = (uint)P_TOGETHER, width = (uint)P_WIDTH, spread = ITEMS / together;
	const uint mine = P_COLUMNS ? t % together : t / spread, lane = P_COLUMNS ? t / together : t % spread;
	const ulong i = AG_GROUP * together + mine;
	if (i < P_N) {
		const ulong row = i / P_BLOCKS, begin = P_BLOCKS > 1 ? i % P_BLOCKS * 4096 : 0;
		const ulong end = P_LEN - begin < 4096 ? P_LEN : begin + 4096;
		BEGIN
		for (uint l = lane; l < width; l += spread) {
			T acc = IDENTITY;
			for (ulong k = begin + l; k < end; k += width) {
				LOCATE
				TAKE(acc)
			}
			lanes[l * together + mine] = acc;
		}
	}
	AG_BARRIER;
	for (uint halved = width / 2; halved > 0; halved /= 2) {
		if (i < P_N)
			for (uint l = lane; l < halved; l += spread)
				lanes[l * together + mine] = OP(lanes[l * together + mine], lanes[(l + halved) * together + mine]);
		AG_BARRIER;
	}
	if (lane == 0 && i < P_N) out[P_OUT + i] = lanes[mine];
}

//// tree
// A group combines the results of a row's BLOCKS blocks in neighbouring pairs, from one scratch buffer to the other
// and back.
AG_KERNEL AG_SIZE(256) void ag_tree(AG_GLOBAL T *out, AG_GLOBAL T *blocks, AG_GLOBAL T *others, ag_params p)
{
	const uint t = AG_LOCAL_ID;
	AG_GLOBAL T *from = blocks + AG_GROUP * P_BLOCKS, *to = others + AG_GROUP * ((P_BLOCKS + 1) / 2);
	for (ulong n = P_BLOCKS; n > 1; n = (n + 1) / 2) {
		for (ulong j = t; j < n / 2; j += 256) to[j] = OP(from[2 * j], from[2 * j + 1]);
		if (t == 0 && n % 2 == 1) to[n / 2] = from[n - 1];
		AG_GLOBAL T *next = from;
		from = to;
		to = next;
		AG_BARRIER_GLOBAL;
	}
	if (t == 0) out[P_OUT + AG_GROUP] = from[0];
}

//// argreduce
// BETTER(x, y) says whether x replaces the best element so far, y, which precedes it in the row. If ALONE, an item
// computes a result, otherwise a group.
AG_KERNEL AG_SIZE(256) void ag_argreduce(AG_GLOBAL long *out, AG_GLOBAL const T *in, ag_params p)
{
	const uint t = AG_LOCAL_ID;
#if ALONE
	const ulong i = AG_GROUP * 256 + t;
	if (i >= P_N) return;
	const ulong begin = 0, step = 1;
#else
	AG_LOCAL T values[256];
	AG_LOCAL long places[256];
	const ulong i = AG_GROUP, begin = t, step = 256;
#endif
	long base = P_IN, place = -1;
	ag_locate_kept((I)i, &p, &base);
	T best = 0;
	for (ulong k = begin; k < P_LEN; k += step) {
		long at = base;
		ag_locate_folded((I)k, &p, &at);
		const T x = in[at];
		if (place < 0 || BETTER(x, best)) {
			best = x;
			place = (long)k;
		}
	}
#if !ALONE
	values[t] = best;
	places[t] = place;
	AG_BARRIER;
	for (uint halved = 128; halved > 0; halved /= 2) {
		if (t < halved) {
			const T x = values[t + halved];
			const long at = places[t + halved];
			if (at >= 0 && (place < 0 || BETTER(x, best) || (at < place && !BETTER(best, x)))) {
				best = values[t] = x;
				place = places[t] = at;
			}
		}
		AG_BARRIER;
	}
	if (t > 0) return;
#endif
	out[P_OUT + i] = place;
}

//// scan
// An item scans a row.
AG_KERNEL AG_SIZE(256) void ag_scan(AG_GLOBAL T *out, AG_GLOBAL const T *in, ag_params p)
{
	for (ulong i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) {
		long from = P_IN, to = P_OUT;
		ag_locate_kept((I)i, &p, &from, &to);
		T acc = IDENTITY;
		for (ulong j = 0; j < P_LEN; j++) {
			long at = from, there = to;
			ag_locate_folded((I)(P_BACK ? P_LEN - 1 - j : j), &p, &at, &there);
			acc = OP(acc, in[at]);
			out[there] = acc;
		}
	}
}

//// scanrow
// A group scans a row. It loads CHUNK elements at a time into local memory, where one item scans them in order.
AG_KERNEL AG_SIZE(256) void ag_scanrow(AG_GLOBAL T *out, AG_GLOBAL const T *in, ag_params p)
{
	AG_LOCAL T chunk[CHUNK];
	const uint t = AG_LOCAL_ID;
	long from = P_IN, to = P_OUT;
	ag_locate_kept((I)AG_GROUP, &p, &from, &to);
	T acc = IDENTITY;
	for (ulong first = 0; first < P_LEN; first += CHUNK) {
		const uint n = P_LEN - first < CHUNK ? (uint)(P_LEN - first) : CHUNK;
		for (uint e = t; e < n; e += 256) {
			long at = from, there = to;
			ag_locate_folded((I)(P_BACK ? P_LEN - 1 - first - e : first + e), &p, &at, &there);
			chunk[e] = in[at];
		}
		AG_BARRIER;
		if (t == 0)
			for (uint e = 0; e < n; e++) chunk[e] = acc = OP(acc, chunk[e]);
		AG_BARRIER;
		for (uint e = t; e < n; e += 256) {
			long at = from, there = to;
			ag_locate_folded((I)(P_BACK ? P_LEN - 1 - first - e : first + e), &p, &at, &there);
			out[there] = chunk[e];
		}
		AG_BARRIER;
	}
}

//// rows
// A group computes a row. It folds several blocks of 4096 elements at a time, with 64 lanes each. FOLD sets RESULT
// to the fold of VALUE, an expression of x, the element k of the row. held is a stack of folds of 2**i blocks each.
// Two folds of the same size are combined at once, like a carry in a binary counter.
#define FOLD(RESULT, OP, IDENTITY, VALUE)                                                    \
	for (ulong first = 0, count = 0; first < P_LEN; first += 4096 * blocks) {                \
		const ulong begin = first + t / 64 * 4096, end = begin + 4096 < P_LEN ? begin + 4096 : P_LEN; \
		T acc = IDENTITY;                                                                    \
		for (ulong k = begin + t % 64; k < end; k += 64) {                                   \
			long at = from;                                                                  \
			ag_locate_row((I)k, &p, &at, &nowhere, &nowhere, &nowhere);                      \
			const T x = in[at];                                                              \
			acc = OP(acc, VALUE);                                                            \
		}                                                                                    \
		lanes[t] = acc;                                                                      \
		AG_BARRIER;                                                                          \
		for (uint halved = 32; halved > 0; halved /= 2) {                                          \
			if (t % 64 < halved) lanes[t] = OP(lanes[t], lanes[t + halved]);                     \
			AG_BARRIER;                                                                      \
		}                                                                                    \
		if (t == 0) {                                                                        \
			for (uint b = 0; b < blocks && first + b * 4096 < P_LEN; b++) {                  \
				held[height++] = lanes[64 * b];                                              \
				for (ulong n = ++count; n % 2 == 0; n /= 2) {                                \
					height--;                                                                \
					held[height - 1] = OP(held[height - 1], held[height]);                   \
				}                                                                            \
			}                                                                                \
		}                                                                                    \
		AG_BARRIER;                                                                          \
	}                                                                                        \
	if (t == 0) {                                                                            \
		for (; height > 1; height--) held[height - 2] = OP(held[height - 2], held[height - 1]); \
		height = 0;                                                                          \
	}                                                                                        \
	AG_BARRIER;                                                                              \
	const T RESULT = held[0];                                                                \
	AG_BARRIER;

AG_KERNEL void ag_rows(AG_GLOBAL T *out, AG_GLOBAL const T *in, AG_GLOBAL const T *gain, AG_GLOBAL const T *bias, ag_params p)
{
	AG_LOCAL T lanes[MOST];
	AG_LOCAL T held[64];
	const uint t = AG_LOCAL_ID, size = AG_LOCAL_SIZE, blocks = size / 64;
	uint height = 0;
	long from = P_IN, to = P_OUT, nowhere = 0;
	ag_locate_kept((I)AG_GROUP, &p, &from, &to);
#if SOFTMAX || LOGSOFTMAX
	FOLD(greatest, MAX, LEAST, x)
	const T shift = ABS(greatest) < INFINITE ? greatest : (T)0;
	FOLD(sum, ADD, (T)0, EXP(x - shift))
#if LOGSOFTMAX
	const T logOfSum = LOG(sum);
#define RESULT(x) ((x - shift) - logOfSum)
#else
#define RESULT(x) (EXP(x - shift) / sum)
#endif
#else
#if LAYERNORM
	FOLD(total, ADD, (T)0, x)
	const T mean = total / (T)P_LEN;
#define CENTRED(x) (x - mean)
#else
#define CENTRED(x) x
#endif
	FOLD(squares, ADD, (T)0, CENTRED(x) * CENTRED(x))
	const T average = squares / (T)P_LEN;
	const T scale = (T)1 / SQRT(average + EPS);
#define RESULT(x) (CENTRED(x) * scale)
#endif
	for (ulong k = t; k < P_LEN; k += size) {
		long at = from, there = to, g = P_GAIN, b = P_BIAS;
		ag_locate_row((I)k, &p, &at, &there, &g, &b);
		const T x = in[at];
		T y = RESULT(x);
		if (P_INPUTS > 1) y = y * gain[g];
		if (P_INPUTS > 2) y = y + bias[b];
		out[there] = y;
	}
}

//// matmul
// A group computes a tile of TILE x TILE elements, an item TILE/16 x TILE/16 of them. Neighbouring items load
// neighbours in memory. Local memory holds DEPTH steps of k at a time. The sums continue from one such slice to the
// next, and end at the last k: adding zeros beyond it could turn -0 into 0. STORE applies the kernel's expression
// and stores the result.
AG_KERNEL AG_SIZE(256) void ag_matmul(AG_GLOBAL O *out, AG_GLOBAL const T *a, AG_GLOBAL const T *b, MORE ag_params p)
{
	AG_LOCAL T as[DEPTH][TILE + 1];
	AG_LOCAL T bs[DEPTH][TILE + 1];
	const uint t = AG_LOCAL_ID, tx = t % 16, ty = t / 16;
	const ulong batch = AG_GROUP / P_TILES;
	const ulong row = AG_GROUP % P_TILES / P_ACROSS * TILE, col = AG_GROUP % P_TILES % P_ACROSS * TILE;
	long pa = P_A, pb = P_B;
	ag_locate_batch((I)batch, &p, &pa, &pb);
	T acc[TILE / 16][TILE / 16];
#pragma unroll
	for (uint i = 0; i < TILE / 16; i++)
#pragma unroll
		for (uint j = 0; j < TILE / 16; j++) acc[i][j] = 0;
	for (ulong k0 = 0; k0 < P_K; k0 += DEPTH) {
		for (uint e = t; e < DEPTH * TILE; e += 256) {
			const uint k = P_A_COL == 1 ? e % DEPTH : e / TILE, r = P_A_COL == 1 ? e / DEPTH : e % TILE;
			as[k][r] = row + r < P_M && k0 + k < P_K ? a[pa + (long)(row + r) * (long)P_A_ROW + (long)(k0 + k) * (long)P_A_COL] : (T)0;
		}
		for (uint e = t; e < DEPTH * TILE; e += 256) {
			const uint k = P_B_COL == 1 ? e / TILE : e % DEPTH, c = P_B_COL == 1 ? e % TILE : e / DEPTH;
			bs[k][c] = col + c < P_N && k0 + k < P_K ? b[pb + (long)(k0 + k) * (long)P_B_ROW + (long)(col + c) * (long)P_B_COL] : (T)0;
		}
		AG_BARRIER;
		const uint depth = P_K - k0 < DEPTH ? (uint)(P_K - k0) : DEPTH;
		for (uint k = 0; k < depth; k++) {
			T x[TILE / 16], y[TILE / 16];
#pragma unroll
			for (uint i = 0; i < TILE / 16; i++) x[i] = as[k][ty + 16 * i];
#pragma unroll
			for (uint j = 0; j < TILE / 16; j++) y[j] = bs[k][tx + 16 * j];
#pragma unroll
			for (uint i = 0; i < TILE / 16; i++)
#pragma unroll
				for (uint j = 0; j < TILE / 16; j++) acc[i][j] = MULADD(x[i], y[j], acc[i][j]);
		}
		AG_BARRIER;
	}
#pragma unroll
	for (uint i = 0; i < TILE / 16; i++)
#pragma unroll
		for (uint j = 0; j < TILE / 16; j++) {
			const ulong r = row + ty + 16 * i, c = col + tx + 16 * j;
			if (r < P_M && c < P_N) STORE(P_OUT + (batch * P_M + r) * P_N + c, acc[i][j], c)
		}
}

//// matmulfloat
// Like matmul, for float32, with vectors of four. An item computes TILE/16 x TILE/16 elements: along each side four
// neighbours and, if TILE is 128, the four at a distance of 64 from them. FETCH loads an item's four elements of
// operand m, along k if P_m_ALONG, otherwise along the side. KEEP stores them in local memory, where elements along
// the side are neighbours. Local memory has two stages: one is loaded while the other is in use.
#define FETCH(v, in, m, begin, sides, first)                                                                         \
	if (P_##m##_ALONG) {                                                                                             \
		const ulong i = begin + t / (DEPTH / 4), k = first + t % (DEPTH / 4) * 4;                                    \
		ag_fetch(&v, in, p##m + (long)i * (long)P_##m##_SIDE + (long)k * (long)P_##m##_K, (long)P_##m##_K, i < sides ? (long)P_K - (long)k : 0, (uint)P_##m##_VECTOR); \
	} else {                                                                                                         \
		const ulong i = begin + t % (TILE / 4) * 4, k = first + t / (TILE / 4);                                      \
		ag_fetch(&v, in, p##m + (long)i * (long)P_##m##_SIDE + (long)k * (long)P_##m##_K, (long)P_##m##_SIDE, k < P_K ? (long)sides - (long)i : 0, (uint)P_##m##_VECTOR); \
	}
#define KEEP(tile, m, v)                                                                                             \
	if (P_##m##_ALONG) {                                                                                             \
		const uint i = t / (DEPTH / 4), k = t % (DEPTH / 4) * 4;                                                     \
		((AG_LOCAL float *)tile[k])[i] = v.x;                                                                        \
		((AG_LOCAL float *)tile[k + 1])[i] = v.y;                                                                    \
		((AG_LOCAL float *)tile[k + 2])[i] = v.z;                                                                    \
		((AG_LOCAL float *)tile[k + 3])[i] = v.w;                                                                    \
	} else                                                                                                           \
		tile[t / (TILE / 4)][t % (TILE / 4)] = v;
#if TILE == 128
#define VECTOR(v, u) {v.x, v.y, v.z, v.w, u.x, u.y, u.z, u.w}
#else
#define VECTOR(v, u) {v.x, v.y, v.z, v.w}
#endif
AG_KERNEL AG_SIZE(256) void ag_matmulfloat(AG_GLOBAL O *out, AG_GLOBAL const T *a, AG_GLOBAL const T *b, MORE ag_params p)
{
	AG_LOCAL float4 as[2][DEPTH][TILE / 4 + 1], bs[2][DEPTH][TILE / 4 + 1];
	const uint t = AG_LOCAL_ID, tx = t % 16, ty = t / 16;
	const ulong batch = AG_GROUP / P_TILES;
	const ulong row = AG_GROUP % P_TILES / P_ACROSS * TILE, col = AG_GROUP % P_TILES % P_ACROSS * TILE;
	long pA = P_A, pB = P_B;
	ag_locate_batch((I)batch, &p, &pA, &pB);
	T acc[TILE / 16][TILE / 16];
#pragma unroll
	for (uint i = 0; i < TILE / 16; i++)
#pragma unroll
		for (uint j = 0; j < TILE / 16; j++) acc[i][j] = 0;
	float4 nextA, nextB;
	FETCH(nextA, a, A, row, P_M, 0)
	FETCH(nextB, b, B, col, P_N, 0)
	uint stage = 0;
	for (ulong k0 = 0; k0 < P_K; k0 += DEPTH, stage ^= 1) {
		KEEP(as[stage], A, nextA)
		KEEP(bs[stage], B, nextB)
		AG_BARRIER;
		FETCH(nextA, a, A, row, P_M, k0 + DEPTH)
		FETCH(nextB, b, B, col, P_N, k0 + DEPTH)
#pragma unroll
		for (uint k = 0; k < DEPTH; k++) {
			if (k >= P_K - k0) break;
			const float4 x0 = as[stage][k][ty], x1 = as[stage][k][ty + TILE / 4 - 16], y0 = bs[stage][k][tx], y1 = bs[stage][k][tx + TILE / 4 - 16];
			const T x[TILE / 16] = VECTOR(x0, x1), y[TILE / 16] = VECTOR(y0, y1);
#pragma unroll
			for (uint i = 0; i < TILE / 16; i++)
#pragma unroll
				for (uint j = 0; j < TILE / 16; j++) acc[i][j] = MULADD(x[i], y[j], acc[i][j]);
		}
	}
#pragma unroll
	for (uint i = 0; i < TILE / 16; i++)
#pragma unroll
		for (uint j = 0; j < TILE / 16; j++) {
			const ulong r = row + i / 4 * 64 + ty * 4 + i % 4, c = col + j / 4 * 64 + tx * 4 + j % 4;
			if (r < P_M && c < P_N) STORE(P_OUT + (batch * P_M + r) * P_N + c, acc[i][j], c)
		}
}

//// conv
// An item computes an element.
AG_KERNEL AG_SIZE(256) void ag_conv(AG_GLOBAL T *out, AG_GLOBAL const T *a, AG_GLOBAL const T *b, ag_params p)
{
	for (ulong i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) {
		ulong r = i;
		const long col = r % P_OUT1;
		r /= P_OUT1;
		const long row = r % P_OUT0;
		r /= P_OUT0;
		const long o = r % P_CHANNELS_OUT;
		r /= P_CHANNELS_OUT;
		const long g = r % P_GROUPS, n = r / P_GROUPS;
		T acc = 0;
		for (long c = 0; c < (long)P_CHANNELS; c++)
			for (long k = 0; k < (long)P_SIZE0; k++) {
				long y = row * (long)P_STRIDE0 - (long)P_PAD0 + k * (long)P_STEP0;
				if (P_HOLES0 > 1) {
					if (y % (long)P_HOLES0 != 0) continue;
					y /= (long)P_HOLES0;
				}
				for (long l = 0; l < (long)P_SIZE1; l++) {
					long x = col * (long)P_STRIDE1 - (long)P_PAD1 + l * (long)P_STEP1;
					if (P_HOLES1 > 1) {
						if (x % (long)P_HOLES1 != 0) continue;
						x /= (long)P_HOLES1;
					}
					const bool isInside = y >= 0 && y < (long)P_IN0 && x >= 0 && x < (long)P_IN1;
					const T v = isInside ? a[P_A + n * P_AN + g * P_AG + c * P_AC + y * P_AY + x * P_AX] : (T)0;
					acc = MULADD(v, b[P_B + g * P_BG + o * P_BO + c * P_BC + k * P_BK + l * P_BL], acc);
				}
			}
		out[P_OUT + n * P_ON + g * P_OG + o * P_OO + row * P_OUT1 + col] = acc;
	}
}

//// convtiles
// A convolution as a product of matrices, for windows without holes. Rows are the CHANNELS_OUT output channels,
// columns the output places of all images, and k runs over input channels and places of the window. An item loads
// elements of one row and one column, for every STEP-th k. PLAN divides for a step of DEPTH values of k: where the
// element of the input is, from the first one of a window, and that of the weights, from the first one of a row.
#define STEP (256 / TILE)
#define PLAN(stage, first)                                                                                           \
	for (uint e = t; e < DEPTH; e += 256) {                                                                          \
		const I q = (I)(first + e), c = q / (I)window, k = q % (I)window / (I)P_SIZE1, l = q % (I)P_SIZE1;           \
		down[stage][e] = (long)k * (long)P_STEP0;                                                                    \
		right[stage][e] = (long)l * (long)P_STEP1;                                                                   \
		inputs[stage][e] = (long)(c * P_AC);                                                                         \
		weights[stage][e] = (long)(c * P_BC + k * P_BK + l * P_BL);                                                  \
	}
AG_KERNEL AG_SIZE(256) void ag_convtiles(AG_GLOBAL T *out, AG_GLOBAL const T *a, AG_GLOBAL const T *b, ag_params p)
{
	AG_LOCAL T as[DEPTH][TILE + 1];
	AG_LOCAL T bs[DEPTH][TILE + 1];
	AG_LOCAL long down[2][DEPTH], right[2][DEPTH], inputs[2][DEPTH], weights[2][DEPTH];
	const uint t = AG_LOCAL_ID, tx = t % 16, ty = t / 16, mine = t % TILE;
	const ulong plane = P_OUT0 * P_OUT1, window = P_SIZE0 * P_SIZE1, depth = P_CHANNELS * window;
	const ulong g = AG_GROUP / P_TILES, row = AG_GROUP % P_TILES / P_ACROSS * TILE, col = AG_GROUP % P_TILES % P_ACROSS * TILE;
	const I at = (I)(col + mine), n = at / (I)plane, i = at % (I)plane / (I)P_OUT1, j = at % (I)P_OUT1;
	const long y0 = (long)i * (long)P_STRIDE0 - (long)P_PAD0, x0 = (long)j * (long)P_STRIDE1 - (long)P_PAD1;
	const long image = (long)(P_A + n * P_AN + g * P_AG), firstWeight = (long)(P_B + g * P_BG + (row + mine) * P_BO);
	const bool hasPlace = at < P_N, hasRow = row + mine < P_CHANNELS_OUT;
	T acc[TILE / 16][TILE / 16];
#pragma unroll
	for (uint r = 0; r < TILE / 16; r++)
#pragma unroll
		for (uint c = 0; c < TILE / 16; c++) acc[r][c] = 0;
	uint stage = 0;
	PLAN(0, 0)
	AG_BARRIER;
	for (ulong k0 = 0; k0 < depth; k0 += DEPTH, stage ^= 1) {
		PLAN(stage ^ 1, k0 + DEPTH)
		for (uint e = t / TILE; e < DEPTH; e += STEP) {
			const long y = y0 + down[stage][e], x = x0 + right[stage][e];
			const bool isInside = hasPlace && k0 + e < depth && y >= 0 && y < (long)P_IN0 && x >= 0 && x < (long)P_IN1;
			as[e][mine] = hasRow && k0 + e < depth ? b[firstWeight + weights[stage][e]] : (T)0;
			bs[e][mine] = isInside ? a[image + inputs[stage][e] + y * (long)P_AY + x * (long)P_AX] : (T)0;
		}
		AG_BARRIER;
		const uint most = depth - k0 < DEPTH ? (uint)(depth - k0) : DEPTH;
		for (uint k = 0; k < most; k++) {
			T x[TILE / 16], y[TILE / 16];
#pragma unroll
			for (uint r = 0; r < TILE / 16; r++) x[r] = as[k][ty + 16 * r];
#pragma unroll
			for (uint c = 0; c < TILE / 16; c++) y[c] = bs[k][tx + 16 * c];
#pragma unroll
			for (uint r = 0; r < TILE / 16; r++)
#pragma unroll
				for (uint c = 0; c < TILE / 16; c++) acc[r][c] = MULADD(y[c], x[r], acc[r][c]);
		}
		AG_BARRIER;
	}
#pragma unroll
	for (uint c = 0; c < TILE / 16; c++) {
		const ulong place = col + tx + 16 * c;
#pragma unroll
		for (uint r = 0; r < TILE / 16; r++) {
			const ulong o = row + ty + 16 * r;
			if (o < P_CHANNELS_OUT && place < P_N) out[P_OUT + place / plane * P_ON + g * P_OG + o * P_OO + place % plane] = acc[r][c];
		}
	}
}

//// pool
// If ARG, the result is the place of the window's greatest element in its plane, otherwise a fold of the window.
AG_KERNEL AG_SIZE(256) void ag_pool(AG_GLOBAL O *out, AG_GLOBAL const T *in, ag_params p)
{
	for (ulong i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) {
		const long col = i % P_OUT1, row = i / P_OUT1 % P_OUT0;
		long base = P_IN;
		ag_locate_planes((I)(i / P_OUT1 / P_OUT0), &p, &base);
		T acc = IDENTITY;
		long place = -1;
		for (long k = 0; k < (long)P_SIZE0; k++) {
			long y = row * (long)P_STRIDE0 - (long)P_PAD0 + k * (long)P_STEP0;
			if (P_HOLES0 > 1) {
				if (y % (long)P_HOLES0 != 0) continue;
				y /= (long)P_HOLES0;
			}
			if (y < 0 || y >= (long)P_IN0) continue;
			for (long l = 0; l < (long)P_SIZE1; l++) {
				long x = col * (long)P_STRIDE1 - (long)P_PAD1 + l * (long)P_STEP1;
				if (P_HOLES1 > 1) {
					if (x % (long)P_HOLES1 != 0) continue;
					x /= (long)P_HOLES1;
				}
				if (x < 0 || x >= (long)P_IN1) continue;
				const T v = in[base + y * (long)P_ROW + x * (long)P_COL];
#if ARG
				if (place < 0 || BETTER(v, acc)) {
					acc = v;
					place = y * (long)P_IN1 + x;
				}
#else
				acc = OP(acc, v);
#endif
			}
		}
#if ARG
		out[P_OUT + i] = place;
#else
		out[P_OUT + i] = acc;
#endif
	}
}

//// gather
// A wrong index sets the fault slot. The kernel settle then finds the first wrong one.
AG_KERNEL AG_SIZE(256) void ag_gather(AG_GLOBAL T *out, AG_GLOBAL const T *in, AG_GLOBAL const long *index, AG_GLOBAL ulong *fault, ag_params p)
{
	for (I i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) {
		long from = P_IN, at = P_INDEX;
		ag_locate_space(i, &p, &from, &at);
		long k = index[at];
		T v = 0;
		if (k < (long)P_LEAST || k >= (long)P_LENGTH) {
			fault[P_SLOT] = 1;
		} else {
			if (k < 0) k += (long)P_LENGTH;
			v = in[from + k * (long)P_STEP];
		}
		out[P_OUT + i] = v;
	}
}

//// settle
// If an index was wrong, one group finds the first wrong one in row-major order.
AG_KERNEL AG_SIZE(256) void ag_settle(AG_GLOBAL const long *index, AG_GLOBAL ulong *fault, ag_params p)
{
	AG_LOCAL ulong first[256];
	const uint t = AG_LOCAL_ID;
	if (fault[P_SLOT] != 0) {
		first[t] = P_N;
		for (ulong i = t; i < P_N; i += 256) {
			long at = P_INDEX;
			ag_locate_space((I)i, &p, &at);
			const long k = index[at];
			if (k < (long)P_LEAST || k >= (long)P_LENGTH) {
				first[t] = i;
				break;
			}
		}
		AG_BARRIER;
		for (uint halved = 128; halved > 0; halved /= 2) {
			if (t < halved && first[t + halved] < first[t]) first[t] = first[t + halved];
			AG_BARRIER;
		}
		if (t == 0) {
			long at = P_INDEX;
			ag_locate_space((I)first[0], &p, &at);
			fault[P_SLOT + 1] = first[0];
			fault[P_SLOT + 2] = (ulong)index[at];
			fault[P_SLOT + 3] = P_LENGTH;
		}
	}
}

//// chunks
// A group sorts a chunk of a row with a bitonic network; CHUNK is a power of two. Elements are ordered by key, and
// by place where keys are equal. Entries beyond the end of the row have the greatest key and come last. If LAST,
// the chunk is the whole row, and its first KEPT places are the result. Otherwise keys and places go to the kernel
// merge. If PLACES, the elements are indices, and their keys are the output places that they select; a wrong index
// sets the fault slot and gets the greatest key.
AG_KERNEL void ag_chunks(AG_GLOBAL long *out, AG_GLOBAL ulong *keys, AG_GLOBAL ulong *order, AG_GLOBAL ulong *fault, AG_GLOBAL const T *in, ag_params p)
{
	AG_LOCAL ulong key[MOST];
	AG_LOCAL uint place[MOST];
	const uint t = AG_LOCAL_ID, items = AG_LOCAL_SIZE, chunk = (uint)P_CHUNK;
	const ulong row = AG_GROUP / P_CHUNKS, begin = AG_GROUP % P_CHUNKS * chunk;
	long from = P_IN, to = P_OUT;
	ag_locate_kept((I)row, &p, &from, &to);
	for (uint e = t; e < chunk; e += items) {
		ulong k = 0xffffffffffffffffUL;
		if (begin + e < P_LEN) {
			long at = from, target = 0;
			ag_locate_folded((I)(begin + e), &p, &at, &target);
			const T x = in[at];
#if PLACES
			const long i = x < 0 ? x + (long)P_LENGTH : x;
			if (i < 0 || i >= (long)P_LENGTH || x < (long)P_LEAST)
				fault[P_SLOT] = 1;
			else
				k = (ulong)(target + i * (long)P_STEP);
#else
			const bool isNaN = ISNAN(x);
			k = KEY(x);
			if (P_DESCENDING) k = isNaN ? k : ~k;
#endif
		}
		key[e] = k;
		place[e] = e;
	}
	AG_BARRIER;
	for (uint size = 2; size <= chunk; size *= 2)
		for (uint step = size / 2; step > 0; step /= 2) {
			for (uint e = t; e < chunk / 2; e += items) {
				const uint i = e / step * step * 2 + e % step, j = i + step;
				const bool isAfter = key[i] > key[j] || (key[i] == key[j] && place[i] > place[j]);
				if (isAfter == ((i & size) == 0)) {
					const ulong k = key[i];
					const uint l = place[i];
					key[i] = key[j];
					place[i] = place[j];
					key[j] = k;
					place[j] = l;
				}
			}
			AG_BARRIER;
		}
	for (uint e = t; e < chunk; e += items) {
		if (P_LAST) {
			if (e < P_KEPT) {
				long nowhere = 0, there = to;
				ag_locate_first((I)e, &p, &nowhere, &there);
				out[there] = place[e];
			}
		} else if (begin + e < P_LEN) {
			keys[row * P_LEN + begin + e] = key[e];
			order[row * P_LEN + begin + e] = begin + place[e];
		}
	}
}

//// merge
// Neighbouring sorted runs of RUN elements are merged. An element moves behind those of the other run that come
// before it. If LAST, the first KEPT places of each row are the result.
AG_KERNEL AG_SIZE(256) void ag_merge(AG_GLOBAL const ulong *keys, AG_GLOBAL const ulong *order, AG_GLOBAL ulong *keysOut, AG_GLOBAL ulong *orderOut, AG_GLOBAL long *out, ag_params p)
{
	for (ulong i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) {
		const ulong row = i / P_LEN, e = i % P_LEN, run = e / P_RUN, start = row * P_LEN;
		const ulong key = keys[i], place = order[i];
		ulong low = (run ^ 1) * P_RUN, high = low + P_RUN;
		if (low > P_LEN) low = P_LEN;
		if (high > P_LEN) high = P_LEN;
		const ulong first = low;
		while (low < high) {
			const ulong middle = (low + high) / 2, k = keys[start + middle];
			if (k < key || (k == key && order[start + middle] < place))
				low = middle + 1;
			else
				high = middle;
		}
		const ulong to = run / 2 * 2 * P_RUN + e % P_RUN + (low - first);
		if (!P_LAST) {
			keysOut[start + to] = key;
			orderOut[start + to] = place;
		} else if (to < P_KEPT) {
			long nowhere = 0, there = P_OUT;
			ag_locate_kept((I)row, &p, &nowhere, &there);
			ag_locate_first((I)to, &p, &nowhere, &there);
			out[there] = (long)place;
		}
	}
}

//// sums
// Entries with equal keys are neighbours, in the order in which they are added up. Each stands for a slice of WIDTH
// elements. An item adds up one element of the slices with the same key.
AG_KERNEL AG_SIZE(256) void ag_sums(AG_GLOBAL T *out, AG_GLOBAL const T *in, AG_GLOBAL const ulong *keys, AG_GLOBAL const ulong *order, ag_params p)
{
	for (ulong i = AG_GLOBAL_ID; i < P_N * P_WIDTH; i += AG_GLOBAL_SIZE) {
		const ulong first = i / P_WIDTH, key = keys[first];
		if (key == 0xffffffffffffffffUL || (first > 0 && keys[first - 1] == key)) continue;
		long from = P_IN, to = P_OUT + (long)key;
		ag_locate_inner((I)(i % P_WIDTH), &p, &from, &to);
		T acc = 0;
		for (ulong j = first; j < P_N && keys[j] == key; j++) {
			long at = from;
			ag_locate_outer((I)order[j], &p, &at);
			acc = ADD(acc, in[at]);
		}
		out[to] = acc;
	}
}

//// copy
AG_KERNEL AG_SIZE(256) void ag_copy(AG_GLOBAL T *out, AG_GLOBAL const T *in, ag_params p)
{
	for (I i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) {
		long to = P_OUT, from = P_IN;
		ag_locate_space(i, &p, &to, &from);
		out[to] = in[from];
	}
}

//// copytiles
// A group copies TILE x TILE elements by way of local memory. The output is contiguous along axis D0, the input
// along D1. So neighbouring items read neighbours and write neighbours.
AG_KERNEL AG_SIZE(256) void ag_copytiles(AG_GLOBAL T *out, AG_GLOBAL const T *in, ag_params p)
{
	AG_LOCAL T tile[TILE][TILE + 1];
	const uint tx = AG_LOCAL_ID % TILE, ty = AG_LOCAL_ID / TILE;
	const ulong i0 = AG_GROUP % P_TILES / P_ACROSS * TILE, j0 = AG_GROUP % P_TILES % P_ACROSS * TILE;
	long to = P_OUT, from = P_IN;
	ag_locate_rest((I)(AG_GROUP / P_TILES), &p, &to, &from);
	for (uint r = ty; r < TILE; r += 256 / TILE)
		if (i0 + r < P_D0 && j0 + tx < P_D1) tile[r][tx] = in[from + (long)(i0 + r) * (long)P_STRIDE0 + (long)(j0 + tx)];
	AG_BARRIER;
	for (uint r = ty; r < TILE; r += 256 / TILE)
		if (i0 + tx < P_D0 && j0 + r < P_D1) out[to + (long)(i0 + tx) + (long)(j0 + r) * (long)P_STRIDE1] = tile[tx][r];
}

//// pack
// A group copies one of PIECES pieces: n bytes, from any offset of the input. The parameters are a word for each
// piece's offset in the input, and then half a word for each: its offset in the output, in units of 64 bytes, in
// the high 16 bits, its size in the low 16.
AG_KERNEL AG_SIZE(64) void ag_pack(AG_GLOBAL uchar *out, AG_GLOBAL const uchar *in, ag_params p)
{
	const uint piece = (uint)AG_GROUP;
	const ulong from = p.w[piece];
	const uint place = (uint)(p.w[PIECES + piece / 2] >> piece % 2 * 32);
	const uint to = place >> 16 << 6, n = place & 0xffff;
	uint done = 0;
	if (from % 4 == 0) {
		AG_GLOBAL uint *y = (AG_GLOBAL uint *)(out + to);
		AG_GLOBAL const uint *x = (AG_GLOBAL const uint *)(in + from);
		for (uint i = AG_LOCAL_ID; i < n / 4; i += 64) y[i] = x[i];
		done = n / 4 * 4;
	}
	for (uint i = done + AG_LOCAL_ID; i < n; i += 64) out[to + i] = in[from + i];
}

//// fill
AG_KERNEL AG_SIZE(256) void ag_fill(AG_GLOBAL T *out, ag_params p)
{
	for (I i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) out[P_OUT + i] = (T)P_VALUE;
}

//// iota
AG_KERNEL AG_SIZE(256) void ag_iota(AG_GLOBAL T *out, ag_params p)
{
	const T start = START, step = STEP;
	for (I i = AG_GLOBAL_ID; i < P_N; i += AG_GLOBAL_SIZE) out[P_OUT + i] = ADD(start, MUL((T)(long)i, step));
}

//// random
// An item draws blocks of PER elements. The first block and the last may be needed only in part.
AG_KERNEL AG_SIZE(256) void ag_random(AG_GLOBAL T *out, ag_params p)
{
	const ulong first = P_POS / PER, begin = P_POS % PER, blocks = (begin + P_N + PER - 1) / PER;
	for (ulong i = AG_GLOBAL_ID; i < blocks; i += AG_GLOBAL_SIZE) {
		const ulong block = first + i;
		uint w[4] = {(uint)block, (uint)(block >> 32), P_TAG, 0};
		ag_philox(w, (uint)P_KEY, (uint)(P_KEY >> 32));
		T x[PER];
		DRAW(w, x, (long)P_LO, P_SPAN);
		for (uint j = 0; j < PER; j++) {
			const ulong at = i * PER + j - begin;
			if (at < P_N) out[P_OUT + at] = x[j];
		}
	}
}
