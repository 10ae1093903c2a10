"""An allocation that fails ends the tool with exit code 6 and says so, or changes nothing: it never crashes,
takes a good model for a damaged one, or leaves half a result.

usage: memory_test.py KILN PRELOADED [MOST]: of each verb's allocations at most so many fail, one a
       run; 0: all of them
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

KILN, PRELOADED = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MOST = int(sys.argv[3]) if len(sys.argv) > 3 else 40

VERBS = ["logreg d.csv --target y --json -o m2.kiln", "linreg n.csv --target y --json -o m3.kiln",
         "linreg n.csv --target y --cv 3 --json", "glm n.csv --target y --family gamma --json",
         "svm d.csv --target y --json", "als r.csv --json -o als2.kiln", "kmeans n.csv -k 3 --json",
         "pagerank e.txt --format edges --json", "hits e.txt --format edges", "info m.kiln --json",
         "info m.kiln", "info n.csv --json", "predict m.kiln d.csv -o p.csv", "evaluate m.kiln d.csv --json",
         "statistics lm.kiln n.csv --errors hc3 --residuals r2.csv --json", "verify m.kiln d.csv --json",
         "verify km.kiln n.csv --json", "coefficients m.kiln",
         "recommend als.kiln r.csv", "recommend als.kiln --item i1 --json", "convert d.csv d.npz",
         "logreg d.csv --target y --warm-start m.kiln --json", "lda r.csv --format ratings -k 2 --json",
         "sfa r.csv --json", "gap r.csv --format ratings -k 2 --json", "mds n.csv --json",
         "predict km.kiln n.csv --json", "devices --json", "svd n.csv -k 2 --json",
         "pca n.csv -k 2 --scale -o pca2.kiln --coordinates rows.csv", "verify pca.kiln n.csv --json",
         "spectral e.txt --format edges -k 2 --json", "svd r.csv --format ratings -k 2 --center --json",
         "mmchain r.mtx y.csv -o z.csv --json", "sddmm r.mtx u.csv v.csv -o s.mtx --json",
         "evaluate lm.kiln n.csv --json", "convert d.csv d2.kiln-data --target y", "info d.kiln-data --json",
         "logreg d.kiln-data --map --json -o m4.kiln", "kmeans k.npy -k 3 --map --memory 92K --json",
         "pca k.npy -k 2 --map --json", "linreg k.npy --target -1 --json",
         "als r.npz --map --json", "pagerank e.npz --map --json"]


def begin():
    r = random.Random(1)
    tables = {"r.csv": ["user,item,rating"] + [f"u{r.randrange(12)},i{k % 9},{r.randrange(1, 6)}"
                                               for k in range(60)],
              "d.csv": ["a,b,c,y"]
              + [f"{r.random():.3f},{r.random():.3f},{r.choice('uvw')},{r.choice(['no', 'yes'])}"
                 for _ in range(60)],
              "n.csv": ["a,b,y"] + [f"{r.random():.3f},{r.random():.3f},{r.random():.3f}" for _ in range(40)],
              "y.csv": ["y", *map(str, range(9))], "u.csv": ["a,b", *("1,2" for _ in range(12))],
              "v.csv": ["a,b", *("2,1" for _ in range(9))],
              "e.txt": [f"{k % 9} {r.randrange(9)}" for k in range(40)]}
    for name, lines in tables.items():
        with open(name, "w") as file:
            file.write("\n".join(lines) + "\n")
    numbers = [r.randrange(100) for _ in range(12000)]  # kept narrow, and beyond a small budget
    with open("k.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
                   + f"{{'descr': '<f8', 'fortran_order': False, 'shape': (4000, 3), }}".ljust(117).encode()
                   + b"\n" + struct.pack("<12000d", *numbers))
    for line in ("logreg d.csv --target y -o m.kiln", "linreg n.csv --target y -o lm.kiln",
                 "kmeans n.csv -k 3 -o km.kiln", "pca n.csv -k 2 --scale -o pca.kiln",
                 "convert d.csv d.kiln-data --target y", "convert r.csv r.mtx --format ratings",
                 "convert r.csv r.npz --format ratings", "convert e.txt e.npz --format edges",
                 "als r.csv --factors 2 --l2 0.1 -o als.kiln", "lda r.csv --format ratings -k 2 -o lda.kiln"):
        subprocess.run([KILN, *line.split(), *device_of(line), "--quiet"], check=True, capture_output=True)


def device_of(line):
    return [] if line.split()[0] in ("info", "coefficients", "convert", "devices") else ["--device", "cpu"]


def run(line, at):
    keep = dict(os.environ, LD_PRELOAD=PRELOADED, NO_MEMORY_AT=str(at), NO_MEMORY_COUNT="count",
                KILN_NUM_THREADS="1", OCL_ICD_VENDORS="/nowhere")
    return subprocess.run([KILN, *line.split(), *device_of(line), "--quiet"], env=keep, capture_output=True,
                          text=True, timeout=120)


def wrong(line, good, found):
    """The fault of a run of which an allocation failed; None if there is none."""
    if found.returncode not in (good.returncode, 6):
        return f"exit code {found.returncode}"
    if [name for name in os.listdir(".") if "tmp" in name]:
        return "a temporary file is left"
    result = None
    if "--json" in line and (found.returncode != 6 or found.stdout):
        try:
            result = json.loads(found.stdout)
        except ValueError:
            return "no JSON"
    if found.returncode == 6:
        if "memory" not in found.stderr:
            return "no message"
        return "another code" if result and result["error"]["code"] != "KILN_ERR_NOMEM" else None
    if result is not None and result.keys() != json.loads(good.stdout).keys():
        return "other keys"
    return "less is written" if len(found.stdout.splitlines()) < len(good.stdout.splitlines()) else None


def main():
    wrongs = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        begin()
        for line in VERBS:
            good = run(line, 0)
            if good.returncode not in (0, 4):
                sys.exit(f"kiln {line}: {good.stderr}")
            with open("count") as file:
                count = int(file.read())
            if count < 20:
                sys.exit(f"kiln {line}: {count} allocations were seen: {PRELOADED} is not in the way")
            step = max(1, count // MOST) if MOST else 1
            for at in range(1 + random.Random(line).randrange(step), count + 1, step):
                found = run(line, at)
                what = wrong(line, good, found)
                for name in os.listdir("."):
                    if "tmp" in name:
                        os.remove(name)
                if what:
                    wrongs += 1
                    print(f"kiln {line}: allocation {at} of {count}: {what}\n{found.stderr.strip()}",
                          flush=True)
        os.chdir("/")
    sys.exit(f"{wrongs} wrong" if wrongs else 0)


if __name__ == "__main__":
    main()
