"""A PostgreSQL server for tests, on loopback, of an unprivileged user; none where it is not installed."""

import contextlib
import copy
import glob
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

__all__ = ["MISSING", "Server"]

FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)])
OWNER, PASSWORD = "postgres", "an example of a password"


def missing():
    """Why there can be no server; None if there can."""
    if os.name != "posix":
        return "the server is started as on POSIX systems"
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed"
    if shutil.which("initdb", path=FOLDERS) is None or shutil.which("pg_ctl", path=FOLDERS) is None:
        return "PostgreSQL is not installed: no initdb and pg_ctl in the path or in /usr/lib/postgresql"
    if os.geteuid() == 0 and user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres or nobody"
    return None


def user():
    """The unprivileged user that runs the server; None for the user of this process."""
    import pwd

    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    return None


class Server:
    """A server in a folder of its own, which is deleted with it."""

    def __init__(self):
        self._settle()
        (self.folder / "password").write_text(PASSWORD)
        (self.folder / "password").chmod(0o644)
        words = ["--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C", "-U", OWNER, "-A", "scram-sha-256"]
        self._run("initdb", *words, f"--pwfile={self.folder / 'password'}")
        settings = {
            "listen_addresses": "'127.0.0.1'",
            "port": self.port,
            "unix_socket_directories": "''",
            "shared_buffers": "'16MB'",
            "max_connections": 60,
        }
        with open(self.folder / "data" / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        rules = "host postgres all 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        (self.folder / "data" / "pg_hba.conf").write_text(rules)
        self.start()

    def _settle(self):
        self.folder = Path(tempfile.mkdtemp(prefix="skdp-postgres-"))
        if user() is not None:
            os.chown(self.folder, user(), -1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @contextlib.contextmanager
    def copied(self, standby=False):
        """A copy of the whole server: a replica, or what one becomes when it is promoted."""
        twin = copy.copy(self)
        twin._settle()
        self.stop()
        subprocess.run(["cp", "-R", self.folder / "data", twin.folder], check=True, user=user())
        self.start()
        with open(twin.folder / "data" / "postgresql.conf", "a") as file:
            file.write(f"port = {twin.port}\n")
        if standby:
            (twin.folder / "data" / "standby.signal").touch()
        twin.start()
        try:
            yield twin
        finally:
            twin.close()

    def _run(self, program, *words):
        command = [shutil.which(program, path=FOLDERS), "-D", str(self.folder / "data"), *words]
        with open(self.folder / "output", "ab") as output:  # the server keeps it open
            subprocess.run(command, check=True, user=user(), cwd=self.folder, stdout=output, stderr=output)

    def start(self):
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def promote(self):
        self._run("pg_ctl", "-w", "promote")

    def kill(self):
        """End the whole server at once, as a loss of power does, and wait until none of its processes is left."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(alive(process) for process in (pid, *map(int, children))):
            time.sleep(0.001)
        (self.folder / "data" / "postmaster.pid").unlink()  # nobody may have taken note yet that the process is dead

    def url(self, database="postgres", user=OWNER, password=None):
        """Address of a database; all but "postgres" need a password."""
        secret = f":{quote(password)}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres", user=OWNER, password=PASSWORD):
        """A connection of psycopg."""
        import psycopg

        return psycopg.connect(self.url(database, user, password), autocommit=True)

    def execute(self, *statements, **where):
        """Rows of the last statement."""
        with self.connect(**where) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def close(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def alive(process):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


MISSING = missing()
