"""A GPU's counters of some calls, through NVIDIA's ncu. frame.Run.counted runs this file under it, as

    ncu --profile-from-start off --metrics ... python3 counted.py STEP DEVICE SCALE BUILD FOLDER DATA KEPT

which makes the calls that the step names (frame.counts), each after a kernel called `marker` by which the rows of ncu's table are told
apart. A machine without ncu, or one that keeps its counters to itself, is told by a note.
"""
import csv
import ctypes
import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys

METRICS = {"dram__bytes_read.sum": "DRAM read, MB", "lts__t_sectors_op_read.sum": "L2 read, MB"}
FACTORS = {"dram__bytes_read.sum": 1e-6, "lts__t_sectors_op_read.sum": 32e-6}  # bytes; sectors of 32
SECONDS = 120
MARKER = 'extern "C" __global__ void marker() {}'


def table(text, labels):
    """By label what METRICS counts, in MB: ncu's table has a row for each kernel and metric, in the order of launches."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return {}
    found, at, seen = [{} for _ in labels], -1, set()
    for line in csv.DictReader(lines[first:]):
        if line["Kernel Name"].split("(")[0] == "marker":
            at += line["ID"] not in seen
            seen.add(line["ID"])
        elif at >= 0 and line["Metric Name"] in METRICS:
            name, metric = METRICS[line["Metric Name"]], line["Metric Name"]
            found[at][name] = found[at].get(name, 0) + float(line["Metric Value"].replace(",", "")) * FACTORS[metric]
    return dict(zip(labels, found))


def count(run, step):
    """{label: {what: MB}} of the calls that the step names; empty, with a note, where that cannot be read."""
    ncu = shutil.which("ncu")
    if run.kind != "cuda" or not ncu or run.lacks("cupy"):
        run.note("loads are counted on NVIDIA GPUs with ncu and CuPy")
        return {}
    kept, labels = (os.path.join(run.folder, name) for name in ("kept.pickle", "labels.json"))
    with open(kept, "wb") as file:
        pickle.dump({key: path for key, path in run.kept.items() if key[0] == "generated"}, file)
    words = [ncu, "--profile-from-start", "off", "--clock-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(METRICS),
             sys.executable, os.path.abspath(__file__), step, run.asked, "small" if run.small else "full", run.build, run.folder, run.data, kept]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        run.note(f"ncu took more than {SECONDS} s")
        return {}
    found = {}
    if os.path.exists(labels):
        with open(labels, encoding="utf-8") as file:
            found = table(done.stdout, json.load(file))
        os.remove(labels)
    if done.returncode or not any(found.values()):
        told = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        run.note(f"ncu counted nothing ({done.returncode}): {' / '.join(told[-3:])}")
    return found


def main():
    import cupy
    import frame
    step, device, scale, build, folder, data, kept = sys.argv[1:]
    importlib.import_module(step.split(".")[0])
    run = frame.Run(device, scale, build, folder, data)
    with open(kept, "rb") as file:
        run.kept = pickle.load(file)
    driver, marker, labels = ctypes.CDLL("libcuda.so.1"), cupy.RawKernel(MARKER, "marker"), []
    marker((1,), (1,), ())
    for label, call in frame.COUNTED[step](run):
        for counts in (False, False, True):
            cupy.cuda.Device().synchronize()
            if counts:
                driver.cuProfilerStart()
                marker((1,), (1,), ())
            call()
            run.device.synchronize()
            cupy.cuda.Device().synchronize()
            if counts:
                driver.cuProfilerStop()
        labels.append(label)
    with open(os.path.join(folder, "labels.json"), "w", encoding="utf-8") as file:
        json.dump(labels, file)


if __name__ == "__main__":
    main()
