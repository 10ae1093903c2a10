/* A pack: built kernels for NVIDIA's GPUs in one file, made elsewhere and ahead of time, so that a first use
 * compiles nothing.
 *
 *   pack   = header, index, contents; numbers are little-endian
 *   header = "KILNPACK" format[4] rows[4] build id[64] SHA-256(the 80 bytes before, index)[32]
 *   index  = rows in ascending order: key[32] architecture[4] length of the name[4] offset[8] size[8]
 *     SHA-256(content)[32]
 *   content = the name ("csr f32 -DVS=16"), machine code or PTX
 *
 * The key is SHA-256 of options and source, for machine code depends on nothing else but the architecture.
 * A row serves GPUs of its compute capability and of later ones with the same major number, as NVIDIA
 * promises (but for Tegra, whose driver refuses it). PTX, which has the bit KI_PACK_PTX in its architecture,
 * serves every later one: the driver makes machine code of it, and keeps that. The build id is that of the
 * library that made the pack, for another one may launch its kernels in another way.
 *
 * A pack is as trusted as a library is: it must belong to the user or to root, and nobody else may write to
 * it; where it lies beside the library, nobody who may not write to that one. The hashes tell accidents. */
#ifndef KI_PACK_H
#define KI_PACK_H

#include "core/device.h"

/* Packs are looked for once in a process: KILN_KERNEL_PACK, kiln-kernels.pack beside the library, and the
 * same name in the cache folder.
 * Whether one of them holds kernels for GPUs of this architecture (90 for compute capability 9.0). */
bool ki_pack_serves(int architecture);
/* Returns whether there is a pack that is not used; `text` says which and why. */
bool ki_pack_trouble(char *text, size_t room);
/* The machine code of a program for the device, whose source has this SHA-256 in hexadecimal; *code (from
 * ki_resize) stays NULL if no pack has it. What is wrong with a pack is told once through the device's
 * message callback, and the pack is then as good as empty. */
kiln_status ki_pack_get(void **code, size_t *bytes, kiln_device *device, const char *source_hash,
                        const char *options);
/* Returns whether a pack lists it. */
bool ki_pack_lists(const kiln_device *device, const char *source_hash, const char *options);

enum { KI_PACK_PTX = 1 << 16 };

/* A program that was built. */
struct ki_packed {
    uint8_t key[32];
    int architecture;
    const char *name;
    void *code;
    size_t bytes;
};
void ki_pack_key(uint8_t key[32], const char *source_hash, const char *options);
/* Sorts *count programs and writes each once, of which there are *count afterwards; readers of the path see
 * what was there before or all of it. */
kiln_status ki_pack_write(const char *path, struct ki_packed *programs, int64_t *count);

#endif
