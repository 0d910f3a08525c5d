"""A `python` for shell scripts whose tools run as forks of this process.

They have everything imported already, which an interpreter takes ten seconds
for.
"""
import json
import os
import runpy
import socket
import sys
from multiprocessing import active_children, get_context
from pathlib import Path

from forked import Forked

#: Other calls than that of a script are the interpreter's.
CLIENT = '''#!/bin/sh
case $1 in *.py) exec {python} -IS {client} "$@" ;; esac
exec {python} "$@"
'''
SEND = '''
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    call = json.dumps([os.getcwd(), dict(os.environ), sys.argv[1:]]).encode()
    socket.send_fds(server, [len(call).to_bytes(4, 'big')], [0, 1, 2])
    server.sendall(call)
    sys.exit(int(server.recv(9) or 1))
'''


class ForkServer(Forked):
    """While it is open, ``folder / 'python'`` runs scripts as forks."""

    def __init__(self, folder):
        address = f'\0{folder}'
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        client = folder / 'client.py'
        client.write_text(SEND.format(address=address))
        shim = folder / 'python'
        shim.write_text(CLIENT.format(python=sys.executable, client=client))
        shim.chmod(0o755)
        super().__init__(folder, serve, listener)
        listener.close()


def serve(listener) -> None:
    while True:
        connection, _ = listener.accept()
        get_context('fork').Process(target=answer, args=(connection, )).start()
        connection.close()
        active_children()  # collects those that have ended


def answer(connection) -> None:
    """Run a script as the client would, and send its exit code."""
    size, files, _, _ = socket.recv_fds(connection, 4, 3)
    folder, environment, argv = json.loads(connection.recv(
        int.from_bytes(size, 'big'), socket.MSG_WAITALL))
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdout, sys.stderr = open(1, 'w'), open(2, 'w', buffering=1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = argv
    paths = environment.get('PYTHONPATH', '').split(os.pathsep)
    sys.path[:0] = [str(Path(argv[0]).resolve().parent), *filter(None, paths)]
    script = get_context('fork').Process(
        target=runpy.run_path, args=argv[:1], kwargs=dict(run_name='__main__'))
    script.start()
    script.join()
    connection.sendall(str(script.exitcode).encode())
