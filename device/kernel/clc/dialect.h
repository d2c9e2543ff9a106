// The dialect: OpenCL C 1.2. Kernels call OpenCL's functions through these macros. clang's target for NVIDIA's PTX has
// none of the functions and gets macros of its own. So one text serves both.
#ifdef __NVPTX__
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef uchar uchar4 __attribute__((ext_vector_type(4)));
typedef ushort ushort4 __attribute__((ext_vector_type(4)));
typedef int int4 __attribute__((ext_vector_type(4)));
typedef long long4 __attribute__((ext_vector_type(4)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef double double4 __attribute__((ext_vector_type(4)));
#define AG_LOCAL_ID ((uint)__nvvm_read_ptx_sreg_tid_x())
#define AG_LOCAL_SIZE ((uint)__nvvm_read_ptx_sreg_ntid_x())
#define AG_GROUP ((ulong)(uint)__nvvm_read_ptx_sreg_ctaid_x())
#define AG_GROUPS ((ulong)(uint)__nvvm_read_ptx_sreg_nctaid_x())
#define AG_BARRIER __nvvm_bar_sync(0)
#define AG_BARRIER_GLOBAL __nvvm_bar_sync(0)
#define AG_FMA32(x, y, z) __builtin_fmaf(x, y, z)
#define AG_FMA64(x, y, z) __builtin_fma(x, y, z)
#define AG_RINT32(x) __builtin_rintf(x)
#define AG_RINT64(x) __builtin_rint(x)
#define AG_FLOOR32(x) __builtin_floorf(x)
#define AG_FLOOR64(x) __builtin_floor(x)
#define AG_CEIL32(x) __builtin_ceilf(x)
#define AG_CEIL64(x) __builtin_ceil(x)
#define AG_SQRT32(x) __nvvm_sqrt_rn_f(x)
#define AG_SQRT64(x) __nvvm_sqrt_rn_d(x)
#define AG_LEADING_ZEROS(x) ((uint)__builtin_clzl(x))
#define AG_BITS32(x) __builtin_astype((float)(x), uint)
#define AG_BITS64(x) __builtin_astype((double)(x), ulong)
#define AG_FLOAT32(x) __builtin_astype((uint)(x), float)
#define AG_FLOAT64(x) __builtin_astype((ulong)(x), double)
#else
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define AG_LOCAL_ID ((uint)get_local_id(0))
#define AG_LOCAL_SIZE ((uint)get_local_size(0))
#define AG_GROUP ((ulong)get_group_id(0))
#define AG_GROUPS ((ulong)get_num_groups(0))
#define AG_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define AG_BARRIER_GLOBAL barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define AG_FMA32(x, y, z) fma((float)(x), (float)(y), (float)(z))
#define AG_FMA64(x, y, z) fma((double)(x), (double)(y), (double)(z))
#define AG_RINT32(x) rint((float)(x))
#define AG_RINT64(x) rint((double)(x))
#define AG_FLOOR32(x) floor((float)(x))
#define AG_FLOOR64(x) floor((double)(x))
#define AG_CEIL32(x) ceil((float)(x))
#define AG_CEIL64(x) ceil((double)(x))
#define AG_SQRT32(x) sqrt((float)(x))
#define AG_SQRT64(x) sqrt((double)(x))
#define AG_LEADING_ZEROS(x) ((uint)clz((ulong)(x)))
#define AG_BITS32(x) as_uint((float)(x))
#define AG_BITS64(x) as_ulong((double)(x))
#define AG_FLOAT32(x) as_float((uint)(x))
#define AG_FLOAT64(x) as_double((ulong)(x))
#endif
#pragma OPENCL FP_CONTRACT OFF
#define AG_KERNEL __kernel
#define AG_INLINE static inline
#define AG_SIZE(n) __attribute__((reqd_work_group_size(n, 1, 1)))
#define AG_GLOBAL __global
#define AG_LOCAL __local
#define AG_CONSTANT __constant
#define AG_GLOBAL_ID (AG_GROUP * AG_LOCAL_SIZE + AG_LOCAL_ID)
#define AG_GLOBAL_SIZE (AG_GROUPS * AG_LOCAL_SIZE)
