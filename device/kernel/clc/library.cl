// The functions that kernels are made of. They are those of package kernel, operation by operation, so they have the
// same bits wherever the basic operations are correctly rounded. See functions.go there for methods and constants.
//
// Paragraphs end at empty lines. Each is one function or table, named by its first word that begins with "ag_". A
// kernel's text includes only the paragraphs that it names, directly or not.

// The upper half of a product, from four products of halves. OpenCL's mul_hi is this, but the compiler of NVIDIA's driver
// 580 ends the process where that is used for ulong.
ulong ag_mul_high(ulong x, ulong y) {
	ulong a = x >> 32, b = (uint)x, c = y >> 32, d = (uint)y;
	ulong mid = a * d + (b * d >> 32), low = b * c + (uint)mid;
	return a * c + (mid >> 32) + (low >> 32);
}

float ag_power_f32(float n) { return AG_FLOAT32((uint)((int)n + 127) << 23); }

float ag_copysign_f32(float x, float sign) { return AG_FLOAT32((AG_BITS32(x) & 0x7fffffffu) | (AG_BITS32(sign) & 0x80000000u)); }

float ag_abs_f32(float x) { return AG_FLOAT32(AG_BITS32(x) & 0x7fffffffu); }

float ag_clamp_f32(float x, float least, float most) { return x < least ? least : x > most ? most : x; }

float ag_exp_poly_f32(float r) {
	float h = AG_FMA32(0x1.8e2ea8p-10f, r, 0x1.1153f6p-7f);
	h = AG_FMA32(h, r, 0x1.553a84p-5f);
	h = AG_FMA32(h, r, 0x1.55556cp-3f);
	h = AG_FMA32(h, r, 0x1.00000ap-1f);
	return h;
}

float ag_powers_f32(float x, float *n) {
	*n = AG_RINT32(AG_FMA32(x, 1.44269504088896340735992468100189214f, -0.1394f));
	float r = AG_FMA32(*n, -0x1.62e43p-1f, x);
	r = AG_FMA32(*n, 0x1.05c61p-29f, r);
	float h = ag_exp_poly_f32(r);
	h = AG_FMA32(h, r, 1.0f);
	return AG_FMA32(h, r, 1.0f);
}

float ag_powers_near_f32(float x, float *n) {
	*n = AG_RINT32(AG_FMA32(x, 1.44269504088896340735992468100189214f, -0.1394f));
	float r = AG_FMA32(*n, -0x1.62e43p-1f, x);
	float h = ag_exp_poly_f32(r);
	h = AG_FMA32(h, r, 1.0f);
	return AG_FMA32(h, r, 1.0f);
}

float ag_exp_f32(float x) {
	if (x != x) return x;
	float n, p = ag_powers_f32(ag_clamp_f32(x, -105.0f, 89.0f), &n);
	float halved = AG_FLOOR32(0.5f * n);
	return p * ag_power_f32(halved) * ag_power_f32(n - halved);
}

float ag_expm1_f32(float x) {
	if (x != x || ag_abs_f32(x) < 0x1p-26f) return x;
	float y = ag_clamp_f32(x, -20.0f, 89.0f);
	float n = AG_RINT32(AG_FMA32(y, 1.44269504088896340735992468100189214f, -0.1394f));
	float r = AG_FMA32(n, -0x1.62e43p-1f, y);
	r = AG_FMA32(n, 0x1.05c61p-29f, r);
	float u = (r * r) * ag_exp_poly_f32(r);
	float s = ag_power_f32(n - 1.0f);
	float s1 = s - 0.5f;
	float sum = AG_FMA32(s, r, s1);
	float rest = AG_FMA32(s, r, s1 - sum);
	return 2.0f * (sum + AG_FMA32(s, u, rest));
}

float ag_log_poly_f32(float f) {
	float h = AG_FMA32(-0x1.3925eap-4f, f, 0x1.0576d8p-3f);
	h = AG_FMA32(h, f, -0x1.0d80e6p-3f);
	h = AG_FMA32(h, f, 0x1.22d64ep-3f);
	h = AG_FMA32(h, f, -0x1.54721cp-3f);
	h = AG_FMA32(h, f, 0x1.99a036p-3f);
	h = AG_FMA32(h, f, -0x1.000228p-2f);
	h = AG_FMA32(h, f, 0x1.555554p-2f);
	return h;
}

