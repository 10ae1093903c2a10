"""python3 wire.py BUILD OUT: seconds of a vector on its way between processes by its size, through the
plug-in that kiln --mpi uses: to all, and the sum of all's. OUT/wire.json gets the least of some turns, with
2, 3 and 4 processes of Open MPI on one machine."""
import ctypes, datetime, json, math, os, subprocess, sys, time

BUILD, OUT = map(os.path.abspath, sys.argv[1:3])
BYTES, TURNS = [1 << s for s in (3, 10, 16, 20, 22, 24, 26)], 5
MOST = 1 << 22  # bytes of one call: src/processes/transport.h, as the struct
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")


class Transport(ctypes.Structure):
    call, v, i, n = ctypes.CFUNCTYPE, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    _fields_ = [("version", i), ("rank", i), ("count", i), ("local", i), ("local_count", i), ("watched", i),
                ("name", ctypes.c_char * 128), ("of", v), ("limit", ctypes.c_double),
                ("broadcast", call(i, v, v, n, i)), ("send", call(i, v, i, v, n)),
                ("receive", call(i, v, i, v, n)), ("exchange", call(i, v, v)),
                ("sum", call(i, v, v, n, i, i)), ("text", v), ("end", v), ("leave", call(None, v))]


def measure():
    """In each process, all of which begin and end a turn together."""
    t = Transport(version=2, limit=20)
    assert ctypes.CDLL(f"{BUILD}/libkiln-openmpi.so",
                       ctypes.RTLD_GLOBAL).kiln_transport_join(ctypes.byref(t), -1) == 0
    memory = ctypes.create_string_buffer(max(BYTES))
    at, rows = ctypes.addressof(memory), []
    for size in BYTES:
        least = {"broadcast": math.inf, "sum": math.inf}
        for what in TURNS * list(least):
            t.sum(t.of, at, 1, 8, 0), t.broadcast(t.of, at, 8, 0)
            began = time.monotonic()
            for first in range(0, size, MOST):
                piece = min(MOST, size - first)
                t.broadcast(t.of, at + first, piece,
                            0) if what == "broadcast" else t.sum(t.of, at + first, piece // 8, 8, 0)
            t.sum(t.of, at, 1, 8, 0)
            least[what] = min(least[what], time.monotonic() - began)
        rows.append({"processes": t.count, "bytes": size, **least})
    if t.rank == 0: print(json.dumps(rows))
    t.leave(t.of)


def main():
    told = {"benchmark": "a vector to all processes, and the sum of all's, Open MPI on one machine: seconds",
            "device": f"CPU, {os.cpu_count()} cores", "date": str(datetime.date.today()),
            "commit": os.environ.get("COMMIT", "unknown"), "rows": []}
    for count in (2, 3, 4):
        command = ["mpirun", "-n", str(count), "--bind-to", "none", sys.executable, __file__, BUILD, OUT,
                   "each"]
        told["rows"] += json.loads(subprocess.run(command, env=ENV, capture_output=True, text=True,
                                                  check=True, timeout=60).stdout)
    with open(f"{OUT}/wire.json", "w") as file: json.dump(told, file, indent=1)


measure() if sys.argv[3:] == ["each"] else main()
