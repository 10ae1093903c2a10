"""Runs a program in several processes that have sockets to each other, and nothing else that starts them: the
program has `transport`, of functions of one's own, for kiln.distributed.join."""
import multiprocessing
import os
import pathlib
import socket
import sys
import tempfile
import time

# Processes begin as copies of one that has imported this, which takes a second or two, and opened no device.
IMPORTED = ["kiln.distributed", "kiln._cluster", "kiln._cv", "kiln._decomposition", "pandas", "pytest"]
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(IMPORTED)

PREFACE = """
import os, signal, sys
import numpy as np
import pytest
import kiln, kiln.distributed

class Sockets:
    name = "sockets"

    def __init__(self):
        self.rank, self.size, self.to = given_rank, given_size, given_sockets

    def send(self, to, data):
        self.to[to].sendall(data)

    def receive(self, source, data):
        while data.nbytes:
            count = self.to[source].recv_into(data)
            if not count:
                raise EOFError(f"process {source} has gone")
            data = data[count:]

transport = Sockets()
rank, size = transport.rank, transport.size

def mine(*arrays):
    n = arrays[0].shape[0]
    found = [one[n * rank // size:n * (rank + 1) // size] for one in arrays]
    return found if len(found) > 1 else found[0]

def data(rows=600, columns=6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, X @ np.arange(1., columns + 1) + rng.normal(size=rows), rng
"""


def _process(program, rank, size, sockets, folder, environment):
    for number, name in ((1, "out"), (2, "errors")):
        os.dup2(os.open(f"{folder}/{name}{rank}", os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    names = vars(sys.modules["__main__"])  # where pickle looks for the program's classes
    names.update(given_rank=rank, given_size=size, given_sockets=sockets)
    exec(compile(PREFACE + program, "program", "exec"), names)


def run(count, program, fails=(), seconds=300):
    """The output of each process; all must end, those that do not `fail` well."""
    sockets = {}
    for i in range(count):
        for j in range(i):
            sockets[i, j], sockets[j, i] = socket.socketpair()
    with tempfile.TemporaryDirectory() as folder:
        running = [FORKED.Process(target=_process, args=(
            program, rank, count, {j: sockets[rank, j] for j in range(count) if j != rank}, folder,
            dict(os.environ))) for rank in range(count)]
        for one in running:
            one.start()
        for one in sockets.values():
            one.close()
        end = time.monotonic() + seconds
        for one in running:
            one.join(max(end - time.monotonic(), 0))
        codes = [one.exitcode for one in running]  # of who has not ended, none
        for one in running:
            one.kill()
            one.join()
        out, errors = ([pathlib.Path(folder, f"{name}{rank}").read_text() for rank in range(count)]
                       for name in ("out", "errors"))
    ended = {rank for rank, code in enumerate(codes) if code != 0}
    assert ended == set(fails) and None not in codes, "\n".join(
        f"process {rank}: exit code {codes[rank]}\n{errors[rank]}" for rank in range(count))
    return out
