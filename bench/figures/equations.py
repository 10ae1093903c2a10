"""The fused-kernels paper's launch parameters by its equations 4 to 6 (section 3.3), from the limits of a GPU that it names."""
import collections
import math

# A multiprocessor's limits: how many there are, on-chip bytes, threads, work-groups, registers.
Limits = collections.namedtuple("Limits", "processors shared threads groups registers")
TITAN = Limits(14, 48 << 10, 2048, 16, 1 << 16)
WARP, REGISTERS, UNIT = 32, 43, 256  # registers of a thread of the sparse kernel, and how many a warp gets at a time
GRANULARITY = 4  # warps that get registers together
MOST_LOAD, LEAST_REGISTERS, MOST_REGISTERS = 40, 24, 255  # of the dense kernel, by its load


def of_gpu(run):
    """Those of the run's GPU, where CuPy can ask for them; else the paper's."""
    if run.kind != "cuda" or run.lacks("cupy"):
        return TITAN
    import cupy
    has = cupy.cuda.Device().attributes
    return Limits(has["MultiProcessorCount"], has["MaxSharedMemoryPerMultiprocessor"], has["MaxThreadsPerMultiProcessor"],
                  has["MaxBlocksPerMultiprocessor"], has["MaxRegistersPerMultiprocessor"])


def warps(limits, group, registers, shared):
    """Returns how many warps of groups of so many threads a multiprocessor holds at a time."""
    by_registers = limits.registers // (-(-registers * WARP // UNIT) * UNIT) // GRANULARITY * GRANULARITY
    groups = min(by_registers * WARP // group, limits.threads // group, limits.groups, limits.shared // shared if shared else limits.groups)
    return groups * group // WARP


def sparse(limits, rows, cols, entries, element):
    """VS by equation 4, the largest of the BS that keep the most warps, C by equation 5."""
    mean = entries / rows
    vector = 32 if mean > 32 else 1 if mean <= 2 else 2 ** max(i for i in range(1, 5) if mean > 2 ** i)
    held = {group: warps(limits, group, REGISTERS, (group // vector + cols) * element) for group in range(WARP, 1024 + 1, WARP)}
    group = max(held, key=lambda group: (held[group], group))
    vectors = limits.processors * held[group] * WARP // vector
    return {"VS": vector, "BS": group, "C": math.ceil(rows / vectors) if vectors else 0}


def dense(limits, cols):
    """TL with the most warps but for those of a vector that have nothing to do, VS by equation 6; BS is 128, or 1,024 for narrow rows."""
    if cols <= WARP:
        return {"VS": vector_of(1, cols, 1024), "BS": 1024, "TL": 1}
    group, found = 128, {}
    for load in range(1, MOST_LOAD + 1):
        vector = vector_of(load, cols, group)
        if vector * load >= cols:
            registers = LEAST_REGISTERS + (MOST_REGISTERS - LEAST_REGISTERS) * (load - 1) / (MOST_LOAD - 1)
            wasted = (vector * load - cols) // WARP / (vector / WARP)
            found[load] = warps(limits, group, math.ceil(registers), 0) * (1 - wasted)
    load = max(found, key=lambda load: (found[load], -load))
    return {"VS": vector_of(load, cols, group), "BS": group, "TL": load}


def vector_of(load, cols, group):
    """Equation 6."""
    shares = cols / load
    return group if shares > 32 else 1 if shares <= 1 else 2 ** math.ceil(math.log2(shares))