float ag_log_f32(float x) {
	if (!(x >= 0.0f)) return AG_FLOAT32(0x7fc00000u);
	if (x == 0.0f) return AG_FLOAT32(0xff800000u);
	if (x > 0x1.fffffep127f) return x;
	float shift = 127.0f;
	if (x < 0x1p-126f) {
		x *= 0x1p23f;
		shift = 127.0f + 23.0f;
	}
	uint b = AG_BITS32(x) + (0x3f800000u - 0x3f3504f3u);
	float e = (float)(b >> 23) - shift;
	float f = AG_FLOAT32((b & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
	float u = (f * f) * AG_FMA32(ag_log_poly_f32(f), f, -0.5f);
	return AG_FMA32(e, 0x1.62e43p-1f, f + AG_FMA32(e, -0x1.05c61p-29f, u));
}

float ag_log1p_f32(float x) {
	if (!(x >= -1.0f)) return AG_FLOAT32(0x7fc00000u);
	if (x == -1.0f) return AG_FLOAT32(0xff800000u);
	if (x > 0x1.fffffep127f) return x;
	float high = x > 1.0f ? x : 1.0f, low = x < 1.0f ? x : 1.0f;
	float u = high + low;
	float c = low - (u - high);
	uint b = AG_BITS32(u) + (0x3f800000u - 0x3f3504f3u);
	float e = (float)(b >> 23) - 127.0f;
	float f = AG_FLOAT32((b & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
	c = c * AG_FLOAT32((254u << 23) - ((AG_BITS32(u < 0x1p64f ? u : 0x1p64f) + (0x3f800000u - 0x3f3504f3u)) & ~0x7fffffu));
	float y = f + c;
	c -= y - f;
	float v = (y * y) * AG_FMA32(ag_log_poly_f32(y), y, -0.5f);
	v = AG_FMA32(e, -0x1.05c61p-29f, v) + c;
	return ag_copysign_f32(AG_FMA32(e, 0x1.62e43p-1f, y + v), x);
}

AG_CONSTANT ulong ag_two_over_pi[21] = {
	0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
	0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
	0x56033046fc7b6bab, 0xf0cfbc209af4361d};

// ag_quarters counts the quarters of a circle in m * 2**e, multiplying by 2/pi. q is the nearest whole number,
// modulo 4. The distance from it is (high + rest * 2**-64) * 2**(-62-n) quarters. ag_quarters reports whether q was
// rounded up.
bool ag_quarters(ulong m, int e, ulong *q, ulong *high, ulong *rest, uint *n) {
	uint skip = (uint)(e + 62);
	uint at = skip / 64, shift = skip % 64;
	ulong w[3];
	for (int i = 0; i < 3; i++)
		w[i] = (ag_two_over_pi[at + i] << shift) | ((ag_two_over_pi[at + i + 1] >> 1) >> (63 - shift));
	ulong high2 = ag_mul_high(w[2], m), low2 = w[2] * m;
	ulong high1 = ag_mul_high(w[1], m), low1 = w[1] * m;
	ulong mid = low1 + high2;
	ulong top = w[0] * m + high1 + (mid < low1 ? 1 : 0);
	*q = (top + (1UL << 61)) >> 62;
	top -= *q << 62;
	*q &= 3;
	bool negative = (long)top < 0;
	if (negative) {
		low2 = 0 - low2;
		ulong borrow = low2 != 0 ? 1 : 0;
		ulong next = mid != 0 || borrow != 0 ? 1 : 0;
		mid = 0 - mid - borrow;
		top = 0 - top - next;
	}
	if (top == 0) {
		top = mid;
		mid = low2;
		*n = AG_LEADING_ZEROS(top);
		top = (top << *n) | ((mid >> 1) >> (63 - *n));
		mid <<= *n;
		*n += 64;
	} else {
		*n = AG_LEADING_ZEROS(top);
		top = (top << *n) | ((mid >> 1) >> (63 - *n));
		mid = (mid << *n) | ((low2 >> 1) >> (63 - *n));
	}
	*high = top;
	*rest = mid;
	return negative;
}

double ag_quarters_f64(double x, ulong *q) {
	ulong b = AG_BITS64(x), top, mid;
	uint n;
	bool negative = ag_quarters((b & 0xfffffffffffffUL) | 0x10000000000000UL, (int)(b >> 52) - 1075, q, &top, &mid, &n);
	double scale = AG_FLOAT64((ulong)(1023 - 62 - (int)n) << 52);
	double high = (double)(top >> 11) * 0x1p11 * scale;
	double low = (double)(((top & 0x7ffUL) << 53) | (mid >> 11)) * 0x1p-53 * scale;
	double r = high * 0x1.921fb54442d18p+0;
	r += AG_FMA64(high, 0x1.921fb54442d18p+0, -r) + AG_FMA64(high, 0x1.1a62633145c07p-54, low * 0x1.921fb54442d18p+0);
	return negative ? -r : r;
}

// ag_quarters_f32 rounds to float64 and then to float32, as package kernel does. It uses only integers and float32: a
// device may have no float64.
float ag_quarters_f32(float x, uint *q) {
	ulong quarters, top, mid;
	uint b = AG_BITS32(x), n;
	bool negative = ag_quarters((ulong)((b & 0x7fffffu) | 0x800000u) << 29, (int)(b >> 23) - 179, &quarters, &top, &mid, &n);
	*q = (uint)quarters;
	ulong high = ag_mul_high(top, 0xc90fdaa22168c234UL), low = top * 0xc90fdaa22168c234UL;
	ulong more = ag_mul_high(mid, 0xc90fdaa22168c234UL);
	low += more;
	high += low < more ? 1 : 0;
	more = ag_mul_high(top, 0xc4c6628b80dc1cd1UL);
	low += more;
	high += low < more ? 1 : 0;
	if ((high >> 63) == 0) {
		high = (high << 1) | (low >> 63);
		low <<= 1;
		n++;
	}
	ulong rest = high & 0x7ffUL, r53 = high >> 11;
	if (rest > 0x400UL || (rest == 0x400UL && (low != 0 || (r53 & 1) != 0))) r53++;
	float r = (float)r53 * AG_FLOAT32((127u - 50u - n) << 23);
	return negative ? -r : r;
}

float ag_circle_f32(float x, uint *q) {
	if (!(x <= 131072.0f)) {
		*q = 0;
		if (!(x <= 0x1.fffffep127f)) return AG_FLOAT32(0x7fc00000u);
		return ag_quarters_f32(x, q);
	}
	float n = AG_RINT32(x * 0.636619772367581343075535053490057448f);
	*q = (uint)n;
	float r = AG_FMA32(n, -0x1.921fb6p+0f, x);
	r = AG_FMA32(n, 0x1.777a5cp-25f, r);
	return AG_FMA32(n, 0x1.ee59dap-50f, r);
}

float ag_turn_f32(uint q, float r) {
	float z = r * r, y;
	if ((q & 1) == 0) {
		float h = AG_FMA32(-0x1.9918d6p-13f, z, 0x1.1106cp-7f);
		h = AG_FMA32(h, z, -0x1.555544p-3f);
		y = AG_FMA32(h, r * z, r);
	} else {
		float h = AG_FMA32(0x1.99db84p-16f, z, -0x1.6c0c0ep-10f);
		h = AG_FMA32(h, z, 0x1.55554ap-5f);
		y = AG_FMA32(h, z * z, AG_FMA32(z, -0.5f, 1.0f));
	}
	return AG_FLOAT32(AG_BITS32(y) ^ ((q & 2) << 30));
}

float ag_sin_f32(float x) {
	uint q;
	float r = ag_circle_f32(ag_abs_f32(x), &q);
	return AG_FLOAT32(AG_BITS32(ag_turn_f32(q, r)) ^ (AG_BITS32(x) & 0x80000000u));
}

float ag_cos_f32(float x) {
	uint q;
	float r = ag_circle_f32(ag_abs_f32(x), &q);
	return ag_turn_f32(q + 1, r);
}

float ag_tanh_f32(float x) {
	if (x != x) return x;
	float a = ag_abs_f32(x), y;
	if (a < 0.55f) {
		float z = a * a;
		float h = AG_FMA32(-0x1.9921bcp-8f, z, 0x1.58e51ap-6f);
		h = AG_FMA32(h, z, -0x1.b91e7ep-5f);
		h = AG_FMA32(h, z, 0x1.110ceep-3f);
		h = AG_FMA32(h, z, -0x1.55554ap-2f);
		y = AG_FMA32(h, a * z, a);
	} else {
		float twice = a + a, n, p = ag_powers_near_f32(twice < 20.0f ? twice : 20.0f, &n);
		y = 1.0f - 2.0f / AG_FMA32(p, ag_power_f32(n), 1.0f);
	}
	return ag_copysign_f32(y, x);
}

float ag_erf_f32(float x) {
	if (x != x) return x;
	float a = ag_abs_f32(x), y;
	if (a < 0.9375f) {
		float z = a * a;
		float h = AG_FMA32(-0x1.36ae04p-11f, z, 0x1.466b9ap-8f);
		h = AG_FMA32(h, z, -0x1.b669bcp-6f);
		h = AG_FMA32(h, z, 0x1.ce1858p-4f);
		h = AG_FMA32(h, z, -0x1.8126dcp-2f);
		h = AG_FMA32(h, z, 0x1.06eba6p-3f);
		y = AG_FMA32(h, a, a);
	} else {
		float t = (a < 4.0f ? a : 4.0f) - 0.9375f;
		float h = AG_FMA32(0x1.b197a6p-13f, t, -0x1.044ba4p-9f);
		h = AG_FMA32(h, t, 0x1.5bb0cep-7f);
		h = AG_FMA32(h, t, -0x1.6998bcp-5f);
		h = AG_FMA32(h, t, -0x1.ab8e82p-1f);
		h = AG_FMA32(h, t, -0x1.445ca0p+1f);
		h = AG_FMA32(h, t, -0x1.b01db2p+0f);
		float n, p = ag_powers_near_f32(h, &n);
		y = AG_FMA32(p, -ag_power_f32(n), 1.0f);
	}
	return ag_copysign_f32(y, x);
}

float ag_pow_f32(float x, float y) {
	if (y == 0.0f || x == 1.0f) return 1.0f;
	if (x != x || y != y) return AG_FLOAT32(0x7fc00000u);
	double base = (double)ag_abs_f32(x), power = (double)y, v = 1.0;
	if (base != 1.0) v = ag_exp_f64(power * ag_log_f64(base));
	bool isInteger = AG_RINT64(power) == power;
	if (x < 0.0f && !isInteger && base <= 0x1.fffffep127) return AG_FLOAT32(0x7fc00000u);
	if (isInteger && AG_RINT64(0.5 * power) != 0.5 * power) v = ag_copysign_f64(v, (double)x);
	return (float)v;
}

// ag_soft_fma is AG_FMA64 for devices without float64. It takes and returns the bits of float64 numbers that are 0 or
// normal. So do the soft functions after it, for the operations that they are named after.
ulong ag_soft_fma(ulong x, ulong y, ulong z) {
	ulong sign = (x ^ y) & 0x8000000000000000UL, signZ = z & 0x8000000000000000UL;
	int ex = (int)(x >> 52) & 0x7ff, ey = (int)(y >> 52) & 0x7ff, ez = (int)(z >> 52) & 0x7ff;
	if (ex == 0 || ey == 0) return z;
	ulong mx = ((x & 0xfffffffffffffUL) | 0x10000000000000UL) << 10, my = ((y & 0xfffffffffffffUL) | 0x10000000000000UL) << 10;
	ulong high = ag_mul_high(mx, my), low = mx * my;
	int e = ex + ey - 2170;
	if (ez != 0) {
		ulong highZ = ((z & 0xfffffffffffffUL) | 0x10000000000000UL) << 8, lowZ = 0;
		int d = e - (ez - 1147);
		if (d < 0) {
			ag_soft_shift(&high, &low, (uint)-d);
			e -= d;
		} else {
			ag_soft_shift(&highZ, &lowZ, (uint)d);
		}
		if (sign == signZ) {
			low += lowZ;
			high += highZ + (low < lowZ ? 1 : 0);
		} else {
			ulong borrow = low < lowZ ? 1 : 0;
			low -= lowZ;
			high -= highZ + borrow;
			if ((long)high < 0) {
				sign = signZ;
				low = 0 - low;
				high = ~high + (low == 0 ? 1 : 0);
			}
		}
	}
	if (high == 0) {
		if (low == 0) return 0;
		high = low;
		low = 0;
		e -= 64;
	}
	uint n = AG_LEADING_ZEROS(high);
	high = (high << n) | ((low >> 1) >> (63 - n));
	low <<= n;
	ulong m = high >> 11, rest = high & 0x7ffUL;
	if (rest > 0x400UL || (rest == 0x400UL && (low != 0 || (m & 1) != 0))) m++;
	return sign | (((ulong)(e - (int)n + 1150) << 52) + (m - 0x10000000000000UL));
}

void ag_soft_shift(ulong *high, ulong *low, uint n) {
	if (n > 127) n = 127;
	ulong lost = 0;
	if (n > 63) {
		lost = *low;
		*low = *high;
		*high = 0;
		n -= 64;
	}
	if (n > 0) {
		lost |= *low << (64 - n);
		*low = (*low >> n) | (*high << (64 - n));
		*high >>= n;
	}
	if (lost != 0) *low |= 1;
}

ulong ag_soft_add(ulong x, ulong y) { return ag_soft_fma(x, 0x3ff0000000000000UL, y); }

ulong ag_soft_mul(ulong x, ulong y) { return ag_soft_fma(x, y, 0); }

ulong ag_soft_div(ulong x, ulong y) {
	int e = (int)(x >> 52 & 0x7ff) - (int)(y >> 52 & 0x7ff) + 1023;
	if ((x << 1) == 0) return 0;
	ulong r = (x & 0xfffffffffffffUL) | 0x10000000000000UL, by = (y & 0xfffffffffffffUL) | 0x10000000000000UL;
	if (r < by) {
		r <<= 1;
		e--;
	}
	ulong m = 1;
	r -= by;
	for (int i = 0; i < 5; i++) {
		r <<= 11;
		m = (m << 11) | (r / by);
		r %= by;
	}
	ulong rest = m & 7;
	m >>= 3;
	if (rest > 4 || (rest == 4 && (r != 0 || (m & 1) != 0))) m++;
	return ((x ^ y) & 0x8000000000000000UL) | (((ulong)e << 52) + (m - 0x10000000000000UL));
}

// ag_soft_wide converts a finite x to float64.
ulong ag_soft_wide(float x) {
	uint b = AG_BITS32(x) & 0x7fffffffu;
	if (b == 0) return 0;
	ulong e = b >> 23, m = b & 0x7fffffu;
	if (e == 0) {
		uint n = AG_LEADING_ZEROS(m) - 40;
		m = (m << n) & 0x7fffffUL;
		e = 1 - (ulong)n;
	}
	return ((ulong)(AG_BITS32(x) >> 31) << 63) | ((e + 896) << 52) | (m << 29);
}

// ag_soft_narrow rounds m * 2**(e-52) to float32, for m from 2**52 to 2**53.
float ag_soft_narrow(ulong m, int e) {
	if (e > 127) return AG_FLOAT32(0x7f800000u);
	uint shift = e < -126 ? (uint)(29 - 126 - e) : 29u;
	if (shift > 60) return 0.0f;
	ulong k = m >> shift, rest = m & ((1UL << shift) - 1), halved = 1UL << (shift - 1);
	if (rest > halved || (rest == halved && (k & 1) != 0)) k++;
	return AG_FLOAT32((e < -126 ? 0 : (uint)(e + 126) << 23) + (uint)k);
}

AG_CONSTANT ulong ag_soft_log_poly[7] = {
	0x3fc2f045bc410d25UL, 0x3fc39a1da7b86a02UL, 0x3fc74663d68a1012UL, 0x3fcc71c52125e893UL,
	0x3fd24924941e325dUL, 0x3fd999999997ff06UL, 0x3fe5555555555592UL};

AG_CONSTANT ulong ag_soft_exp_poly[12] = {
	0x3e5d827737a6954cUL, 0x3e92766ef050841eUL, 0x3ec71d2ce0897a36UL, 0x3efa01a7b175d889UL, 0x3f2a01a03981ca33UL, 0x3f56c16c14d28954UL,
	0x3f811111110f6c76UL, 0x3fa555555555b7afUL, 0x3fc5555555555554UL, 0x3fdfffffffffffe7UL, 0x3ff0000000000000UL, 0x3ff0000000000000UL};

ulong ag_soft_horner(AG_CONSTANT const ulong *factors, int n, ulong x) {
	ulong h = factors[0];
	for (int i = 1; i < n; i++) h = ag_soft_fma(h, x, factors[i]);
	return h;
}

// ag_soft_log is the logarithm of a positive number.
ulong ag_soft_log(ulong x) {
	ulong b = x + (0x3ff0000000000000UL - 0x3fe6a09e667f3bcdUL);
	ulong e = ag_soft_wide((float)((int)(b >> 52) - 1023));
	ulong f = ag_soft_add((b & 0xfffffffffffffUL) + 0x3fe6a09e667f3bcdUL, 0xbff0000000000000UL);
	ulong s = ag_soft_div(f, ag_soft_add(0x4000000000000000UL, f));
	ulong z = ag_soft_mul(s, s);
	ulong halved = ag_soft_mul(ag_soft_mul(0x3fe0000000000000UL, f), f);
	ulong h = ag_soft_fma(ag_soft_horner(ag_soft_log_poly, 7, z), z, halved);
	ulong v = ag_soft_fma(s, h, ag_soft_mul(e, 0x3c7abc9e3b39803fUL));
	v = ag_soft_add(halved, v ^ 0x8000000000000000UL);
	return ag_soft_fma(e, 0x3fe62e42fefa39efUL, ag_soft_add(f, v ^ 0x8000000000000000UL));
}

// ag_soft_exp is the exponential function as a float32.
float ag_soft_exp(ulong x) {
	if ((x & 0x7fffffffffffffffUL) > 0x4069000000000000UL) return (x >> 63) != 0 ? 0.0f : AG_FLOAT32(0x7f800000u);
	const ulong whole = 0x4338000000000000UL;
	ulong shifted = ag_soft_add(ag_soft_fma(x, 0x3ff71547652b82feUL, 0xbfc1d7dbf487fcb9UL), whole);
	ulong n = ag_soft_add(shifted, whole | 0x8000000000000000UL);
	ulong r = ag_soft_fma(n, 0xbfe62e42fefa39efUL, x);
	r = ag_soft_fma(n, 0xbc7abc9e3b39803fUL, r);
	ulong p = ag_soft_horner(ag_soft_exp_poly, 12, r);
	return ag_soft_narrow((p & 0xfffffffffffffUL) | 0x10000000000000UL, (int)(p >> 52) - 1023 + (int)(shifted - whole));
}

// ag_soft_pow is pow of float32, with intermediate results in float64.
float ag_soft_pow(float x, float y) {
	if (y == 0.0f || x == 1.0f) return 1.0f;
	if (x != x || y != y) return AG_FLOAT32(0x7fc00000u);
	float base = ag_abs_f32(x), v = 1.0f;
	bool isInteger = AG_RINT32(y) == y;
	if (x < 0.0f && !isInteger && base <= 0x1.fffffep127f) return AG_FLOAT32(0x7fc00000u);
	if ((AG_BITS32(base) == 0) || !(base <= 0x1.fffffep127f) || !(ag_abs_f32(y) <= 0x1.fffffep127f))
		v = base == 1.0f ? 1.0f : (base < 1.0f) == (y < 0.0f) ? AG_FLOAT32(0x7f800000u) : 0.0f;
	else if (base != 1.0f)
		v = ag_soft_exp(ag_soft_mul(ag_soft_wide(y), ag_soft_log(ag_soft_wide(base))));
	bool isOdd = isInteger && AG_RINT32(0.5f * y) != 0.5f * y;
	return isOdd && (AG_BITS32(x) >> 31) != 0 ? -v : v;
}

double ag_power_f64(double n) { return AG_FLOAT64((ulong)((long)n + 1023) << 52); }

double ag_copysign_f64(double x, double sign) { return AG_FLOAT64((AG_BITS64(x) & 0x7fffffffffffffffUL) | (AG_BITS64(sign) & 0x8000000000000000UL)); }

double ag_abs_f64(double x) { return AG_FLOAT64(AG_BITS64(x) & 0x7fffffffffffffffUL); }

double ag_clamp_f64(double x, double least, double most) { return x < least ? least : x > most ? most : x; }

double ag_exp_poly_f64(double r) {
	double h = AG_FMA64(0x1.d827737a6954cp-26, r, 0x1.2766ef050841ep-22);
	h = AG_FMA64(h, r, 0x1.71d2ce0897a36p-19);
	h = AG_FMA64(h, r, 0x1.a01a7b175d889p-16);
	h = AG_FMA64(h, r, 0x1.a01a03981ca33p-13);
	h = AG_FMA64(h, r, 0x1.6c16c14d28954p-10);
	h = AG_FMA64(h, r, 0x1.11111110f6c76p-7);
	h = AG_FMA64(h, r, 0x1.555555555b7afp-5);
	h = AG_FMA64(h, r, 0x1.5555555555554p-3);
	h = AG_FMA64(h, r, 0x1.fffffffffffe7p-2);
	return h;
}

double ag_powers_f64(double x, double *n) {
	*n = AG_RINT64(AG_FMA64(x, 1.44269504088896340735992468100189214, -0.1394));
	double r = AG_FMA64(*n, -0x1.62e42fefa39efp-1, x);
	r = AG_FMA64(*n, -0x1.abc9e3b39803fp-56, r);
	double h = ag_exp_poly_f64(r);
	h = AG_FMA64(h, r, 1.0);
	return AG_FMA64(h, r, 1.0);
}

double ag_powers_near_f64(double x, double *n) {
	*n = AG_RINT64(AG_FMA64(x, 1.44269504088896340735992468100189214, -0.1394));
	double r = AG_FMA64(*n, -0x1.62e42fefa39efp-1, x);
	double h = ag_exp_poly_f64(r);
	h = AG_FMA64(h, r, 1.0);
	return AG_FMA64(h, r, 1.0);
}

double ag_exp_f64(double x) {
	if (x != x) return x;
	double n, p = ag_powers_f64(ag_clamp_f64(x, -746.0, 710.0), &n);
	double halved = AG_FLOOR64(0.5 * n);
	return p * ag_power_f64(halved) * ag_power_f64(n - halved);
}

double ag_expm1_f64(double x) {
	if (x != x || ag_abs_f64(x) < 0x1p-55) return x;
	double y = ag_clamp_f64(x, -45.0, 710.0);
	double n = AG_RINT64(AG_FMA64(y, 1.44269504088896340735992468100189214, -0.1394));
	double r = AG_FMA64(n, -0x1.62e42fefa39efp-1, y);
	r = AG_FMA64(n, -0x1.abc9e3b39803fp-56, r);
	double u = (r * r) * ag_exp_poly_f64(r);
	double s = ag_power_f64(n - 1.0);
	double s1 = s - 0.5;
	double sum = AG_FMA64(s, r, s1);
	double rest = AG_FMA64(s, r, s1 - sum);
	return 2.0 * (sum + AG_FMA64(s, u, rest));
}

double ag_log_poly_f64(double z) {
	double h = AG_FMA64(0x1.2f045bc410d25p-3, z, 0x1.39a1da7b86a02p-3);
	h = AG_FMA64(h, z, 0x1.74663d68a1012p-3);
	h = AG_FMA64(h, z, 0x1.c71c52125e893p-3);
	h = AG_FMA64(h, z, 0x1.24924941e325dp-2);
	h = AG_FMA64(h, z, 0x1.999999997ff06p-2);
	h = AG_FMA64(h, z, 0x1.5555555555592p-1);
	return h;
}

double ag_log_near_f64(double e, double f, double c) {
	double s = f / (2.0 + f);
	double z = s * s;
	double halved = (0.5 * f) * f;
	double v = AG_FMA64(s, AG_FMA64(ag_log_poly_f64(z), z, halved), e * 0x1.abc9e3b39803fp-56) + c;
	return AG_FMA64(e, 0x1.62e42fefa39efp-1, f - (halved - v));
}

double ag_log_f64(double x) {
	if (!(x >= 0.0)) return AG_FLOAT64(0x7ff8000000000001UL);
	if (x == 0.0) return AG_FLOAT64(0xfff0000000000000UL);
	if (x > 0x1.fffffffffffffp1023) return x;
	double shift = 1023.0;
	if (x < 0x1p-1022) {
		x *= 0x1p52;
		shift = 1023.0 + 52.0;
	}
	ulong b = AG_BITS64(x) + (0x3ff0000000000000UL - 0x3fe6a09e667f3bcdUL);
	double e = (double)(b >> 52) - shift;
	double f = AG_FLOAT64((b & 0xfffffffffffffUL) + 0x3fe6a09e667f3bcdUL) - 1.0;
	return ag_log_near_f64(e, f, 0.0);
}

double ag_log1p_f64(double x) {
	if (!(x >= -1.0)) return AG_FLOAT64(0x7ff8000000000001UL);
	if (x == -1.0) return AG_FLOAT64(0xfff0000000000000UL);
	if (x > 0x1.fffffffffffffp1023) return x;
	double high = x > 1.0 ? x : 1.0, low = x < 1.0 ? x : 1.0;
	double u = high + low;
	double c = low - (u - high);
	ulong b = AG_BITS64(u) + (0x3ff0000000000000UL - 0x3fe6a09e667f3bcdUL);
	double e = (double)(b >> 52) - 1023.0;
	double f = AG_FLOAT64((b & 0xfffffffffffffUL) + 0x3fe6a09e667f3bcdUL) - 1.0;
	c = c * AG_FLOAT64((2046UL << 52) - ((AG_BITS64(u < 0x1p64 ? u : 0x1p64) + (0x3ff0000000000000UL - 0x3fe6a09e667f3bcdUL)) & ~0xfffffffffffffUL));
	double y = f + c;
	return ag_copysign_f64(ag_log_near_f64(e, y, c - (y - f)), x);
}

double ag_circle_f64(double x, ulong *q) {
	if (!(x <= 1073741824.0)) {
		*q = 0;
		if (!(x <= 0x1.fffffffffffffp1023)) return AG_FLOAT64(0x7ff8000000000001UL);
		return ag_quarters_f64(x, q);
	}
	double n = AG_RINT64(x * 0.636619772367581343075535053490057448);
	*q = (ulong)n;
	double r = AG_FMA64(n, -0x1.921fb54442d18p+0, x);
	r = AG_FMA64(n, -0x1.1a62633145c07p-54, r);
	return AG_FMA64(n, 0x1.f1976b7ed8fbcp-110, r);
}

double ag_turn_f64(ulong q, double r) {
	double z = r * r, y;
	if ((q & 1) == 0) {
		double h = AG_FMA64(0x1.5d75b33b2c97ap-33, z, -0x1.ae5e01de77e38p-26);
		h = AG_FMA64(h, z, 0x1.71de34f898862p-19);
		h = AG_FMA64(h, z, -0x1.a01a019b806c9p-13);
		h = AG_FMA64(h, z, 0x1.111111110f3fep-7);
		h = AG_FMA64(h, z, -0x1.5555555555546p-3);
		y = AG_FMA64(h, r * z, r);
	} else {
		double h = AG_FMA64(-0x1.8f8ac4f415e91p-37, z, 0x1.1ee9a6770cdd9p-29);
		h = AG_FMA64(h, z, -0x1.27e4f7a36b629p-22);
		h = AG_FMA64(h, z, 0x1.a01a019c234d6p-16);
		h = AG_FMA64(h, z, -0x1.6c16c16c14bc5p-10);
		h = AG_FMA64(h, z, 0x1.5555555555549p-5);
		y = AG_FMA64(h, z * z, AG_FMA64(z, -0.5, 1.0));
	}
	return AG_FLOAT64(AG_BITS64(y) ^ ((q & 2) << 62));
}

double ag_sin_f64(double x) {
	ulong q;
	double r = ag_circle_f64(ag_abs_f64(x), &q);
	return AG_FLOAT64(AG_BITS64(ag_turn_f64(q, r)) ^ (AG_BITS64(x) & 0x8000000000000000UL));
}

double ag_cos_f64(double x) {
	ulong q;
	double r = ag_circle_f64(ag_abs_f64(x), &q);
	return ag_turn_f64(q + 1, r);
}

double ag_tanh_f64(double x) {
	if (x != x) return x;
	double a = ag_abs_f64(x), y;
	if (a < 0.55) {
		double z = a * a;
		double h = AG_FMA64(0x1.e4c1f48c095bep-18, z, -0x1.1134cb7ad1eccp-15);
		h = AG_FMA64(h, z, 0x1.88d8724e42f0ap-14);
		h = AG_FMA64(h, z, -0x1.f349edc7cd532p-13);
		h = AG_FMA64(h, z, 0x1.3539040f9d48cp-11);
		h = AG_FMA64(h, z, -0x1.7da103ec55abap-10);
		h = AG_FMA64(h, z, 0x1.d6d3b1039ca25p-9);
		h = AG_FMA64(h, z, -0x1.226e34cf75e4ap-7);
		h = AG_FMA64(h, z, 0x1.664f487f8e6ecp-6);
		h = AG_FMA64(h, z, -0x1.ba1ba1ba10e24p-5);
		h = AG_FMA64(h, z, 0x1.111111111108p-3);
		h = AG_FMA64(h, z, -0x1.5555555555555p-2);
		y = AG_FMA64(h, a * z, a);
	} else {
		double twice = a + a, n, p = ag_powers_near_f64(twice < 45.0 ? twice : 45.0, &n);
		y = 1.0 - 2.0 / AG_FMA64(p, ag_power_f64(n), 1.0);
	}
	return ag_copysign_f64(y, x);
}

double ag_erf_f64(double x) {
	if (x != x) return x;
	double a = ag_abs_f64(x), y;
	if (a < 1.0) {
		double z = a * a;
		double h = AG_FMA64(-0x1.a4256cd55db57p-31, z, 0x1.d45a039b0fabcp-27);
		h = AG_FMA64(h, z, -0x1.5b98e1e6acac5p-23);
		h = AG_FMA64(h, z, 0x1.b96c88a49c7a2p-20);
		h = AG_FMA64(h, z, -0x1.f4c83b0f795ffp-17);
		h = AG_FMA64(h, z, 0x1.f9a296916bab5p-14);
		h = AG_FMA64(h, z, -0x1.c02daeb040440p-11);
		h = AG_FMA64(h, z, 0x1.565bcceeacf8cp-8);
		h = AG_FMA64(h, z, -0x1.b82ce311a8ee4p-6);
		h = AG_FMA64(h, z, 0x1.ce2f21a03f8b9p-4);
		h = AG_FMA64(h, z, -0x1.812746b03799dp-2);
		h = AG_FMA64(h, z, 0x1.06eba8214db68p-3);
		y = AG_FMA64(h, a, a);
	} else {
		double t = (a < 6.0 ? a : 6.0) - 1.0;
		double h = AG_FMA64(0x1.14e2d2119a9d5p-36, t, -0x1.6d256a3ce3c06p-32);
		h = AG_FMA64(h, t, 0x1.9537ba128da5fp-29);
		h = AG_FMA64(h, t, -0x1.b18fdd61b68fcp-27);
		h = AG_FMA64(h, t, 0x1.0f4fdd6d69dc9p-28);
		h = AG_FMA64(h, t, 0x1.487b2e3fd1567p-22);
		h = AG_FMA64(h, t, -0x1.30a506de8da4dp-19);
		h = AG_FMA64(h, t, 0x1.49218c4dbcbc1p-17);
		h = AG_FMA64(h, t, -0x1.c9ff849b9bc50p-16);
		h = AG_FMA64(h, t, 0x1.ba0d763a83d11p-16);
		h = AG_FMA64(h, t, 0x1.f1a6122c21aabp-13);
		h = AG_FMA64(h, t, -0x1.033f31a6900e4p-9);
		h = AG_FMA64(h, t, 0x1.48c9d1e6a4d6ap-7);
		h = AG_FMA64(h, t, -0x1.5477f0903890ep-5);
		h = AG_FMA64(h, t, -0x1.afabc11a3226cp-1);
		h = AG_FMA64(h, t, -0x1.51c9b0006c196p+1);
		h = AG_FMA64(h, t, -0x1.d97fbf27aa2a2p+0);
		double n, p = ag_powers_near_f64(h, &n);
		y = AG_FMA64(p, -ag_power_f64(n), 1.0);
	}
	return ag_copysign_f64(y, x);
}

double ag_pow_f64(double x, double y) {
	if (y == 0.0 || x == 1.0) return 1.0;
	if (x != x || y != y) return AG_FLOAT64(0x7ff8000000000001UL);
	double base = ag_abs_f64(x), v = 1.0;
	if (base != 1.0) {
		double low, high = ag_log_parts_f64(base, &low);
		double p = y * high;
		v = ag_exp_parts_f64(p, AG_FMA64(y, low, AG_FMA64(y, high, -p)));
	}
	bool isInteger = AG_RINT64(y) == y;
	if (x < 0.0 && !isInteger && base <= 0x1.fffffffffffffp1023) return AG_FLOAT64(0x7ff8000000000001UL);
	if (isInteger && AG_RINT64(0.5 * y) != 0.5 * y) v = ag_copysign_f64(v, x);
	return v;
}

double ag_log_parts_poly_f64(double z) {
	double h = AG_FMA64(0x1.e02e6fff27908p-4, z, 0x1.df7cc8e5fa539p-4);
	h = AG_FMA64(h, z, 0x1.1118c7e4b0917p-3);
	h = AG_FMA64(h, z, 0x1.3b1395d2190c1p-3);
	h = AG_FMA64(h, z, 0x1.745d177a96056p-3);
	h = AG_FMA64(h, z, 0x1.c71c71c6eaa10p-3);
	h = AG_FMA64(h, z, 0x1.2492492492521p-2);
	h = AG_FMA64(h, z, 0x1.999999999999ap-2);
	return h;
}

double ag_log_parts_f64(double x, double *low) {
	*low = AG_FLOAT64(0x7ff8000000000001UL);
	if (x == 0.0) return AG_FLOAT64(0xfff0000000000000UL);
	if (x > 0x1.fffffffffffffp1023) return x;
	double shift = 1023.0;
	if (x < 0x1p-1022) {
		x *= 0x1p52;
		shift = 1023.0 + 52.0;
	}
	ulong b = AG_BITS64(x) + (0x3ff0000000000000UL - 0x3fe6a09e667f3bcdUL);
	double e = (double)(b >> 52) - shift;
	double f = AG_FLOAT64((b & 0xfffffffffffffUL) + 0x3fe6a09e667f3bcdUL) - 1.0;
	double d = 2.0 + f;
	double d1 = f - (d - 2.0);
	double inverse = 1.0 / d;
	double s = f * inverse;
	double s1 = AG_FMA64(-s, d1, AG_FMA64(-s, d, f)) * inverse;
	double z = s * s;
	double z1 = AG_FMA64(s + s, s1, AG_FMA64(s, s, -z));
	double h = ag_log_parts_poly_f64(z) * z;
	double t = 0x1.5555555555555p-1 + h;
	double t1 = (0x1.5555555555555p-1 - t) + h + 0x1.5555555555555p-55;
	double u = z * t;
	double u1 = AG_FMA64(z1, t, AG_FMA64(z, t1, AG_FMA64(z, t, -u)));
	double w = s * u;
	double w1 = AG_FMA64(s1, u, AG_FMA64(s, u1, AG_FMA64(s, u, -w)));
	double a = (s + s) + w;
	double a1 = ((s + s) - a) + w + (w1 + (s1 + s1));
	double k = e * 0x1.62e42fefa3p-1;
	double sum = k + a;
	double rest = (k - sum) + a + AG_FMA64(e, 0x1.3de6af278ece6p-42, a1);
	double high = sum + rest;
	*low = (sum - high) + rest;
	return high;
}

double ag_exp_parts_f64(double x, double rest) {
	if (!(ag_abs_f64(x) < 1000.0)) rest = 0.0;
	double y = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
	double n = AG_RINT64(AG_FMA64(y, 1.44269504088896340735992468100189214, -0.1394));
	double r = AG_FMA64(n, -0x1.62e42fefa39efp-1, y);
	r += AG_FMA64(n, -0x1.abc9e3b39803fp-56, rest);
	double h = ag_exp_poly_f64(r);
	h = AG_FMA64(h, r, 1.0);
	double p = AG_FMA64(h, r, 1.0);
	double halved = AG_FLOOR64(0.5 * n);
	return p * ag_power_f64(halved) * ag_power_f64(n - halved);
}

float ag_max_f32(float x, float y) {
	if (x != x || x > y) return x;
	if (y != y || y > x) return y;
	return AG_FLOAT32(AG_BITS32(x) & AG_BITS32(y));
}

double ag_max_f64(double x, double y) {
	if (x != x || x > y) return x;
	if (y != y || y > x) return y;
	return AG_FLOAT64(AG_BITS64(x) & AG_BITS64(y));
}

long ag_max_i64(long x, long y) { return x > y ? x : y; }

float ag_min_f32(float x, float y) {
	if (x != x || x < y) return x;
	if (y != y || y < x) return y;
	return AG_FLOAT32(AG_BITS32(x) | AG_BITS32(y));
}

double ag_min_f64(double x, double y) {
	if (x != x || x < y) return x;
	if (y != y || y < x) return y;
	return AG_FLOAT64(AG_BITS64(x) | AG_BITS64(y));
}

long ag_min_i64(long x, long y) { return x < y ? x : y; }

// Integers wrap around: signed ones must not overflow in C.
long ag_neg_i64(long x) { return (long)(0 - (ulong)x); }

long ag_abs_i64(long x) { return x < 0 ? (long)(0 - (ulong)x) : x; }

long ag_add_i64(long x, long y) { return (long)((ulong)x + (ulong)y); }

long ag_sub_i64(long x, long y) { return (long)((ulong)x - (ulong)y); }

long ag_mul_i64(long x, long y) { return (long)((ulong)x * (ulong)y); }

// A zero divisor sets *wrong. A divisor of -1 negates instead, as the division could overflow.
long ag_div_i64(long x, long y, int *wrong) {
	if (y == 0) {
		*wrong = 1;
		return 0;
	}
	return y == -1 ? (long)(0 - (ulong)x) : x / y;
}

long ag_shl_i64(long x, long n) { return (ulong)n < 64 ? (long)((ulong)x << n) : 0; }

long ag_shr_i64(long x, long n) { return x >> ((ulong)n < 64 ? n : 63); }

// What the division x / y, truncated, leaves. Each step divides by the significand of y and moves as many binary digits
// of x up as there is room for.
float ag_mod_f32(float x, float y) {
	uint a = AG_BITS32(x) & 0x7fffffff, b = AG_BITS32(y) & 0x7fffffff;
	if (b == 0 || a >= 0x7f800000 || b > 0x7f800000) return AG_FLOAT32(0x7fc00000);
	if (a < b) return x;
	int e = a >> 23 ? (int)(a >> 23) : 1, f = b >> 23 ? (int)(b >> 23) : 1;
	ulong m = a >> 23 ? (a & 0x7fffff) | 0x800000 : a, n = b >> 23 ? (b & 0x7fffff) | 0x800000 : b;
	for (int left = e - f; left > 0; left -= 40) m = (m % n) << (left < 40 ? left : 40);
	m %= n;
	if (m == 0) return AG_FLOAT32(AG_BITS32(x) & 0x80000000);
	for (; m < 0x800000 && f > 1; f--) m <<= 1;
	uint result = m < 0x800000 ? (uint)m : ((uint)m & 0x7fffff) | ((uint)f << 23);
	return AG_FLOAT32(result | (AG_BITS32(x) & 0x80000000));
}

double ag_mod_f64(double x, double y) {
	ulong a = AG_BITS64(x) & 0x7fffffffffffffffUL, b = AG_BITS64(y) & 0x7fffffffffffffffUL;
	if (b == 0 || a >= 0x7ff0000000000000UL || b > 0x7ff0000000000000UL) return AG_FLOAT64(0x7ff8000000000000UL);
	if (a < b) return x;
	int e = a >> 52 ? (int)(a >> 52) : 1, f = b >> 52 ? (int)(b >> 52) : 1;
	ulong m = a >> 52 ? (a & 0xfffffffffffffUL) | 0x10000000000000UL : a, n = b >> 52 ? (b & 0xfffffffffffffUL) | 0x10000000000000UL : b;
	for (int left = e - f; left > 0; left -= 11) m = (m % n) << (left < 11 ? left : 11);
	m %= n;
	if (m == 0) return AG_FLOAT64(AG_BITS64(x) & 0x8000000000000000UL);
	for (; m < 0x10000000000000UL && f > 1; f--) m <<= 1;
	ulong result = m < 0x10000000000000UL ? m : (m & 0xfffffffffffffUL) | ((ulong)f << 52);
	return AG_FLOAT64(result | (AG_BITS64(x) & 0x8000000000000000UL));
}

long ag_pow_i64(long x, long n, int *wrong) {
	if (n < 0) {
		if (x == 0) *wrong = 1;
		if (x == 1) return 1;
		if (x == -1) return 1 - 2 * (n & 1);
		return 0;
	}
	ulong result = 1, square = (ulong)x;
	for (; n > 0; n >>= 1) {
		if (n & 1) result *= square;
		square *= square;
	}
	return (long)result;
}

long ag_long_f32(float x) {
	if (x != x) return 0;
	if (x >= 0x1p63f) return 0x7fffffffffffffffL;
	if (x < -0x1p63f) return (long)0x8000000000000000UL;
	return (long)x;
}

long ag_long_f64(double x) {
	if (x != x) return 0;
	if (x >= 0x1p63) return 0x7fffffffffffffffL;
	if (x < -0x1p63) return (long)0x8000000000000000UL;
	return (long)x;
}

// Numbers of 16 bits, as package device converts them.
ushort ag_to_f16(float x) {
	uint b = AG_BITS32(x);
	uint sign = b >> 16 & 0x8000u;
	b &= 0x7fffffffu;
	if (b > 0x7f800000u) return (ushort)(sign | 0x7e00u | (b >> 13 & 0x3ffu));
	if (b >= 0x477ff000u) return (ushort)(sign | 0x7c00u);
	if (b < 0x38800000u) return (ushort)(sign | (AG_BITS32(AG_FLOAT32(b) + 0.5f) - 0x3f000000u));
	b -= 112u << 23;
	return (ushort)(sign | (b + 0xfffu + (b >> 13 & 1u)) >> 13);
}

float ag_from_f16(ushort h) {
	uint sign = (h & 0x8000u) << 16, b = h & 0x7fffu;
	if (b > 0x7c00u) return AG_FLOAT32(sign | 0x7fc00000u | b << 13);
	if (b == 0x7c00u) return AG_FLOAT32(sign | 0x7f800000u);
	if (b < 0x400u) return AG_FLOAT32(sign | AG_BITS32((float)b * 0x1p-24f));
	return AG_FLOAT32(sign | ((b << 13) + (112u << 23)));
}

ushort ag_to_bf16(float x) {
	uint b = AG_BITS32(x);
	if ((b & 0x7fffffffu) > 0x7f800000u) return (ushort)(b >> 16 | 0x40u);
	return (ushort)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}

float ag_from_bf16(ushort h) { return AG_FLOAT32((uint)h << 16); }

float ag_odd_f64(double x) {
	float y = (float)x;
	uint b = AG_BITS32(y);
	if ((double)y == x || (b & 1u) != 0 || x != x) return y;
	bool isBelow = x < 0 ? (double)y > x : (double)y < x;
	return AG_FLOAT32(isBelow ? b + 1 : b - 1);
}

float ag_odd_i64(long x) {
	ulong m = x < 0 ? 0 - (ulong)x : (ulong)x;
	uint zeros = m == 0 ? 64 : AG_LEADING_ZEROS(m);
	uint rest = zeros < 40 ? 40 - zeros : 0;
	ulong q = m >> rest;
	if (q << rest != m) q |= 1;
	float y = (float)(q << rest);
	return x < 0 ? -y : y;
}

// Ten rounds of Philox4x32. w is the counter and becomes the result.
void ag_philox(uint *w, uint k0, uint k1) {
	for (int round = 0; round < 10; round++) {
		ulong p0 = (ulong)w[0] * 0xD2511F53u, p1 = (ulong)w[2] * 0xCD9E8D57u;
		uint next0 = (uint)(p1 >> 32) ^ w[1] ^ k0, next2 = (uint)(p0 >> 32) ^ w[3] ^ k1;
		w[0] = next0;
		w[1] = (uint)p1;
		w[2] = next2;
		w[3] = (uint)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
}

void ag_uniform_f32(const uint *w, float *x, long lo, ulong span) {
	for (int i = 0; i < 4; i++) x[i] = (float)(w[i] >> 8) * 0x1p-24f;
}

ulong ag_wide(uint low, uint high) { return (ulong)low | ((ulong)high << 32); }

void ag_uniform_f64(const uint *w, double *x, long lo, ulong span) {
	for (int i = 0; i < 2; i++) x[i] = (double)(ag_wide(w[2 * i], w[2 * i + 1]) >> 11) * 0x1p-53;
}

void ag_ints_i64(const uint *w, long *x, long lo, ulong span) {
	for (int i = 0; i < 2; i++) x[i] = (long)((ulong)lo + ag_mul_high(ag_wide(w[2 * i], w[2 * i + 1]), span));
}

float ag_radius_log_f32(float u) {
	uint b = AG_BITS32(u);
	float e = (float)((int)(b >> 23) - 126);
	float m = AG_FLOAT32((b & 0x7fffffu) | (126u << 23));
	if (m < 0.707106781186547524400844362104849039f) {
		e -= 1.0f;
		m += m;
	}
	m -= 1.0f;
	float z = m * m;
	float y = 7.0376836292e-2f;
	y = y * m + -1.1514610310e-1f;
	y = y * m + 1.1676998740e-1f;
	y = y * m + -1.2420140846e-1f;
	y = y * m + 1.4249322787e-1f;
	y = y * m + -1.6668057665e-1f;
	y = y * m + 2.0000714765e-1f;
	y = y * m + -2.4999993993e-1f;
	y = y * m + 3.3333331174e-1f;
	y = (y * m) * z;
	y += -2.12194440e-4f * e;
	y -= 0.5f * z;
	return (m + y) + 0.693359375f * e;
}

void ag_polar_f32(uint a, uint b, float *x) {
	float u = ((float)(int)(a >> 1) + 0.5f) * 0x1p-31f;
	float radius = AG_SQRT32(-2.0f * ag_radius_log_f32(u));
	uint quarter = (b + (1u << 29)) >> 30;
	float angle = (float)(int)(b - (quarter << 30)) * (6.28318530717958647692528676655900576839f * 0x1p-32f);
	float z = angle * angle;
	float s = -1.9515295891e-4f;
	s = s * z + 8.3321608736e-3f;
	s = s * z + -1.6666654611e-1f;
	s = (s * z) * angle + angle;
	float c = 2.443315711809948e-5f;
	c = c * z + -1.388731625493765e-3f;
	c = c * z + 4.166664568298827e-2f;
	c = (c * z) * z - 0.5f * z + 1.0f;
	float turned = quarter & 1 ? s : c, other = quarter & 1 ? c : s;
	quarter &= 3;
	x[0] = radius * (quarter == 1 || quarter == 2 ? -turned : turned);
	x[1] = radius * (quarter >= 2 ? -other : other);
}

void ag_normal_f32(const uint *w, float *x, long lo, ulong span) {
	ag_polar_f32(w[0], w[1], x);
	ag_polar_f32(w[2], w[3], x + 2);
}

double ag_radius_log_f64(double u) {
	ulong b = AG_BITS64(u);
	double k = (double)((long)(b >> 52) - 1022);
	double m = AG_FLOAT64((b & 0xfffffffffffffUL) | (1022UL << 52));
	if (m < 0.707106781186547524400844362104849039) {
		k -= 1.0;
		m += m;
	}
	double f = m - 1.0;
	double s = f / (2.0 + f);
	double s2 = s * s;
	double s4 = s2 * s2;
	double odd = 1.479819860511658591e-01;
	odd = odd * s4 + 1.818357216161805012e-01;
	odd = odd * s4 + 2.857142874366239149e-01;
	odd = odd * s4 + 6.666666666666735130e-01;
	odd = s2 * odd;
	double even = 1.531383769920937332e-01;
	even = even * s4 + 2.222219843214978396e-01;
	even = even * s4 + 3.999999999940941908e-01;
	even = s4 * even;
	double halved = 0.5 * f * f;
	double low = s * (halved + (odd + even)) + k * 1.90821492927058770002e-10;
	return k * 6.93147180369123816490e-01 - ((halved - low) - f);
}

void ag_normal_f64(const uint *w, double *x, long lo, ulong span) {
	double u = ((double)(ag_wide(w[0], w[1]) >> 11) + 0.5) * 0x1p-53;
	double radius = AG_SQRT64(-2.0 * ag_radius_log_f64(u));
	ulong b = ag_wide(w[2], w[3]);
	ulong quarter = (b + (1UL << 61)) >> 62;
	double angle = (double)(long)(b - (quarter << 62)) * (6.28318530717958647692528676655900576839 * 0x1p-64);
	double z = angle * angle;
	double s = 1.58962301576546568060e-10;
	s = s * z + -2.50507477628578072866e-8;
	s = s * z + 2.75573136213857245213e-6;
	s = s * z + -1.98412698295895385996e-4;
	s = s * z + 8.33333333332211858878e-3;
	s = s * z + -1.66666666666666307295e-1;
	s = (s * z) * angle + angle;
	double c = -1.13585365213876817300e-11;
	c = c * z + 2.08757008419747316778e-9;
	c = c * z + -2.75573141792967388112e-7;
	c = c * z + 2.48015872888517045348e-5;
	c = c * z + -1.38888888888730564116e-3;
	c = c * z + 4.16666666666665929218e-2;
	c = (c * z) * z - 0.5 * z + 1.0;
	double turned = quarter & 1 ? s : c, other = quarter & 1 ? c : s;
	quarter &= 3;
	x[0] = radius * (quarter == 1 || quarter == 2 ? -turned : turned);
	x[1] = radius * (quarter >= 2 ? -other : other);
}

// Loads four elements, step apart, from in[at] on. Only the first n exist; the others become 0. isVector says that
// they are neighbours and begin at a multiple of 16 bytes.
AG_INLINE void ag_fetch(float4 *v, AG_GLOBAL const float *in, long at, long step, long n, uint isVector)
{
	if (isVector && n >= 4) {
		*v = *(AG_GLOBAL const float4 *)(in + at);
		return;
	}
	v->x = n > 0 ? in[at] : 0;
	v->y = n > 1 ? in[at + step] : 0;
	v->z = n > 2 ? in[at + 2 * step] : 0;
	v->w = n > 3 ? in[at + 3 * step] : 0;
}
