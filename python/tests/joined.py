"""Runs a program in several processes that have sockets to each other, and nothing else that starts them: the
program has `transport`, of functions of one's own, for kiln.distributed.join."""
import os
import socket
import subprocess
import sys
import time

PREFACE = """
import os, signal, socket, sys
import numpy as np
import pytest
import kiln, kiln.distributed

class Sockets:
    name = "sockets"

    def __init__(self):
        self.rank, self.size = int(sys.argv[1]), int(sys.argv[2])
        self.to = {int(other): socket.socket(fileno=int(number))
                   for other, number in (one.split("=") for one in sys.argv[3:])}

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


def start(count, program, environment=None):
    """The processes, each with a socket to each other one."""
    sockets = {}
    for i in range(count):
        for j in range(i):
            sockets[i, j], sockets[j, i] = socket.socketpair()
    running = []
    for rank in range(count):
        own = {j: sockets[rank, j].fileno() for j in range(count) if j != rank}
        arguments = [str(rank), str(count), *(f"{j}={number}" for j, number in own.items())]
        running.append(subprocess.Popen([sys.executable, "-c", PREFACE + program, *arguments], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        pass_fds=tuple(own.values()),
                                        env=dict(os.environ, **(environment or {}))))
    for one in sockets.values():
        one.close()
    return running


def run(count, program, fails=(), seconds=300):
    """What each process has printed; all must end, those that do not `fail` well."""
    running = start(count, program)
    end = time.monotonic() + seconds
    try:
        told = [one.communicate(timeout=max(end - time.monotonic(), 1)) for one in running]
    finally:
        for one in running:
            one.kill()
    ended = {rank for rank, one in enumerate(running) if one.returncode != 0}
    assert ended == set(fails), "\n".join(f"process {rank}: exit code {one.returncode}\n{errors}" for
                                          rank, (one, (_, errors)) in enumerate(zip(running, told)))
    return [out for out, _ in told]
