/* Bulk copies into on-chip memory and the tickets (mbarriers) that tell when they have come, from compute
 * capability 9.0 on, through CUDA and through NVIDIA's OpenCL (PTX ISA, "Asynchronous copy" and "mbarrier").
 * For the kernels that keep a ring of tiles: CUDA gives it at launch, OpenCL where it is declared. */
#ifndef BULK_H
#define BULK_H
#if defined(KILN_CUDA) || (defined(KILN_NVIDIA) && KILN_NVIDIA >= 90)
#define BULK
#endif

/* Elements that a copy is a multiple of: 16 bytes. It begins at a multiple of a sector of the memory, 32
 * bytes, as from between sectors each of its lines would touch one more; and in its place at the same bytes
 * of a line of 128 as in memory. */
#ifdef REAL_F64
#define BULK_UNIT 2
#else
#define BULK_UNIT 4
#endif
#define BULK_BEGIN (2 * BULK_UNIT)
#define BULK_LINE (8 * BULK_UNIT)

#if defined(BULK) && (defined(RING) || defined(TEAM) || defined(TILE) || defined(TENSOR) || defined(SCREEN))

#ifdef KILN_OPENCL
#define PTX __asm__ volatile
#define PTX_PURE __asm__
#define RING_BEGIN LOCAL real ring[RING_BYTES / sizeof(real)] __attribute__((aligned(128)));
#else
#define RING_BEGIN
#ifdef __CUDA_ARCH__ /* not where only the syntax is checked */
#define PTX asm volatile
#define PTX_PURE asm
extern __shared__ __align__(128) real ring[];
#else
#define PTX(...) (void)0
#define PTX_PURE(...) (void)0
static real ring[1];
#endif
#endif

DEVICE_FN uint shared_address(LOCAL_PTR const void *pointer) {
#ifdef KILN_OPENCL
    return (uint)(ulong)pointer;
#elif defined(__CUDA_ARCH__)
    return (uint)__cvta_generic_to_shared(pointer);
#else
    return pointer != 0;
#endif
}

DEVICE_FN void ticket_init(LOCAL_PTR ulong *ticket, uint arrivals) {
    PTX("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(ticket)), "r"(arrivals) : "memory");
}

/* After all of them, before anyone uses one. */
DEVICE_FN void tickets_begin(void) {
    PTX("fence.mbarrier_init.release.cluster;" : : : "memory");
}

DEVICE_FN void ticket_expect(LOCAL_PTR ulong *ticket, uint bytes) {
    PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
        :
        : "r"(shared_address(ticket)), "r"(bytes)
        : "memory");
}

DEVICE_FN void ticket_wait(LOCAL_PTR ulong *ticket, uint phase) {
    PTX("{\n\t.reg .pred done;\n\t"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
        "@!done bra again;\n\t}"
        :
        : "r"(shared_address(ticket)), "r"(phase)
        : "memory");
}

/* bytes is a multiple of 16, as are both addresses. X is read once: it leaves the second cache level
 * first. */
DEVICE_FN void bulk_copy(LOCAL_PTR real *to, __global const real *from, uint bytes, LOCAL_PTR ulong *ticket) {
    PTX("{\n\t.reg .b64 policy;\n\t"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
        "[%3], policy;\n\t}"
        :
        : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(ticket))
        : "memory");
}

/* Counts the warps that are done with a tile: true for the last of them, after which the count begins anew.
 * The order that this makes between their loads and the next copy is one that compute-sanitizer's racecheck
 * does not see. */
DEVICE_FN bool last_warp(LOCAL_PTR uint *done, uint warps) {
    uint before = 0;
    PTX("atom.acq_rel.cta.shared::cta.inc.u32 %0, [%1], %2;"
        : "=r"(before)
        : "r"(shared_address(done)), "r"(warps - 1)
        : "memory");
    return before == warps - 1;
}

/* Returns whether `here` holds in all lanes of the warp. */
DEVICE_FN bool all_lanes(bool here) {
    uint all = 0;
    PTX("{\n\t.reg .pred here, all;\n\tsetp.ne.u32 here, %1, 0;\n\t"
        "vote.sync.all.pred all, here, 0xffffffff;\n\tselp.u32 %0, 1, 0, all;\n\t}"
        : "=r"(all)
        : "r"((uint)here));
    return all != 0;
}

#endif
#endif
